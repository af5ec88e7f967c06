//! Reads kernel stacks, by the kernel's own unwinder (ORC or frame pointers).

use aya_ebpf::{
    EbpfContext,
    bindings::BPF_F_SKIP_FIELD_MASK,
    helpers::generated::bpf_get_stack,
    programs::{BtfTracePointContext, PerfEventContext},
};
use joular_ebpf::abi::MAX_STACK_FRAMES;

use super::arch;

/// `-EFAULT`: the sample interrupted user code, there is no kernel stack.
const NO_KERNEL_STACK: i64 = -14;

/// Frames of the kernel's timer interrupt, its entry included, before those that it interrupted:
/// about six, and a dozen on aarch64.
const MAX_INTERRUPT_FRAMES: usize = 24;

/// The context of a program that interrupted what it is to sample.
pub trait Interrupted: EbpfContext {
    /// Whether user code was interrupted, if that can be told without a walk: a walk and a cleared
    /// buffer for nothing cost more.
    fn is_user_code(&self) -> bool;

    /// Number of frames of the kernel's stack, leaf first; 0 if user code was interrupted.
    fn kernel_frames(&self, frames: &mut [u64; MAX_STACK_FRAMES]) -> Result<usize, ()>;
}

impl Interrupted for PerfEventContext {
    #[inline(always)]
    fn is_user_code(&self) -> bool {
        arch::in_user_mode(self)
    }

    #[inline(always)]
    fn kernel_frames(&self, frames: &mut [u64; MAX_STACK_FRAMES]) -> Result<usize, ()> {
        read(self, frames, 0)
    }
}

impl Interrupted for BtfTracePointContext {
    #[inline(always)]
    fn is_user_code(&self) -> bool {
        arch::interrupts_user_mode()
    }

    /// The stack as the tracepoint sees it begins with the interrupt. Its entry is the last frame of
    /// that, and the only one if user code was interrupted.
    #[inline(always)]
    fn kernel_frames(&self, frames: &mut [u64; MAX_STACK_FRAMES]) -> Result<usize, ()> {
        let Some(head) = frames.first_chunk_mut::<MAX_INTERRUPT_FRAMES>() else { return Err(()) };
        let len = read(self, head, 0)?;
        let mut skipped = 0;
        for (index, frame) in head.iter().enumerate() {
            if index >= len || skipped != 0 {
                break;
            }
            if arch::is_entry_of_interrupt(*frame) {
                skipped = index + 1;
            }
        }
        if skipped == 0 {
            return Err(());
        }
        if skipped == len {
            return Ok(0);
        }
        read(self, frames, skipped as u64)
    }
}

#[inline(always)]
pub(super) fn is_in([first, last]: [u64; 2], address: u64) -> bool {
    address >= first && address <= last
}

/// Reads the stack without its first `skipped` frames.
#[inline(always)]
fn read<const N: usize>(context: &impl EbpfContext, frames: &mut [u64; N], skipped: u64) -> Result<usize, ()> {
    let flags = skipped & u64::from(BPF_F_SKIP_FIELD_MASK);
    // SAFETY: the context is the program's own, the buffer as large as said.
    let bytes =
        unsafe { bpf_get_stack(context.as_ptr(), frames.as_mut_ptr().cast(), size_of_val(frames) as u32, flags) };
    match bytes {
        0.. => Ok(bytes as usize / size_of::<u64>()),
        NO_KERNEL_STACK => Ok(0),
        _ => Err(()),
    }
}
