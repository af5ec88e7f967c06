//! Says where a processor keeps what tests look for in the registers of a thread that is held.

use libc::user_regs_struct;

/// Those that a walk of its stack begins with, in the order in which images of processes have them.
#[cfg(target_arch = "x86_64")]
pub const fn walked(of: &user_regs_struct) -> [u64; 6] {
    [of.rip, of.rsp, of.rbp, of.rax, of.rbx, of.r13]
}

/// Those that a walk of its stack begins with, in the order in which images of processes have them.
#[cfg(target_arch = "aarch64")]
pub const fn walked(of: &user_regs_struct) -> [u64; 8] {
    let at = &of.regs;
    [of.pc, of.sp, at[29], at[30], at[12], at[13], at[19], at[22]]
}

/// Number and first argument of the system call that a thread begins, which was stopped at one (`PTRACE_SYSCALL`). None where
/// it returns from one.
#[cfg(target_arch = "x86_64")]
pub(crate) fn begun_call(of: &user_regs_struct) -> Option<(u64, u64)> {
    // A call that has not been made yet has this result.
    (of.rax as i64 == i64::from(-libc::ENOSYS)).then_some((of.orig_rax, of.rdi))
}

/// Number and first argument of the system call that a thread begins, which was stopped at one (`PTRACE_SYSCALL`). None where
/// it returns from one.
#[cfg(target_arch = "aarch64")]
pub(crate) fn begun_call(of: &user_regs_struct) -> Option<(u64, u64)> {
    // The kernel shows that to who traces, and what was in the register is there again later.
    (of.regs[7] == 0).then_some((of.regs[8], of.regs[0]))
}
