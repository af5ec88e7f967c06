//! Reports births, deaths and renames of processes that are or may become targets. What becomes of others is filtered
//! here: a host where processes come and go by the thousand must neither flood the ring buffer nor wake user space.

use aya_ebpf::{helpers::bpf_get_current_comm, macros::btf_tracepoint, programs::BtfTracePointContext};
use joular_ebpf::abi::{CHEAP_RECORD_BYTES, Comm, Loss, MAX_COMM_PATTERNS, RecordKind, followed};

use crate::{
    emit::{self, Lifecycle, WAKE, WAKE_WHEN_READ},
    io,
    maps::{
        ALL_TARGETS, COUNT_IO, FOLLOWED, NAME_COUNT, NAMES, PROCESSES, RING_SHARE, SELF_TGID, SIGNAL_LIVE, TARGETS,
        TASK_SIGNAL, TELL_ALL, count_loss,
    },
    task::Task,
};

/// `sched_process_exec(struct task_struct *p, pid_t old_pid, struct linux_binprm *)`.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn process_exec(context: BtfTracePointContext) -> i32 {
    let task = Task::from_argument(context.arg(0));
    forget_tables(task);
    let comm = current_comm();
    if is_told_of(task.tgid(), &comm) {
        send(&context, RecordKind::EXEC, task, 0, comm, WAKE);
    }
    0
}

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn process_fork(context: BtfTracePointContext) -> i32 {
    let parent = Task::from_argument(context.arg(0));
    let child = Task::from_argument(context.arg(1));
    let (tgid, parent_tgid) = (child.tgid(), parent.tgid());
    // A new thread of a process shows up with its first slice of time.
    if child.tid() != tgid {
        return 0;
    }
    let is_of_tree = follow(tgid, parent_tgid);
    let comm = current_comm();
    if is_told_of(tgid, &comm) {
        // Others become targets when they execute something, or have lived for a while.
        send(&context, RecordKind::FORK, child, parent_tgid, comm, if is_of_tree { WAKE } else { WAKE_WHEN_READ });
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
        // A process that only may have become a target is of no use any more.
        if TELL_ALL.load() != 0 || is_known(task.tgid()) {
            let _ = FOLLOWED.remove(task.tgid());
            send(&context, RecordKind::EXIT, task, 0, current_comm(), WAKE_WHEN_READ);
        }
    }
    0
}

/// `task_rename(struct task_struct *task, const char *comm)`.
#[btf_tracepoint(function = "task_rename")]
pub fn task_rename(context: BtfTracePointContext) -> i32 {
    let task = Task::from_argument(context.arg(0));
    let (tid, tgid) = (task.tid(), task.tgid());
    let is_leader = tid == tgid;
    // SAFETY: TARGETS is preallocated; only the presence of a value matters.
    let is_target = ALL_TARGETS.load() != 0 || TARGETS.get_ptr(tgid).is_some();
    if !is_leader && !is_target {
        return 0;
    }
    let name: *const u8 = context.arg(1);
    let mut comm: Comm = Comm::default();
    // SAFETY: a kernel string argument; the helper bounds the copy.
    if unsafe { aya_ebpf::helpers::bpf_probe_read_kernel_str_bytes(name, &mut comm) }.is_err() {
        return 0;
    }
    if !is_target && !is_told_of(tgid, &comm) {
        return 0;
    }
    // A program renames its process a few times at most, but can do so without end.
    let bytes = if is_leader { RING_SHARE.load() / MOST_NAMES_OF_PROCESS } else { CHEAP_RECORD_BYTES };
    if emit::admits(tgid, bytes) {
        // It may be a target by its name. What executes a program is told of once more in a moment.
        let wake = if is_target || TELL_ALL.load() != 0 { WAKE_WHEN_READ } else { WAKE };
        send(&context, RecordKind::COMM, task, 0, comm, wake);
    }
    0
}

/// Names that a process can take until its share of the ring is used up.
const MOST_NAMES_OF_PROCESS: u32 = 32;

/// Follows a child that the profiler has started, or whose parent belongs to the selected tree. Returns whether it is
/// of the tree.
#[inline(always)]
fn follow(tgid: u32, parent_tgid: u32) -> bool {
    // SAFETY: a live value of a preallocated map.
    let is_of_tree = FOLLOWED.get_ptr(parent_tgid).is_some_and(|why| unsafe { *why } == followed::TREE);
    if is_of_tree || parent_tgid == SELF_TGID.load() {
        let why = if is_of_tree { followed::TREE } else { followed::CHILD };
        if FOLLOWED.insert(tgid, why, 0).is_err() {
            count_loss(Loss::FollowedMapFull);
        }
    }
    is_of_tree
}

/// Whether user space has use for what becomes of a process with this name.
#[inline(always)]
fn is_told_of(tgid: u32, comm: &Comm) -> bool {
    TELL_ALL.load() != 0 || is_known(tgid) || is_wanted_name(comm)
}

#[inline(always)]
fn is_known(tgid: u32) -> bool {
    TARGETS.get_ptr(tgid).is_some() || FOLLOWED.get_ptr(tgid).is_some()
}

#[inline(always)]
fn is_wanted_name(comm: &Comm) -> bool {
    for at in 0..MAX_COMM_PATTERNS as u32 {
        if at >= NAME_COUNT.load() {
            break;
        }
        if NAMES.get(at).is_some_and(|pattern| pattern.matches(comm)) {
            return true;
        }
    }
    false
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
fn send(context: &BtfTracePointContext, kind: u32, task: Task, parent_tgid: u32, comm: Comm, wake: u64) {
    emit::lifecycle(context, Lifecycle { kind, task, parent_tgid, comm }, wake);
}
