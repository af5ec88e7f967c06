//! The sampling interrupt: accounts the running slice and, for targets,
//! counts the stack.

use aya_ebpf::{bindings::BPF_NOEXIST, macros::perf_event, programs::PerfEventContext};
use joular_ebpf::abi::{Loss, SampleKey, SampleSlot};

use crate::{
    maps::{ALL_TARGETS, SELF_TGID, TARGETS, count_loss, samples},
    task::{Accounted, At, account},
    unwind,
};

#[perf_event]
pub fn sample(context: PerfEventContext) -> u32 {
    let Some(accounted) = account(At::Sample) else { return 0 };
    if accounted.tid == 0 {
        return 0;
    }
    let tgid = accounted.task.tgid();
    if is_target(tgid) {
        count_stack(&context, &accounted, tgid);
    }
    0
}

#[inline(always)]
fn is_target(tgid: u32) -> bool {
    if ALL_TARGETS.load() != 0 { tgid != SELF_TGID.load() } else { TARGETS.get_ptr(tgid).is_some() }
}

#[inline(always)]
fn count_stack(context: &PerfEventContext, accounted: &Accounted, tgid: u32) {
    let kernel = unwind::kernel_stack(context, tgid);
    let user = if accounted.task.is_kernel_thread() {
        joular_ebpf::abi::StackId::NONE
    } else {
        unwind::user_stack(context, tgid)
    };
    let key = SampleKey { thread: accounted.thread.0, user: user.0, kernel: kernel.0 };
    let map = samples(accounted.bank);
    if let Some(slot) = map.get_ptr_mut(key) {
        // SAFETY: a live value of a preallocated map; the key holds the
        // thread, which runs on one CPU at a time: one writer.
        unsafe { (*slot).count += 1 };
    } else if map.insert(key, SampleSlot { count: 1, tgid }, u64::from(BPF_NOEXIST)).is_err() {
        count_loss(Loss::SampleMapFull);
    }
}
