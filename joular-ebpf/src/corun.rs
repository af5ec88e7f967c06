//! Tracks whether the core's other hyper-thread is busy: see `abi::corun`. On machines without
//! hyper-threads [`SMT`] is 0, and the verifier removes all of it.
//!
//! A switch says what runs next. Not every kernel reports every switch, so the next accounting
//! decides: what it finds running has run since the accounting before. The sibling may have counted
//! too much by then; it counts that much less afterwards.

use aya_ebpf::helpers::bpf_get_smp_processor_id;
use joular_ebpf::abi::{BusyWord, CpuState, corun_ns};

use crate::maps::{SIBLING_BUSY, SMT};

/// The part of the slice that has just ended on this CPU in which the other hyper-thread was busy
/// too.
#[inline(always)]
pub fn of_slice(cpu: &mut CpuState, slice_ns: u64) -> u64 {
    if SMT.load() == 0 || cpu.sibling == 0 {
        return 0;
    }
    let Some(line) = SIBLING_BUSY.get_ptr(cpu.sibling - 1) else { return 0 };
    // SAFETY: a live map value, aligned to 8 bytes; its one writer stores whole
    // words.
    let word = BusyWord(unsafe { core::ptr::read_volatile(line.cast::<u64>()) });
    corun_ns(word, &mut cpu.sibling_busy_ns, cpu.last_ns, slice_ns)
}

/// Says that this CPU is busy, or idle, since a moment: that of its last accounting, or of the one
/// before if the task that runs is not the one that was announced.
#[inline(always)]
pub fn set_busy(cpu: &mut CpuState, since_ns: u64, is_busy: bool) {
    if SMT.load() == 0 {
        return;
    }
    let word = BusyWord(cpu.busy).at(since_ns, is_busy);
    if word.0 == cpu.busy {
        return;
    }
    cpu.busy = word.0;
    // SAFETY: helper without arguments.
    let id = unsafe { bpf_get_smp_processor_id() };
    if let Some(line) = SIBLING_BUSY.get_ptr_mut(id) {
        // SAFETY: a live map value, aligned to 8 bytes; only this CPU writes it.
        unsafe { core::ptr::write_volatile(line.cast::<u64>(), word.0) };
    }
}
