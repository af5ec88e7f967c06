//! Run by user space on each CPU right after a window boundary
//! (`BPF_PROG_TEST_RUN` on that CPU): accounts the slice still running there,
//! so that an idle or busy-for-long CPU passes the boundary too.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};

use crate::task::{At, account};

#[raw_tracepoint]
pub fn pass_boundary(_context: RawTracePointContext) -> i32 {
    account(At::Boundary);
    0
}
