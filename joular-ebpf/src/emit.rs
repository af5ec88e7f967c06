//! What goes through the ring buffer: stacks that are new, lifecycle events.

use aya_ebpf::{helpers::bpf_ktime_get_ns, maps::ring_buf::RingBufEntry};
use joular_ebpf::abi::{Comm, LifecycleRecord, Loss};

use crate::{
    maps::{EVENTS, count_loss},
    task::Task,
};

/// User space polls the ring many times a second; a wake-up for each record
/// would cost more than the record.
pub const NO_WAKEUP: u64 = aya_ebpf::bindings::BPF_RB_NO_WAKEUP as u64;

/// The facts of a lifecycle event that the kernel knows at the tracepoint.
pub struct Lifecycle {
    pub kind: u32,
    pub task: Task,
    pub parent_tgid: u32,
    pub process_ends: bool,
    pub comm: Comm,
}

/// Sends a lifecycle event, or counts its loss.
#[inline(always)]
pub fn lifecycle(event: Lifecycle) {
    let Some(mut entry): Option<RingBufEntry<LifecycleRecord>> = EVENTS.reserve(0) else {
        count_loss(Loss::LifecycleRingFull);
        return;
    };
    entry.write(LifecycleRecord {
        kind: event.kind,
        tgid: event.task.tgid(),
        tid: event.task.tid(),
        parent_tgid: event.parent_tgid,
        process_ends: event.process_ends as u32,
        pad: 0,
        // SAFETY: helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        start_boottime_ns: event.task.start_boottime_ns(),
        comm: event.comm,
    });
    entry.submit(NO_WAKEUP);
}
