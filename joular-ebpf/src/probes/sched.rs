//! Accounts exact on-CPU time: at every context switch the elapsed slice goes to the task being
//! switched out, which at this tracepoint is still `current`.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use crate::{
    maps::MEAN_GAP_NS,
    sampling,
    task::{At, Task, account, follows},
};

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, …)`.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch(context: BtfTracePointContext) -> i32 {
    let accounted = account(At::Switch);
    let next = Task::from_argument(context.arg(2));
    follows(next);
    if MEAN_GAP_NS.load() != 0
        && let Some(accounted) = accounted
    {
        sampling::switched_to(next, accounted.now_ns);
    }
    0
}
