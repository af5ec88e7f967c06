//! Code with a frame of a fixed size, which is nearly all: compiled methods, the
//! wrappers of native methods, runtime stubs.
//!
//! The return address stands in the frame's last word, the caller's frame pointer
//! below it. Only interrupted code may be about to make or remove its frame; its
//! next instruction tells.

use super::{
    Memory, Registers, Step, Tables, Walk,
    hotspot::{Blob, blob_word},
    instructions::{FrameState, in_epilogue, in_prologue},
    stub,
};
use crate::abi::{Field, FrameWord, JvmUnwind};

/// Larger frames are not compiled: a thread's stack is not larger by default.
const MAX_FRAME_WORDS: u64 = 1 << 17;
/// How much more than its size a frame may have: aligned, or with what was pushed.
const SLACK_BYTES: u64 = 64;

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

/// One frame of a method that called another, which is most of them: nothing about
/// it needs to be found out.
#[inline(always)]
pub fn step_in_the_middle(memory: &impl Memory, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    let blob = Blob::of(jvm, walk);
    let compile_id = blob.word(jvm.blob.compile_id) as u32;
    let words = frame_words(&blob, jvm);
    let end = walk.registers.sp.wrapping_add(words * 8);
    let place = walk.registers.pc.wrapping_sub(jvm.code_low) as u32;
    walk.push(FrameWord::compiled_call(compile_id, place))?;
    let [fp, pc] = memory.pair(end.wrapping_sub(16))?;
    walk.return_to(pc, end, fp)
}

/// Whether [`step_in_the_middle`] will do.
#[inline(always)]
pub fn is_in_the_middle(jvm: &JvmUnwind, walk: &Walk) -> bool {
    let blob = Blob::of(jvm, walk);
    walk.header.len >= 2
        && !walk.is_exact()
        && has_frame_size(&blob, jvm)
        && !blob.is_deoptimised(jvm, walk.registers.pc)
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

#[inline(always)]
fn frame_words(blob: &Blob<'_>, jvm: &JvmUnwind) -> u64 {
    blob.word(jvm.blob.frame_size)
}

/// Whether it says how large its frame is: at least what its call pushed, and the
/// frame pointer.
#[inline(always)]
pub(super) fn has_frame_size(blob: &Blob<'_>, jvm: &JvmUnwind) -> bool {
    let words = frame_words(blob, jvm);
    (2..=MAX_FRAME_WORDS).contains(&words)
}

/// Goes on in the caller.
#[inline(always)]
fn caller(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
    let state = frame_state(memory, tables, jvm, walk, kind);
    let Registers { sp, fp, .. } = walk.registers;
    let blob = Blob::of(jvm, walk);
    if !has_frame_size(&blob, jvm) {
        return stub::without_frame(memory, walk);
    }
    let bytes = frame_words(&blob, jvm) * 8;
    match state {
        FrameState::None => stub::without_frame(memory, walk),
        FrameState::Pushed => {
            let [fp, pc] = memory.pair(sp)?;
            walk.return_to(pc, sp.wrapping_add(16), fp)
        }
        FrameState::FramePointer => stub::by_frame_pointer(memory, walk),
        FrameState::Reserved => {
            let end = sp.wrapping_add(bytes);
            let pc = memory.word(end.wrapping_sub(8))?;
            walk.return_to(pc, end, fp)
        }
        FrameState::Whole | FrameState::Unknown => {
            // A wrapper aligns its stack for some calls, a stub does or pushes what it
            // saves; both have a frame pointer where they do.
            let is_close = fp.wrapping_sub(sp) <= bytes + SLACK_BYTES;
            if is_close && has_frame_pointer(memory, tables, jvm, walk, kind) {
                return stub::by_frame_pointer(memory, walk);
            }
            let end = match pushed_bytes(memory, tables, jvm, walk, bytes) {
                Some(pushed) => sp.wrapping_add(bytes).wrapping_add(pushed),
                None if walk.is_exact() && returns_at_once(memory, tables, jvm, walk) => {
                    return stub::without_frame(memory, walk);
                }
                None => sp.wrapping_add(bytes),
            };
            let [fp, pc] = memory.pair(end.wrapping_sub(16))?;
            walk.return_to(pc, end, fp)
        }
    }
}

#[inline(always)]
fn has_frame_pointer(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, kind: Kind) -> bool {
    match kind {
        Kind::Method => false,
        Kind::NativeWrapper => !walk.is_exact(),
        Kind::Stub => stub::has_frame_pointer(memory, tables, jvm, walk),
    }
}

/// What C1's code has pushed beside its frame: up to two words around a type check
/// and its call. Nothing says so but the return address, which is then farther up.
#[inline(always)]
fn pushed_bytes(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, bytes: u64) -> Option<u64> {
    // Only of the leaf and its caller: such calls do not lead to Java.
    if walk.header.len > 2 {
        return Some(0);
    }
    let slot = walk.registers.sp.wrapping_add(bytes).wrapping_sub(8);
    let is_return = |pushed: u64| {
        memory.word(slot.wrapping_add(pushed)).is_ok_and(|pc| tables.is_return_address(memory, jvm, &walk.process, pc))
    };
    if is_return(0) {
        Some(0)
    } else if is_return(16) {
        Some(16)
    } else if is_return(8) {
        Some(8)
    } else {
        None
    }
}

/// Whether the return address is on top of the stack: a wrapper of a native method
/// has checks behind the end of its frame.
#[inline(always)]
fn returns_at_once(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> bool {
    memory.word(walk.registers.sp).is_ok_and(|top| tables.is_return_address(memory, jvm, &walk.process, top))
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
        FrameState::Unknown if returns_at_once(memory, tables, jvm, walk) => FrameState::None,
        FrameState::Unknown => FrameState::Whole,
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
