//! Reads unhalted cycles, from a counter that user space opened on each CPU. Unless they are
//! counted, [`COUNT_CYCLES`] is 0 and the verifier removes all of it.

use aya_ebpf::{
    bindings::{BPF_F_CURRENT_CPU, bpf_perf_event_value},
    helpers::generated::bpf_perf_event_read_value,
};
use joular_ebpf::abi::{CpuState, Loss};

use crate::maps::{COUNT_CYCLES, CYCLES, count_loss};

/// Cycles of the slice that has just ended on this CPU. If the counter cannot
/// be read, this slice and the next have none, and each is a loss.
#[inline(always)]
pub fn of_slice(cpu: &mut CpuState) -> u64 {
    if COUNT_CYCLES.load() == 0 {
        return 0;
    }
    let last = cpu.cycles;
    cpu.cycles = read();
    if last == 0 || cpu.cycles < last {
        count_loss(Loss::CyclesUnread);
        return 0;
    }
    cpu.cycles - last
}

/// The counter of this CPU, 0 if it is not there or not running.
#[inline(always)]
fn read() -> u64 {
    let mut value = bpf_perf_event_value { counter: 0, enabled: 0, running: 0 };
    let size = size_of::<bpf_perf_event_value>() as u32;
    let map = (&raw const CYCLES).cast_mut().cast();
    // SAFETY: the map is a perf event array, and the buffer as large as said.
    let failed = unsafe { bpf_perf_event_read_value(map, BPF_F_CURRENT_CPU, &mut value, size) };
    if failed != 0 { 0 } else { value.counter }
}
