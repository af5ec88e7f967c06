//! Reads user stacks by the chain of saved frame pointers, which the kernel's helper walks. From a
//! sample in the kernel the walk starts at the registers saved at kernel entry. Code built without
//! frame pointers cuts the chain short.

use aya_ebpf::{EbpfContext, bindings::BPF_F_USER_STACK, helpers::generated::bpf_get_stack};
use joular_ebpf::abi::MAX_STACK_FRAMES;

/// Number of frames, leaf first.
#[inline(always)]
pub fn unwind(context: &impl EbpfContext, frames: &mut [u64; MAX_STACK_FRAMES]) -> Result<usize, ()> {
    // SAFETY: the context is the program's own, the buffer as large as said.
    let bytes = unsafe {
        bpf_get_stack(
            context.as_ptr(),
            frames.as_mut_ptr().cast(),
            size_of_val(frames) as u32,
            u64::from(BPF_F_USER_STACK),
        )
    };
    if bytes < 0 { Err(()) } else { Ok(bytes as usize / size_of::<u64>()) }
}
