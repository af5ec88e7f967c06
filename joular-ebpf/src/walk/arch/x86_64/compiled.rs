//! Tells how code with a frame of a fixed size makes and removes it, and where its return address
//! is meanwhile, by the interrupted instruction.

use super::{
    Registers,
    instructions::{FrameState, in_epilogue, in_prologue},
    stub,
};
use crate::{
    abi::{Field, JvmUnwind},
    walk::{
        Memory, Step, Tables, Walk,
        compiled::{Kind, frame_words, has_frame_size},
        hotspot::Blob,
    },
};

/// How much larger than its size a frame may be: aligned, or with what was pushed.
const SLACK_BYTES: u64 = 64;

/// Goes on in the caller.
#[inline(always)]
pub(in crate::walk) fn caller(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
    kind: Kind,
) -> Step {
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

/// What C1's code has pushed beside its frame: up to two words around a type check and its call.
/// Only the return address, which is then farther up, shows it.
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
