//! Reads kernel stacks, by the kernel's own unwinder (ORC or frame pointers).

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_stack};
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
