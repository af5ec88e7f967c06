//! Finds where a task's registers are saved, and what the kernel's timer interrupts look like, which depends on the
//! processor: a file for each, with the same names in each.

#[cfg(bpf_target_arch = "aarch64")]
mod aarch64;
#[cfg(not(bpf_target_arch = "aarch64"))]
mod x86_64;

#[cfg(bpf_target_arch = "aarch64")]
pub use aarch64::{
    LAST_REGISTER, PtRegs, READS_PAGE_TABLES, in_user_mode, interrupted_registers, interrupts_user_mode,
    is_entry_of_interrupt, is_of_32_bits, is_of_timer,
};
#[cfg(not(bpf_target_arch = "aarch64"))]
pub use x86_64::{
    LAST_REGISTER, READS_PAGE_TABLES, in_user_mode, interrupted_registers, interrupts_user_mode, is_entry_of_interrupt,
    is_of_32_bits, is_of_timer,
};
