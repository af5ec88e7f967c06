//! Steps into the part of a virtual thread's stack that is in the heap, from part to part, and out of it.
//!
//! A continuation has a list of objects `jdk.internal.vm.StackChunk`, the newest first. Each holds words that were
//! copied from a stack, so the frames in it are stepped through as those on a stack are, with two differences. In a
//! frame of the interpreter, what points into its own frame counts words from there (`StackChunkFrameStream`), and so
//! does the frame pointer saved for it. And the oldest frame of a chunk returns nowhere: its end says that it is the
//! oldest. This is so in JDK 21 to 25.
//!
//! The heap may change meanwhile, and a stale reference lead anywhere. So all must fit: the fields of a chunk, the
//! return address of its newest frame, and the end of its oldest frame with that of the chunk. If anything does not,
//! none of the frames that were found in the heap are kept.

use super::{
    End, MAX_USER_FRAMES, Memory, Tables, USER_END, Walk, arch::Arch, continuation::ENTRY_CONTINUATION,
    hotspot::blob_word,
};
use crate::abi::{ContinuationLayout, FrameWord, JvmUnwind, references};

/// Chunks in one walk; together they have fewer frames than steps that a walk may take.
const MAX_CHUNKS: u32 = 24;
/// Of those without frames, one after the other: when its last frame has left a chunk, the JVM keeps that for the next.
const MAX_EMPTY: u32 = 4;
/// A stack is at most 1 GiB large.
const MAX_WORDS: u64 = 1 << 27;
/// What the oldest frame may lack up to the end of a chunk: it was aligned.
const ALIGNMENT_BYTES: u64 = 16;
/// Frames of native code above which the JVM's frames are looked for.
const MAX_NATIVE: usize = 64;

/// Where a walk is in a chunk, and what it needs behind that.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Address of its frames' end; 0: the walk is on a stack.
    bottom: u64,
    /// The next older chunk's address; 0: there is none.
    parent: u64,
    /// Address of the thread's `ContinuationEntry`.
    entry: u64,
    /// Address of the stub that the thread returns to where its stack goes on in the heap. It stands for the return
    /// address of a chunk's oldest frame.
    barrier: u64,
    /// How many words there were before the first chunk, and their hash.
    len: u32,
    /// How many chunks there have been.
    count: u32,
    hash: u64,
}

impl Chunk {
    pub const NONE: Self = Self { bottom: 0, parent: 0, entry: 0, barrier: 0, len: 0, count: 0, hash: 0 };

    #[inline(always)]
    pub const fn is_walked(&self) -> bool {
        self.bottom != 0
    }

    /// Where a frame of the chunk that ends at `sp` returns to.
    #[inline(always)]
    pub const fn return_address(&self, pc: u64, sp: u64) -> Result<u64, End> {
        let left = self.bottom.wrapping_sub(sp);
        if sp > self.bottom {
            Err(End::IMPLAUSIBLE)
        } else if left == 0 || pc == 0 && left <= ALIGNMENT_BYTES {
            Ok(self.barrier)
        } else {
            Ok(pc)
        }
    }
}

impl<A: Arch> Walk<A> {
    /// Whether the frames being walked are in the heap.
    #[inline(always)]
    pub const fn is_in_chunk(&self) -> bool {
        self.chunk.is_walked()
    }
}

/// Goes on in the chunk with the newest frames of the thread that was entered there. `false`: nothing has changed.
#[inline(always)]
pub(super) fn begin<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    entry: u64,
) -> bool {
    let layout = &jvm.continuation;
    // The wrapper by which a thread leaves its carrier may just have put all frames on the stack into the heap.
    if layout.references == references::NONE || walk.is_in_wrapper != 0 {
        return false;
    }
    let tail = memory
        .word(entry.wrapping_add(ENTRY_CONTINUATION))
        .ok()
        .and_then(|continuation| reference::<A>(memory, layout, continuation.wrapping_add(u64::from(layout.tail))));
    let Some(tail) = tail else { return false };
    let Chunk { count, .. } = walk.chunk;
    let (barrier, len, hash) = (walk.registers.pc, walk.header.len, walk.hash);
    walk.chunk = Chunk { bottom: 0, parent: tail, entry, barrier, len, count, hash };
    enter_next(memory, tables, jvm, walk) == Some(true)
}

/// Goes on behind the oldest frame of a chunk: in the next one. `false`: there is none, or something did not fit.
#[inline(always)]
pub(super) fn go_on_behind<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
) -> bool {
    let is_behind = walk.registers.pc == walk.chunk.barrier;
    let is_entered = if is_behind { enter_next(memory, tables, jvm, walk) } else { None };
    if is_entered == Some(true) {
        return true;
    }
    if is_entered.is_none() || is_being_frozen(walk) {
        walk.header.len = walk.chunk.len;
        walk.hash = walk.chunk.hash;
        walk.is_frozen = 1;
        // There is room: a frame of the chunk had a word there.
        let _ = walk.push(blob_word(jvm, walk.chunk.barrier));
    }
    false
}

/// Leaves the heap. Returns the address of the thread's entry.
#[inline(always)]
pub(super) const fn leave<A: Arch>(walk: &mut Walk<A>) -> u64 {
    walk.chunk.bottom = 0;
    walk.chunk.entry
}

/// Whether frames on the stack have been copied to the heap: C++ is putting them there. The newest in the heap is then
/// the one that called it, on which there may be the frame of a wrapper.
#[inline(always)]
fn is_being_frozen<A: Arch>(walk: &Walk<A>) -> bool {
    let word = |index: usize| walk.words.get(index & (MAX_USER_FRAMES - 1)).copied().unwrap_or(0);
    if FrameWord(word(0)).is_of_a_jvm() {
        return false;
    }
    let on_stack = walk.chunk.len as usize;
    let newest = word(on_stack);
    for index in 1..MAX_NATIVE {
        if FrameWord(word(index)).is_of_a_jvm() {
            return word(index) == newest || index + 1 < on_stack && word(index + 1) == newest;
        }
    }
    true
}

/// Enters the next chunk that has frames. `Some(false)`: there is none, `None`: something does not fit.
#[inline(always)]
fn enter_next<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
) -> Option<bool> {
    for _ in 0..=MAX_EMPTY {
        let chunk = walk.chunk.parent;
        if chunk == 0 {
            return Some(false);
        }
        if enter(memory, tables, jvm, walk, chunk)? {
            return Some(true);
        }
    }
    None
}

/// Enters a chunk. `Some(false)`: it has no frames.
#[inline(always)]
fn enter<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    chunk: u64,
) -> Option<bool> {
    let layout = &jvm.continuation;
    let field = |offset: u16| {
        let word = memory.word(chunk.wrapping_add(u64::from(offset))).ok()?;
        Some(word & u64::from(u32::MAX))
    };
    let (size, bottom, sp) = (field(layout.size)?, field(layout.bottom)?, field(layout.sp)?);
    if walk.chunk.count >= MAX_CHUNKS || chunk >= USER_END || size > MAX_WORDS || bottom > size || sp > bottom {
        return None;
    }
    walk.chunk.parent = reference::<A>(memory, layout, chunk.wrapping_add(u64::from(layout.parent)))?;
    if sp == bottom {
        return Some(false);
    }
    let words = chunk.wrapping_add(u64::from(layout.words));
    let top = words.wrapping_add(sp * 8);
    // As in front of any frame that called: what was saved for it, and where it goes on.
    let saved = top.wrapping_sub(16);
    let [fp, pc] = memory.pair(saved).ok()?;
    let pc = A::code_address(pc);
    if saved < words || pc == walk.chunk.barrier || !tables.is_return_address(memory, jvm, walk, pc) {
        return None;
    }
    walk.chunk.count += 1;
    walk.chunk.bottom = words.wrapping_add(bottom * 8);
    walk.registers.pc = pc;
    walk.registers.sp = top;
    walk.registers.fp = walk.in_frame(saved, fp);
    Some(true)
}

/// The address that a reference in an object leads to; 0: none.
#[inline(always)]
fn reference<A: Arch>(memory: &impl Memory, layout: &ContinuationLayout, place: u64) -> Option<u64> {
    let word = memory.word(place).ok()?;
    Some(match layout.references {
        references::NARROW => match word & u64::from(u32::MAX) {
            0 => 0,
            narrow => layout.narrow_base.wrapping_add(narrow << (layout.narrow_shift & 31)),
        },
        references::COLOURED => A::uncoloured(word),
        _ => word,
    })
}
