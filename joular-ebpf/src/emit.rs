//! Sends new stacks and lifecycle events through the ring buffer.

use aya_ebpf::{
    bindings::BPF_RB_FORCE_WAKEUP, helpers::bpf_ktime_get_ns, maps::ring_buf::RingBufEntry,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::debug;
use joular_ebpf::abi::{Comm, LifecycleRecord, Loss, RecordKind};

use crate::{
    maps::{EVENTS, count_loss},
    task::Task,
};

/// Wakes user space if it has read all that came before, because the words of a stack should be
/// read while their process exists. A record that does not wake it would be unread when a stack is
/// sent behind it, and so would keep that from waking it as well. So no record is sent without.
pub const WAKE_WHEN_READ: u64 = 0;

/// Wakes user space in any case: a process that may be a new target should be looked at while it exists.
const WAKE: u64 = BPF_RB_FORCE_WAKEUP as u64;

/// The facts of a lifecycle event that the kernel knows at the tracepoint.
pub struct Lifecycle {
    pub kind: u32,
    pub task: Task,
    pub parent_tgid: u32,
    pub comm: Comm,
}

/// Sends a lifecycle event, or counts its loss. The log entry is off unless
/// asked for (`--kernel-log`): its level is a constant to the verifier, which
/// removes the call.
#[inline(always)]
pub fn lifecycle(context: &BtfTracePointContext, event: Lifecycle) {
    debug!(context, "lifecycle event {} of process {}, thread {}", event.kind, event.task.tgid(), event.task.tid());
    let Some(mut entry): Option<RingBufEntry<LifecycleRecord>> = EVENTS.reserve(0) else {
        count_loss(Loss::LifecycleRingFull);
        return;
    };
    entry.write(LifecycleRecord {
        kind: event.kind,
        tgid: event.task.tgid(),
        tid: event.task.tid(),
        parent_tgid: event.parent_tgid,
        // SAFETY: helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        start_boottime_ns: event.task.start_boottime_ns(),
        comm: event.comm,
    });
    let may_be_new = match event.kind {
        RecordKind::EXEC | RecordKind::FORK => true,
        RecordKind::COMM => event.task.tid() == event.task.tgid(),
        _ => false,
    };
    entry.submit(if may_be_new { WAKE } else { WAKE_WHEN_READ });
}
