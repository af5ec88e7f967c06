//! Reads stacks. Each way of unwinding is a file here: it fills the frames of a per-CPU scratch
//! record, leaf first, and returns how many there are. Hashing, deduplication and sending are the
//! same for all and live here.
//!
//! A stack is first only hashed ([`user`], [`kernel`]). If the sample turns out to be the first
//! with these hashes in the window, [`Unwound::introduce`] sends what user space does not know. All
//! later samples skip that.

mod arch;
mod frame_pointer;
mod hinted;
mod kernel_frames;
mod tables;

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST},
    helpers::bpf_get_smp_processor_id,
};
use joular_ebpf::abi::{
    CHEAP_RECORD_BYTES, FrameWord, Loss, MAX_STACK_FRAMES, MAX_USER_FRAMES, RecordKind, StackHeader, StackId,
    stack_flags, unwinder, walk_end,
};

use crate::{
    emit::{self, WAKE_WHEN_READ},
    maps::{
        CALLERS_WALKED, EVENTS, KERNEL_SCRATCH, KNOWN_STACKS, SECOND_WALK, STACK_LIMIT, WALK, WALK_UNDER_WAY,
        count_loss,
    },
    task::Task,
};

#[cfg(bpf_target_arch = "aarch64")]
pub use arch::PtRegs;
pub use arch::{LAST_REGISTER, is_of_timer};
pub use kernel_frames::Interrupted;

/// A stack in its scratch record, the words behind the header.
pub struct Unwound {
    pub id: StackId,
    header: Option<*mut StackHeader>,
    /// Words that the record has room for.
    capacity: usize,
}

impl Unwound {
    /// No stack: user code was interrupted, or it could not be read.
    pub const NONE: Self = Self { id: StackId::NONE, header: None, capacity: 0 };

    /// What stands for the stack of a thread whose memory is gone.
    pub const ENDED: Self = Self { id: StackId::ENDED, header: None, capacity: 0 };

    #[inline(always)]
    fn of(id: StackId, header: *mut StackHeader, capacity: usize) -> Self {
        if id == StackId::NONE { Self::NONE } else { Self { id, header: Some(header), capacity } }
    }

    /// Sends the addresses if user space has not seen them, and returns whether it will have them
    /// now.
    #[inline(always)]
    pub fn introduce(&self, tgid: u32) -> bool {
        let Some(header) = self.header else { return true };
        if KNOWN_STACKS.get_ptr(self.id.0).is_some() {
            return true;
        }
        // SAFETY: a live per-CPU map value, used by one program run at a time.
        unsafe { (*header).tgid = tgid };
        send(header, self.capacity)
    }
}

/// Stack of the kernel at the sample; none if user code was interrupted.
#[inline(always)]
pub fn kernel(context: &impl Interrupted) -> Unwound {
    if context.is_user_code() {
        return Unwound::NONE;
    }
    let Some(scratch) = KERNEL_SCRATCH.get_ptr_mut(0) else { return Unwound::NONE };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let scratch = unsafe { &mut *scratch };
    let len = context.kernel_frames(&mut scratch.frames);
    let id = identify(&mut scratch.header, len, stack_flags::KERNEL, hash_kernel_frames, Loss::KernelStackFailed);
    Unwound::of(id, &mut scratch.header, MAX_STACK_FRAMES)
}

/// Stack of the process at the sample, or at its entry to the kernel.
#[inline(always)]
pub fn user(context: &impl Interrupted, task: Task, tgid: u32) -> Unwound {
    if task.is_kernel_thread() {
        return Unwound::NONE;
    }
    if task.has_no_memory() {
        return Unwound::ENDED;
    }
    let interrupted = begin_walk_of_sample();
    let id = tables::walk(task, tgid);
    end_walk_of_sample(interrupted);
    let id = match id {
        Some(id) => id,
        None => by_frame_pointers(context),
    };
    let Some(walk) = WALK.get_ptr_mut(0) else { return Unwound::NONE };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    Unwound::of(id, unsafe { &raw mut (*walk).header }, MAX_USER_FRAMES)
}

/// Goes on with the walk of samples; which one the sample has interrupted, if this CPU has two.
#[inline(always)]
fn begin_walk_of_sample() -> Option<u32> {
    let under_way = if SECOND_WALK.load() == 0 { return None } else { WALK_UNDER_WAY.get_ptr_mut(0)? };
    // SAFETY: a live per-CPU map value. Whoever is interrupted does not see the change.
    Some(unsafe { core::ptr::replace(under_way, SAMPLE) })
}

#[inline(always)]
fn end_walk_of_sample(interrupted: Option<u32>) {
    if let (Some(interrupted), Some(under_way)) = (interrupted, WALK_UNDER_WAY.get_ptr_mut(0)) {
        // SAFETY: as above.
        unsafe { *under_way = interrupted };
    }
}

/// Where a second walk begins.
#[derive(Clone, Copy)]
pub enum From {
    /// In the caller of the user's function that was just entered, with a leaf of the program's choice.
    CallerWithLeaf(FrameWord),
    /// Where the thread entered the kernel.
    KernelEntry,
}

/// Reads a stack of the running thread for a program that may be put off in the middle, and hands it on. `None`: another
/// thread's is being read on this CPU, which was put off meanwhile.
#[inline(always)]
pub fn interruptible<T>(tgid: u32, from: From, take: impl FnOnce(Unwound) -> T) -> Option<T> {
    // SAFETY: helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // The programs of two threads may both be here, one put off: only one of them adds the entry.
    CALLERS_WALKED.insert(cpu, 1, u64::from(BPF_NOEXIST)).ok()?;
    let result = second_walk(tgid, from).map(take);
    let _ = CALLERS_WALKED.remove(cpu);
    result
}

#[inline(always)]
fn second_walk(tgid: u32, from: From) -> Option<Unwound> {
    let under_way = WALK_UNDER_WAY.get_ptr_mut(0)?;
    // SAFETY: a live per-CPU map value. A sample that interrupts this one leaves it as it was.
    unsafe { *under_way = INTERRUPTIBLE };
    let id = tables::walk_from(tgid, from);
    // SAFETY: as above.
    unsafe { *under_way = SAMPLE };
    let walk = WALK.get_ptr_mut(INTERRUPTIBLE)?;
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    Some(Unwound::of(id, unsafe { &raw mut (*walk).header }, MAX_USER_FRAMES))
}

/// Indices of a CPU's walks.
const SAMPLE: u32 = 0;
const INTERRUPTIBLE: u32 = 1;

#[inline(always)]
fn by_frame_pointers(context: &impl Interrupted) -> StackId {
    if arch::is_of_32_bits() {
        return StackId::NONE;
    }
    let Some(walk) = WALK.get_ptr_mut(0) else { return StackId::NONE };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let walk = unsafe { &mut *walk };
    let Some(frames) = walk.words.first_chunk_mut::<MAX_STACK_FRAMES>() else { return StackId::NONE };
    let len = frame_pointer::unwind(context, frames);
    identify(&mut walk.header, len, 0, hash_user_frames, Loss::UserStackFailed)
}

/// Hash of the first frames that are in [`KERNEL_SCRATCH`]. A global function, like the next one: the verifier
/// would follow the rest of a program for each of the loop's exits.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hash_kernel_frames(len: u32) -> u64 {
    let Some(scratch) = KERNEL_SCRATCH.get_ptr(0) else { return 0 };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    hash(stack_flags::KERNEL, unsafe { &(*scratch).frames }, len)
}

/// Hash of the first words that are in [`WALK`].
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hash_user_frames(len: u32) -> u64 {
    let Some(walk) = WALK.get_ptr(0) else { return 0 };
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    hash(0, unsafe { &(*walk).words }, len)
}

#[inline(always)]
fn hash(flags: u32, frames: &[u64], len: u32) -> u64 {
    let mut hash = StackId::seed(flags);
    for frame in frames.iter().take(MAX_STACK_FRAMES).take(len as usize) {
        hash = StackId::mix(hash, *frame);
    }
    hash
}

/// Completes the header, and returns the id of the stack.
#[inline(always)]
fn identify(
    header: &mut StackHeader,
    len: Result<usize, ()>,
    flags: u32,
    hash: extern "C" fn(u32) -> u64,
    failed: Loss,
) -> StackId {
    let Ok(len) = len else {
        count_loss(failed);
        return StackId::NONE;
    };
    if len == 0 {
        return StackId::NONE;
    }
    let id = StackId::finish(hash(len as u32));
    let end = if len as u32 >= STACK_LIMIT.load() { walk_end::DEPTH } else { walk_end::CHAIN };
    *header = StackHeader {
        kind: RecordKind::STACK,
        flags: flags | stack_flags::user(unwinder::HELPER, end),
        len: len as u32,
        tgid: 0,
        id: id.0,
    };
    id
}

#[inline(always)]
fn send(header: *mut StackHeader, capacity: usize) -> bool {
    // SAFETY: a live per-CPU map value, used by one program run at a time.
    let (len, id, tgid) = unsafe { ((*header).len, (*header).id, (*header).tgid) };
    let bytes = size_of::<StackHeader>() + (len as usize).min(capacity) * size_of::<u64>();
    // SAFETY: header and words are contiguous (repr(C)) and `bytes` stays within
    // them.
    let record = unsafe { core::slice::from_raw_parts(header.cast::<u8>().cast_const(), bytes) };
    // A program can make short stacks as fast as it allocates or reads.
    if !emit::admits(tgid, (bytes as u32).max(CHEAP_RECORD_BYTES)) {
        return false;
    }
    if EVENTS.output::<[u8]>(record, WAKE_WHEN_READ).is_err() {
        count_loss(Loss::StackRingFull);
        return false;
    }
    if KNOWN_STACKS.insert(id, 1_u8, u64::from(BPF_ANY)).is_err() {
        count_loss(Loss::KnownStacksFull);
    }
    true
}
