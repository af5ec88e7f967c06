//! Sends new stacks and lifecycle events through the ring buffer.

use aya_ebpf::{
    bindings::BPF_RB_FORCE_WAKEUP, helpers::bpf_ktime_get_ns, maps::ring_buf::RingBufEntry,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::debug;
use joular_ebpf::abi::{Comm, LifecycleRecord, Loss, RingShare};

use crate::{
    maps::{EVENTS, RING_SHARE, RING_SHARES, count_loss},
    task::Task,
};

/// Wakes user space if it has read all that came before, because the words of a stack should be
/// read while their process exists. A record that does not wake it would be unread when a stack is
/// sent behind it, and so would keep that from waking it as well. So no record is sent without.
pub const WAKE_WHEN_READ: u64 = 0;

/// Wakes user space in any case: what is or may become a target should be looked at while it exists.
pub const WAKE: u64 = BPF_RB_FORCE_WAKEUP as u64;

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
pub fn lifecycle(context: &BtfTracePointContext, event: Lifecycle, wake: u64) {
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
    entry.submit(wake);
}

/// Whether a process may send so many bytes, or has used up its share of the ring. Counts what it may not. For what a
/// process can make as fast as it likes: a program that is executed, or a process that is started, takes its time.
#[inline(always)]
pub fn admits(tgid: u32, bytes: u32) -> bool {
    admits_record(tgid, bytes) != 0
}

/// A global function, which the verifier checks by itself, and whose stack is none of its callers'.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn admits_record(tgid: u32, bytes: u32) -> u32 {
    // SAFETY: helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    let is_admitted = match RING_SHARES.get_ptr_mut(tgid) {
        // SAFETY: a live map value. If it was given to another process just now, that one's share is a little off.
        Some(share) => unsafe { (*share).admits(now_ns, bytes, RING_SHARE.load()) },
        None => {
            let mut share = RingShare::default();
            let is_admitted = share.admits(now_ns, bytes, RING_SHARE.load());
            // Without room its next record is treated like this one.
            let _ = RING_SHARES.insert(tgid, share, 0);
            is_admitted
        }
    };
    if !is_admitted {
        count_loss(Loss::RingShareUsed);
    }
    u32::from(is_admitted)
}
