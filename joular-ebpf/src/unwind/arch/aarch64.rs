//! Reads `struct pt_regs` of aarch64, and knows its interrupts.

use aya_ebpf::{
    Global,
    bindings::user_pt_regs,
    helpers::{
        bpf_get_smp_processor_id, bpf_probe_read_kernel,
        generated::{bpf_get_current_task_btf, bpf_task_pt_regs},
    },
    programs::{BtfTracePointContext, PerfEventContext},
};
use joular_ebpf::walk::{
    Registers,
    arch::{Aarch64, aarch64::Live},
};

use crate::{
    maps::{OTHER_TIMER_ENTRY, TIMER_ENTRY},
    unwind::kernel_frames::is_in,
};

/// Number of the interrupt of the CPUs' timer, which the tracepoint hands over.
#[unsafe(no_mangle)]
static TIMER_INTERRUPT: Global<u32> = Global::new(0);
/// First and last address of the kernel's entry for interrupts of 32-bit code. Those of the kernel and of user code are
/// `TIMER_ENTRY` and `OTHER_TIMER_ENTRY`.
#[unsafe(no_mangle)]
static COMPAT_TIMER_ENTRY: Global<[u64; 2]> = Global::new([0, 0]);
/// Addresses of the kernel's variables `__irq_regs` and `__per_cpu_offset`; 0: it has none of that name.
#[unsafe(no_mangle)]
static IRQ_REGS: Global<u64> = Global::new(0);
#[unsafe(no_mangle)]
static PER_CPU_OFFSET: Global<u64> = Global::new(0);

/// `PSR_MODE_MASK` (arch/arm64/include/uapi/asm/ptrace.h): 0 is user code, of 32 bits as well.
const MODE: u64 = 0xf;
/// `PSR_MODE32_BIT`.
const IS_32_BITS: u64 = 0x10;

/// `struct pt_regs` (arch/arm64/include/asm/ptrace.h), as far as it is read.
#[repr(C)]
pub struct PtRegs {
    pub user: user_pt_regs,
    /// The first argument of a system call, whose register has the result in the end.
    pub orig_x0: u64,
    /// Number of the system call.
    pub syscallno: i32,
}

impl PtRegs {
    /// Whether they are of 32-bit code.
    #[inline(always)]
    pub const fn is_of_32_bits(pstate: u64) -> bool {
        pstate & IS_32_BITS != 0
    }
}

/// Whether `joular_ebpf::paging` knows this processor's page tables.
pub const READS_PAGE_TABLES: bool = false;

/// Whether the sample interrupted user code; asking for a kernel stack then
/// costs a walk and a cleared buffer for nothing.
#[inline(always)]
pub fn in_user_mode(context: &PerfEventContext) -> bool {
    // SAFETY: the context of a perf_event program starts with the registers.
    unsafe { (*context.ctx).regs.pstate & MODE == 0 }
}

/// Whether this program runs in an interrupt of user code. An interrupt's handler runs on a stack of the CPU, whatever was
/// interrupted, so the stack does not tell; but the kernel keeps where the interrupt's registers are, for each CPU
/// (`set_irq_regs` in arch/arm64/kernel/entry-common.c). Where that cannot be read, the walk of the kernel's stack tells.
#[inline(always)]
pub fn interrupts_user_mode() -> bool {
    pstate_of_interrupted().is_some_and(|pstate| pstate & MODE == 0)
}

#[inline(always)]
fn pstate_of_interrupted() -> Option<u64> {
    /// Of `pstate` in `struct pt_regs`.
    const PSTATE: u64 = core::mem::offset_of!(user_pt_regs, pstate) as u64;
    let (variable, offsets) = (IRQ_REGS.load(), PER_CPU_OFFSET.load());
    if variable == 0 || offsets == 0 {
        return None;
    }
    // SAFETY: helper without arguments.
    let cpu = u64::from(unsafe { bpf_get_smp_processor_id() });
    let of_cpu = read_kernel(offsets.wrapping_add(cpu * 8))?;
    let registers = read_kernel(variable.wrapping_add(of_cpu))?;
    if registers == 0 { None } else { read_kernel(registers.wrapping_add(PSTATE)) }
}

#[inline(always)]
fn read_kernel(address: u64) -> Option<u64> {
    // SAFETY: the helper fails where nothing can be read.
    unsafe { bpf_probe_read_kernel(address as *const u64) }.ok()
}

/// Whether the program of timers runs in an interrupt of the CPU's timer: its tracepoint
/// `irq_handler_entry(int irq, struct irqaction *)` is in all interrupts.
#[inline(always)]
pub fn is_of_timer(context: &BtfTracePointContext) -> bool {
    context.arg::<u32>(0) == TIMER_INTERRUPT.load()
}

/// Whether a frame is the kernel's entry for interrupts. The kernel's own are by far the most.
#[inline(always)]
pub fn is_entry_of_interrupt(frame: u64) -> bool {
    is_in(TIMER_ENTRY.load(), frame)
        || is_in(OTHER_TIMER_ENTRY.load(), frame)
        || is_in(COMPAT_TIMER_ENTRY.load(), frame)
}

/// Offset of the last register of 8 bytes in a probe's context: the stack pointer.
pub const LAST_REGISTER: u32 = 248;

/// Whether the running thread's code is of 32 bits, whose stack is not walked: it has another frame pointer in each mode
/// (T32, A32), if any.
#[inline(always)]
pub fn is_of_32_bits() -> bool {
    // SAFETY: no arguments; `current` is valid for the whole program run.
    let task = unsafe { bpf_get_current_task_btf() };
    // SAFETY: a trusted task; its saved registers stand where its stack begins.
    let regs = unsafe { bpf_task_pt_regs(task) } as *const user_pt_regs;
    // SAFETY: the verifier knows the type, and makes the load one with an exception table entry.
    PtRegs::is_of_32_bits(unsafe { (*regs).pstate })
}

/// Registers of user code at its last entry to the kernel, which a sample of user
/// code is as well: all registers are saved then, interrupts included.
#[inline(always)]
pub fn interrupted_registers() -> Registers<Aarch64> {
    // SAFETY: no arguments; `current` is valid for the whole program run.
    let task = unsafe { bpf_get_current_task_btf() };
    // SAFETY: a trusted task; its saved registers stand where its stack begins.
    let regs = unsafe { bpf_task_pt_regs(task) } as *const user_pt_regs;
    // SAFETY: the verifier knows the type and makes each load one with an exception
    // table entry.
    unsafe {
        Registers {
            pc: (*regs).pc,
            sp: (*regs).sp,
            fp: (*regs).regs[29],
            live: Live {
                lr: (*regs).regs[30],
                x12: (*regs).regs[12],
                x13: (*regs).regs[13],
                x19: (*regs).regs[19],
                x22: (*regs).regs[22],
            },
        }
    }
}
