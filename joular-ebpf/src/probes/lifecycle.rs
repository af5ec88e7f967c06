//! Reports births, deaths and renames. Threads of processes that nobody asked for are filtered
//! here: a fork-heavy host must not flood the ring buffer.

use aya_ebpf::{helpers::bpf_get_current_comm, macros::btf_tracepoint, programs::BtfTracePointContext};
use joular_ebpf::abi::{Comm, RecordKind};

use crate::{
    emit::{self, Lifecycle},
    io,
    maps::{ALL_TARGETS, COUNT_IO, PROCESSES, SIGNAL_LIVE, TARGETS, TASK_SIGNAL},
    task::Task,
};

/// `sched_process_exec(struct task_struct *p, pid_t old_pid, struct linux_binprm *)`.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn process_exec(context: BtfTracePointContext) -> i32 {
    let task = Task::from_argument(context.arg(0));
    forget_tables(task);
    send(&context, RecordKind::EXEC, task, 0, current_comm());
    0
}

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn process_fork(context: BtfTracePointContext) -> i32 {
    let parent = Task::from_argument(context.arg(0));
    let child = Task::from_argument(context.arg(1));
    // A new thread of a process shows up with its first slice of time.
    if child.tid() == child.tgid() {
        send(&context, RecordKind::FORK, child, parent.tgid(), current_comm());
    }
    0
}

/// `sched_process_exit(struct task_struct *p, …)`.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn process_exit(context: BtfTracePointContext) -> i32 {
    let task = Task::from_argument(context.arg(0));
    if COUNT_IO.load() != 0 {
        io::forget_thread(task);
    }
    // `signal->live` has already been decremented for this thread.
    let signal: *const u8 = task.read(TASK_SIGNAL.load());
    let live: i32 = Task::from_argument(signal).read(SIGNAL_LIVE.load());
    if live == 0 {
        forget_tables(task);
        send(&context, RecordKind::EXIT, task, 0, current_comm());
    }
    0
}

/// `task_rename(struct task_struct *task, const char *comm)`.
#[btf_tracepoint(function = "task_rename")]
pub fn task_rename(context: BtfTracePointContext) -> i32 {
    let task = Task::from_argument(context.arg(0));
    let (tid, tgid) = (task.tid(), task.tgid());
    // SAFETY: TARGETS is preallocated; only the presence of a value matters.
    let wanted = tid == tgid || ALL_TARGETS.load() != 0 || TARGETS.get_ptr(tgid).is_some();
    if wanted {
        let name: *const u8 = context.arg(1);
        let mut comm: Comm = Comm::default();
        // SAFETY: a kernel string argument; the helper bounds the copy.
        if unsafe { aya_ebpf::helpers::bpf_probe_read_kernel_str_bytes(name, &mut comm) }.is_err() {
            return 0;
        }
        send(&context, RecordKind::COMM, task, 0, comm);
    }
    0
}

/// Forgets the tables of a program that was replaced or ended. They are wrong for the next one with
/// this number, which may be sampled before user space has heard of it.
#[inline(always)]
fn forget_tables(task: Task) {
    let _ = PROCESSES.remove(task.tgid());
}

#[inline(always)]
fn current_comm() -> Comm {
    bpf_get_current_comm().unwrap_or_default()
}

#[inline(always)]
fn send(context: &BtfTracePointContext, kind: u32, task: Task, parent_tgid: u32, comm: Comm) {
    emit::lifecycle(context, Lifecycle { kind, task, parent_tgid, comm });
}
