//! Handles the sampling interrupt: it accounts the running slice and, for targets, counts the
//! stack.

use aya_ebpf::{bindings::BPF_NOEXIST, macros::perf_event, programs::PerfEventContext};
use joular_ebpf::abi::{Loss, SampleKey, SampleKind, SampleSlot, thread_flags};

use crate::{
    maps::{ALL_TARGETS, SELF_TGID, TARGETS, count_loss, samples},
    task::{Accounted, At, account},
    unwind::{self, Unwound},
};

#[perf_event]
pub fn sample(context: PerfEventContext) -> u32 {
    let Some(accounted) = account(At::Sample) else { return 0 };
    if accounted.tid == 0 {
        return 0;
    }
    let tgid = accounted.task.tgid();
    if is_target(&accounted, tgid) {
        count_stack(&context, &accounted, tgid);
    }
    0
}

#[inline(always)]
fn is_target(accounted: &Accounted, tgid: u32) -> bool {
    if ALL_TARGETS.load() != 0 {
        return tgid != SELF_TGID.load();
    }
    let Some(slot) = accounted.slot else { return TARGETS.get_ptr(tgid).is_some() };
    // SAFETY: a live value of a preallocated map; this CPU runs the thread and
    // is the slot's one writer.
    let flags = unsafe { &mut (*slot).flags };
    if *flags & thread_flags::TARGET != 0 {
        return true;
    }
    let is_target = TARGETS.get_ptr(tgid).is_some();
    if is_target {
        *flags |= thread_flags::TARGET;
    }
    is_target
}

#[inline(always)]
fn count_stack(context: &PerfEventContext, accounted: &Accounted, tgid: u32) {
    let kernel = unwind::kernel(context);
    let user =
        if accounted.task.is_kernel_thread() { Unwound::NONE } else { unwind::user(context, accounted.task, tgid) };
    let key = SampleKey::new(SampleKind::CpuTime, accounted.thread, user.id, kernel.id);
    let map = samples(accounted.bank);
    // By reference: each copy of a key is stack, of which older kernels allow 512 bytes to
    // all functions that call each other together.
    if let Some(slot) = map.get_ptr_mut(&key) {
        // SAFETY: a live value of a preallocated map; the key holds the
        // thread, which runs on one CPU at a time: one writer.
        unsafe { (*slot).count += 1 };
        return;
    }
    // Without its addresses a key would be counted for nothing all window long;
    // the next sample tries again.
    if !kernel.introduce(tgid) || !user.introduce(tgid) {
        return;
    }
    if map.insert(&key, SampleSlot { count: 1, tgid }, u64::from(BPF_NOEXIST)).is_err() {
        count_loss(Loss::SampleMapFull);
    }
}
