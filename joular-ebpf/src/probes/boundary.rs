//! Accounts the slice still running on a CPU right after a window boundary, so that an idle or
//! busy-for-long CPU passes the boundary too. User space runs it on each CPU (`BPF_PROG_TEST_RUN`
//! on that CPU).

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};

use crate::{
    maps::CPU,
    task::{At, account},
};

/// Arguments: the CPU's place, and its sibling plus 1 (either may have come
/// online just now).
#[raw_tracepoint]
pub fn pass_boundary(context: RawTracePointContext) -> i32 {
    if let Some(cpu) = CPU.get_ptr_mut(0) {
        // SAFETY: a live per-CPU map value; only this CPU writes it.
        let cpu = unsafe { &mut *cpu };
        cpu.place = context.arg::<u64>(0) as u32;
        cpu.sibling = context.arg::<u64>(1) as u32;
    }
    account(At::Boundary);
    0
}
