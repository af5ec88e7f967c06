//! Code with a frame of a fixed size, which is nearly all: compiled methods, the
//! wrappers of native methods, runtime stubs.
//!
//! The return address stands in the frame's last word, the caller's frame pointer
//! below it. Only interrupted code may be about to make or remove its frame; its
//! next instruction tells.

use super::{
    Memory, Step, Tables, Walk,
    hotspot::{Blob, blob_word},
    instructions::{FrameState, in_epilogue, in_prologue},
    is_return_address, stub,
};
use crate::abi::{Field, FrameWord, JvmUnwind};

/// Larger frames are not compiled: a thread's stack is not larger by default.
const MAX_FRAME_WORDS: u64 = 1 << 17;
/// How much more than its size a native wrapper's frame may have, aligned for a call.
const ALIGNMENT_SLACK_BYTES: u64 = 64;

/// What such code belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Method,
    NativeWrapper,
    Stub,
}

/// One frame of such code.
#[inline(always)]
pub fn step(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
    if kind == Kind::Stub {
        walk.push(blob_word(jvm, walk.registers.pc))?;
        return caller(memory, tables, jvm, walk, kind);
    }
    let blob = Blob::of(jvm, walk);
    let compile_id = blob.word(jvm.blob.compile_id) as u32;
    let place = place(memory, jvm, walk).wrapping_sub(jvm.code_low) as u32;
    walk.push(if walk.is_exact() {
        FrameWord::compiled_at(compile_id, place)
    } else {
        FrameWord::compiled_call(compile_id, place)
    })?;
    caller(memory, tables, jvm, walk, kind)
}

/// The program counter; of a deoptimised method the one that was replaced.
#[inline(always)]
fn place(memory: &impl Memory, jvm: &JvmUnwind, walk: &Walk) -> u64 {
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

/// Goes on in the caller.
#[inline(always)]
fn caller(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
    let frame_words = Blob::of(jvm, walk).word(jvm.blob.frame_size);
    let state = frame_state(memory, tables, jvm, walk, kind);
    let sp = walk.registers.sp;
    match state {
        FrameState::Pushed => {
            let [fp, pc] = memory.pair(sp)?;
            walk.return_to(pc, sp.wrapping_add(16), fp)
        }
        FrameState::Whole | FrameState::Reserved if frame_words >= 2 && frame_words <= MAX_FRAME_WORDS => {
            let bytes = frame_words * 8;
            // It aligns its stack for some calls, and has a frame pointer.
            let above = walk.registers.fp.wrapping_sub(sp);
            if kind == Kind::NativeWrapper && !walk.is_exact() && above <= bytes + ALIGNMENT_SLACK_BYTES {
                return stub::by_frame_pointer(memory, walk);
            }
            let end = sp.wrapping_add(bytes);
            let [fp, pc] = memory.pair(end.wrapping_sub(16))?;
            let fp = if state == FrameState::Reserved { walk.registers.fp } else { fp };
            walk.return_to(pc, end, fp)
        }
        _ => stub::without_frame(memory, walk),
    }
}

#[inline(always)]
fn frame_state(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, kind: Kind) -> FrameState {
    if !walk.is_exact() {
        return FrameState::Whole;
    }
    let pc = walk.registers.pc;
    let Ok(next) = memory.pair(pc) else { return FrameState::Whole };
    let blob = Blob::of(jvm, walk);
    let offset = pc.wrapping_sub(blob.code_begin(jvm)) as i64;
    let complete = signed(blob.word(jvm.blob.frame_complete), jvm.blob.frame_complete);
    if offset >= complete || offset < 0 {
        return in_epilogue(next);
    }
    // The check of the receiver's class stands in front of all.
    if kind != Kind::Stub && pc < blob.verified_entry(jvm) {
        return FrameState::None;
    }
    match in_prologue(next, memory.word(pc.wrapping_sub(8)).unwrap_or(0)) {
        // A method's prologue ends with checks; a wrapper may have no frame at all.
        FrameState::Unknown if kind == Kind::Method => FrameState::Whole,
        FrameState::Unknown => match memory.word(walk.registers.sp) {
            Ok(top) if is_return_address(memory, tables, walk, jvm, top) => FrameState::None,
            _ => FrameState::Whole,
        },
        state => state,
    }
}

/// A field's value, which may be negative.
#[inline(always)]
const fn signed(word: u64, field: Field) -> i64 {
    match field.width {
        2 => word as i16 as i64,
        4 => word as i32 as i64,
        _ => word as i64,
    }
}
