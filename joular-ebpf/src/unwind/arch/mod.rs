//! Finds where a task's registers are saved, which depends on the processor. On an architecture
//! that has no file here, stacks are walked by frame pointers.

#[cfg(bpf_target_arch = "x86_64")]
mod x86_64;

#[cfg(bpf_target_arch = "x86_64")]
pub use x86_64::{in_user_mode, interrupted_registers, interrupts_user_mode};

/// The helper that walks kernel stacks finds out.
#[cfg(not(bpf_target_arch = "x86_64"))]
#[inline(always)]
pub fn in_user_mode(_: &aya_ebpf::programs::PerfEventContext) -> bool {
    false
}

#[cfg(not(bpf_target_arch = "x86_64"))]
#[inline(always)]
pub fn interrupts_user_mode() -> bool {
    false
}
