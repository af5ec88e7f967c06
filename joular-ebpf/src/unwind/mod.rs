//! Reading stacks. Each way of unwinding is a file here: it fills the frames
//! of the per-CPU scratch record, leaf first, and returns how many there are.
//! Hashing, deduplication and sending are the same for all and live here.

mod frame_pointer;
mod kernel;

use aya_ebpf::{EbpfContext, bindings::BPF_ANY};
use joular_ebpf::abi::{Loss, MAX_STACK_FRAMES, RecordKind, StackHeader, StackId, stack_flags};

use crate::{
    emit::NO_WAKEUP,
    maps::{EVENTS, KNOWN_STACKS, SCRATCH, StackScratch, count_loss},
};

/// Stack of the kernel at the sample; `NONE` if user code was interrupted.
#[inline(always)]
pub fn kernel_stack(context: &impl EbpfContext, tgid: u32) -> StackId {
    let Some(scratch) = scratch() else { return StackId::NONE };
    let len = kernel::unwind(context, &mut scratch.frames);
    remember(scratch, len, tgid, stack_flags::KERNEL, Loss::KernelStackFailed)
}

/// Stack of the process at the sample, or at its entry to the kernel.
#[inline(always)]
pub fn user_stack(context: &impl EbpfContext, tgid: u32) -> StackId {
    let Some(scratch) = scratch() else { return StackId::NONE };
    let len = frame_pointer::unwind(context, &mut scratch.frames);
    remember(scratch, len, tgid, 0, Loss::UserStackFailed)
}

#[inline(always)]
fn scratch() -> Option<&'static mut StackScratch> {
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// Hashes the unwound frames and sends them if user space has not seen them.
#[inline(always)]
fn remember(scratch: &mut StackScratch, len: Result<usize, ()>, tgid: u32, flags: u32, failed: Loss) -> StackId {
    let Ok(len) = len else {
        count_loss(failed);
        return StackId::NONE;
    };
    if len == 0 {
        return StackId::NONE;
    }
    let mut hash = StackId::seed(flags);
    for index in 0..MAX_STACK_FRAMES {
        if index >= len {
            break;
        }
        let Some(frame) = scratch.frames.get(index) else { break };
        hash = StackId::mix(hash, *frame);
    }
    let id = StackId::finish(hash);
    if KNOWN_STACKS.get_ptr(id.0).is_none() {
        send(scratch, len, StackHeader { kind: RecordKind::STACK, flags, len: len as u32, tgid, id: id.0 });
    }
    id
}

#[inline(always)]
fn send(scratch: &mut StackScratch, len: usize, header: StackHeader) {
    scratch.header = header;
    if len >= MAX_STACK_FRAMES {
        scratch.header.flags |= stack_flags::TRUNCATED;
    }
    let bytes = size_of::<StackHeader>() + len.min(MAX_STACK_FRAMES) * size_of::<u64>();
    // SAFETY: header and frames are contiguous (repr(C)) and `bytes` stays
    // within them.
    let record = unsafe { core::slice::from_raw_parts((&raw const *scratch).cast::<u8>(), bytes) };
    if EVENTS.output::<[u8]>(record, NO_WAKEUP).is_err() {
        count_loss(Loss::StackRingFull);
    } else if KNOWN_STACKS.insert(header.id, 1_u8, u64::from(BPF_ANY)).is_err() {
        count_loss(Loss::KnownStacksFull);
    }
}
