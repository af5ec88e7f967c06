//! Reads `struct pt_regs` of x86-64.

use aya_ebpf::{
    bindings::pt_regs,
    helpers::generated::{bpf_get_current_task_btf, bpf_task_pt_regs},
    programs::{BtfTracePointContext, PerfEventContext},
};
use joular_ebpf::walk::{
    Registers,
    arch::{X86_64, x86_64::Live},
};

use crate::{
    maps::{OTHER_TIMER_ENTRY, TIMER_ENTRY},
    unwind::kernel_frames::is_in,
};

/// Whether `joular_ebpf::paging` knows this processor's page tables.
pub const READS_PAGE_TABLES: bool = true;

/// Whether the sample interrupted user code; asking for a kernel stack then
/// costs a walk and a cleared buffer for nothing.
#[inline(always)]
pub fn in_user_mode(context: &PerfEventContext) -> bool {
    /// Requested privilege level of the code segment.
    const RPL: u64 = 3;
    // SAFETY: the context of a perf_event program starts with the registers.
    unsafe { (*context.ctx).regs.cs & RPL == RPL }
}

/// Whether this program runs in an interrupt of user code. The kernel handles such an interrupt on the thread's own stack,
/// which was empty, and all others on a stack of the CPU (`call_on_irqstack_cond` in arch/x86/include/asm/irq_stack.h; before
/// Linux 5.8 none is on the thread's, and the walk of the kernel's stack tells). This must be a function of its own: with so
/// few variables it runs on the kernel's stack, where larger ones have a stack of eBPF's (`BPF_PRIV_STACK_MIN_SIZE`, Linux
/// 6.13).
#[inline(never)]
pub fn interrupts_user_mode() -> bool {
    /// `THREAD_SIZE`.
    const STACK_BYTES: usize = 16 << 10;
    // SAFETY: no arguments; `current` is valid for the whole program run.
    let task = unsafe { bpf_get_current_task_btf() };
    let here = 0_u8;
    // SAFETY: a trusted task; its saved registers stand where its stack begins.
    let begin = unsafe { bpf_task_pt_regs(task) } as usize;
    begin.wrapping_sub((&raw const here).addr()) < STACK_BYTES
}

/// Offset of the last register of 8 bytes in a probe's context.
pub const LAST_REGISTER: u32 = 160;

/// Whether the stack of the running thread's code is of another kind. Of 32-bit code the kernel follows frame pointers as well.
#[inline(always)]
pub fn is_of_32_bits() -> bool {
    false
}

/// Whether the program of timers runs in an interrupt of the CPU's timer: its tracepoint is in no other.
#[inline(always)]
pub fn is_of_timer(_: &BtfTracePointContext) -> bool {
    true
}

/// Whether a frame is the kernel's entry for such an interrupt.
#[inline(always)]
pub fn is_entry_of_interrupt(frame: u64) -> bool {
    is_in(TIMER_ENTRY.load(), frame) || is_in(OTHER_TIMER_ENTRY.load(), frame)
}

/// Registers of user code at its last entry to the kernel, which a sample of user
/// code is as well: on x86-64 all registers are saved then, interrupts included.
#[inline(always)]
pub fn interrupted_registers() -> Registers<X86_64> {
    // SAFETY: no arguments; `current` is valid for the whole program run.
    let task = unsafe { bpf_get_current_task_btf() };
    // SAFETY: a trusted task; its saved registers stand where its stack begins.
    let regs = unsafe { bpf_task_pt_regs(task) } as *const pt_regs;
    // SAFETY: the verifier knows the type and makes each load one with an exception
    // table entry.
    unsafe {
        Registers {
            pc: (*regs).rip,
            sp: (*regs).rsp,
            fp: (*regs).rbp,
            live: Live { rax: (*regs).rax, rbx: (*regs).rbx, r13: (*regs).r13 },
        }
    }
}
