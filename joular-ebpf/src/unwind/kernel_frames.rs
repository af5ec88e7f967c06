//! Kernel stacks, by the kernel's own unwinder (ORC or frame pointers).

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_stack, programs::PerfEventContext};
use joular_ebpf::abi::MAX_STACK_FRAMES;

/// `-EFAULT`: the sample interrupted user code, there is no kernel stack.
const NO_KERNEL_STACK: i64 = -14;

/// Number of frames; 0 in user mode.
#[inline(always)]
pub fn unwind(context: &impl EbpfContext, frames: &mut [u64; MAX_STACK_FRAMES]) -> Result<usize, ()> {
    // SAFETY: the context is the program's own, the buffer as large as said.
    let bytes = unsafe { bpf_get_stack(context.as_ptr(), frames.as_mut_ptr().cast(), size_of_val(frames) as u32, 0) };
    match bytes {
        0.. => Ok(bytes as usize / size_of::<u64>()),
        NO_KERNEL_STACK => Ok(0),
        _ => Err(()),
    }
}

/// Whether the sample interrupted user code; asking for a kernel stack then
/// costs a walk and a cleared buffer for nothing.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn in_user_mode(context: &PerfEventContext) -> bool {
    /// Requested privilege level of the code segment.
    const RPL: u64 = 3;
    // SAFETY: the context of a perf_event program starts with the registers.
    unsafe { (*context.ctx).regs.cs & RPL == RPL }
}

/// Elsewhere the helper finds out.
#[cfg(not(bpf_target_arch = "x86_64"))]
#[inline(always)]
pub fn in_user_mode(_context: &PerfEventContext) -> bool {
    false
}
