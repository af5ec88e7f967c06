//! Reading stacks. Each way of unwinding is a file here: it fills the frames
//! of a per-CPU scratch record, leaf first, and returns how many there are.
//! Hashing, deduplication and sending are the same for all and live here.
//!
//! A stack is first only hashed ([`user`], [`kernel`]); if the sample turns out
//! to be the first with these hashes in the window, [`Unwound::introduce`]
//! sends what user space does not know. All later samples skip that.

mod frame_pointer;
mod kernel_frames;

use aya_ebpf::{EbpfContext, bindings::BPF_ANY, programs::PerfEventContext};
use joular_ebpf::abi::{Loss, MAX_STACK_FRAMES, RecordKind, StackHeader, StackId, stack_flags, unwinder, walk_end};

use crate::{
    emit::NO_WAKEUP,
    maps::{EVENTS, KERNEL_SCRATCH, KNOWN_STACKS, STACK_LIMIT, StackScratch, USER_SCRATCH, count_loss},
};

/// A stack that stands in its scratch record, header included.
pub struct Unwound {
    pub id: StackId,
    scratch: Option<*mut StackScratch>,
}

impl Unwound {
    /// No stack: user code was interrupted, or it could not be read.
    pub const NONE: Self = Self { id: StackId::NONE, scratch: None };

    /// Sends the addresses if user space has not seen them; whether it will
    /// have them now.
    #[inline(always)]
    pub fn introduce(&self, tgid: u32) -> bool {
        let Some(scratch) = self.scratch else { return true };
        if KNOWN_STACKS.get_ptr(self.id.0).is_some() {
            return true;
        }
        // SAFETY: a live per-CPU map value, used by one program run at a time.
        let scratch = unsafe { &mut *scratch };
        scratch.header.tgid = tgid;
        send(scratch)
    }
}

/// Stack of the kernel at the sample; none if user code was interrupted.
#[inline(always)]
pub fn kernel(context: &PerfEventContext) -> Unwound {
    if kernel_frames::in_user_mode(context) {
        return Unwound::NONE;
    }
    let Some(scratch) = KERNEL_SCRATCH.get_ptr_mut(0) else { return Unwound::NONE };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let len = kernel_frames::unwind(context, unsafe { &mut (*scratch).frames });
    hash(scratch, len, stack_flags::KERNEL, Loss::KernelStackFailed)
}

/// Stack of the process at the sample, or at its entry to the kernel.
#[inline(always)]
pub fn user(context: &impl EbpfContext) -> Unwound {
    let Some(scratch) = USER_SCRATCH.get_ptr_mut(0) else { return Unwound::NONE };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let len = frame_pointer::unwind(context, unsafe { &mut (*scratch).frames });
    hash(scratch, len, 0, Loss::UserStackFailed)
}

#[inline(always)]
fn hash(scratch: *mut StackScratch, len: Result<usize, ()>, flags: u32, failed: Loss) -> Unwound {
    let Ok(len) = len else {
        count_loss(failed);
        return Unwound::NONE;
    };
    if len == 0 {
        return Unwound::NONE;
    }
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let StackScratch { header, frames } = unsafe { &mut *scratch };
    let mut hash = StackId::seed(flags);
    for (index, frame) in frames.iter().enumerate() {
        if index >= len {
            break;
        }
        hash = StackId::mix(hash, *frame);
    }
    let id = StackId::finish(hash);
    let end = if len as u32 >= STACK_LIMIT.load() { walk_end::DEPTH } else { walk_end::CHAIN };
    // The length goes through the record, not through a register: the verifier
    // would follow each of the loop's exits separately from here on.
    *header = StackHeader {
        kind: RecordKind::STACK,
        flags: flags | stack_flags::user(unwinder::HELPER, end),
        len: len as u32,
        tgid: 0,
        id: id.0,
    };
    Unwound { id, scratch: Some(scratch) }
}

#[inline(always)]
fn send(scratch: &mut StackScratch) -> bool {
    let len = (scratch.header.len as usize).min(MAX_STACK_FRAMES);
    let bytes = size_of::<StackHeader>() + len * size_of::<u64>();
    // SAFETY: header and frames are contiguous (repr(C)) and `bytes` stays
    // within them.
    let record = unsafe { core::slice::from_raw_parts((&raw const *scratch).cast::<u8>(), bytes) };
    if EVENTS.output::<[u8]>(record, NO_WAKEUP).is_err() {
        count_loss(Loss::StackRingFull);
        return false;
    }
    if KNOWN_STACKS.insert(scratch.header.id, 1_u8, u64::from(BPF_ANY)).is_err() {
        count_loss(Loss::KnownStacksFull);
    }
    true
}
