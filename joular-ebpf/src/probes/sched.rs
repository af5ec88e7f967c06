//! Exact on-CPU time: at every context switch the elapsed slice goes to the
//! task being switched out, which at this tracepoint is still `current`.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use crate::task::{At, account};

#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch(_context: BtfTracePointContext) -> i32 {
    account(At::Switch);
    0
}
