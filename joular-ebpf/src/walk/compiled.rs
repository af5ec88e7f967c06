//! Steps through code with a frame of a fixed size, which is nearly all: compiled methods, the
//! wrappers of native methods, runtime stubs.
//!
//! The return address stands in the frame's last word, the caller's frame pointer below it. Only
//! interrupted code may be about to make or remove its frame; how it does that depends on the
//! architecture.

use super::{
    Memory, Step, Tables, Walk,
    arch::Arch,
    continuation::is_entered,
    hotspot::{Blob, blob_word},
};
use crate::abi::{CompiledFrame, FrameWord, JvmUnwind};

/// Larger frames are not compiled: a thread's stack is not larger by default.
const MAX_FRAME_WORDS: u64 = 1 << 17;

/// What such code belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Method,
    NativeWrapper,
    Stub,
}

/// One frame of such code.
#[inline(always)]
pub fn step<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    kind: Kind,
) -> Step {
    if kind == Kind::Stub {
        walk.push(blob_word(jvm, walk.registers.pc))?;
        return A::compiled_caller(memory, tables, jvm, walk, kind);
    }
    if kind == Kind::NativeWrapper {
        note_wrapper(memory, tables, jvm, walk);
    }
    let blob = Blob::of(jvm, walk);
    let compile_id = blob.word(jvm.blob.compile_id) as u32;
    let place = place(memory, jvm, walk).wrapping_sub(jvm.code_low) as u32;
    walk.push(if walk.is_exact() {
        FrameWord::compiled_at(compile_id, place)
    } else {
        FrameWord::compiled_call(compile_id, place)
    })?;
    A::compiled_caller(memory, tables, jvm, walk, kind)
}

/// Notes what virtual threads need to know of wrappers: whether one was interrupted, and where the one goes on that
/// enters them.
#[inline(always)]
fn note_wrapper<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk<A>) {
    let bytes = frame_words(&Blob::of(jvm, walk), jvm) * 8;
    let pc = walk.registers.pc;
    if walk.is_exact() {
        walk.is_in_wrapper = 1;
    } else if pc != jvm.enter_special && !walk.is_in_chunk() && is_entered(memory, tables, jvm, walk, bytes) {
        tables.enters(&walk.process, pc);
    }
}

/// One frame of a method that called another, which is most of them: nothing about it needs to be
/// searched.
#[inline(always)]
pub fn step_in_the_middle<A: Arch>(
    memory: &impl Memory,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    frame: CompiledFrame,
) -> Step {
    let end = walk.registers.sp.wrapping_add(u64::from(frame.words) * 8);
    let place = walk.registers.pc.wrapping_sub(jvm.code_low) as u32;
    walk.push(FrameWord::compiled_call(frame.compile_id, place))?;
    let slot = end.wrapping_sub(16);
    let [fp, pc] = memory.pair(slot)?;
    walk.return_to(pc, end, walk.in_frame(slot, fp))
}

/// Whether the frame called another method, so that [`step_in_the_middle`] will do if its code is that of a method.
#[inline(always)]
pub fn is_in_the_middle<A: Arch>(walk: &Walk<A>) -> bool {
    walk.header.len >= 2 && !walk.is_exact() && !walk.has_called_no_method(1)
}

/// The frame of the method whose block was read; `None` if its size is not known, or it has been deoptimised.
#[inline(always)]
pub fn frame<A: Arch>(jvm: &JvmUnwind, walk: &Walk<A>) -> Option<CompiledFrame> {
    let blob = Blob::of(jvm, walk);
    if !has_frame_size(&blob, jvm) || blob.is_deoptimised(jvm, walk.registers.pc) {
        return None;
    }
    let id_at = walk.block.blob.wrapping_add(u64::from(jvm.blob.compile_id.offset)).wrapping_sub(jvm.code_low);
    Some(CompiledFrame {
        compile_id: blob.word(jvm.blob.compile_id) as u32,
        id_at: id_at as u32,
        words: frame_words(&blob, jvm) as u32,
        padding: 0,
    })
}

/// What was remembered of the program counter, if the code there is still the same. One word says so, where all of the
/// block is some cache lines that nobody else reads.
#[inline(always)]
pub fn remembered<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk<A>,
) -> Option<CompiledFrame> {
    let frame = tables.remembered_frame(&walk.process, walk.registers.pc)?;
    let word = memory.word(jvm.code_low.wrapping_add(u64::from(frame.id_at))).ok()?;
    (word as u32 == frame.compile_id).then_some(frame)
}

/// The program counter; of a deoptimised method the one that was replaced.
#[inline(always)]
fn place<A: Arch>(memory: &impl Memory, jvm: &JvmUnwind, walk: &Walk<A>) -> u64 {
    let pc = walk.registers.pc;
    let blob = Blob::of(jvm, walk);
    if walk.is_exact() || !blob.is_deoptimised(jvm, pc) {
        return pc;
    }
    match memory.word(walk.registers.sp.wrapping_add(blob.word(jvm.blob.orig_pc))) {
        Ok(original) if original >= walk.block.start && original < walk.block.end => original,
        _ => pc,
    }
}

#[inline(always)]
pub(super) fn frame_words(blob: &Blob<'_>, jvm: &JvmUnwind) -> u64 {
    blob.word(jvm.blob.frame_size)
}

/// Whether the blob says how large its frame is: at least what its call pushed, and the frame
/// pointer.
#[inline(always)]
pub(super) fn has_frame_size(blob: &Blob<'_>, jvm: &JvmUnwind) -> bool {
    let words = frame_words(blob, jvm);
    (2..=MAX_FRAME_WORDS).contains(&words)
}
