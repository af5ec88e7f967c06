//! Tells how code with a frame of a fixed size makes and removes it, and where its return address
//! is meanwhile, by the interrupted instruction.

use super::{
    Registers,
    instructions::{Four, FrameState, around, saves},
    spills::spilled_bytes,
    stub,
};
use crate::{
    abi::{Field, JvmUnwind},
    walk::{
        End, Memory, Step, Tables, Walk,
        compiled::{Kind, frame_words, has_frame_size},
        continuation::is_entered,
        hotspot::Blob,
    },
};

/// How much larger than its size a frame with a frame pointer may be.
const SLACK_BYTES: u64 = 64;
/// Pairs of instructions in front of a frame: checks of the class, and stores that touch the stack to come.
const PROLOGUE_PAIRS: u64 = 24;

/// Goes on in the caller.
#[inline(always)]
pub(in crate::walk) fn caller(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
    kind: Kind,
) -> Step {
    let blob = Blob::of(jvm, walk);
    if !has_frame_size(&blob, jvm) {
        return stub::without_frame(memory, tables, jvm, walk);
    }
    let bytes = frame_words(&blob, jvm) * 8;
    let sp = walk.registers.sp;
    match frame_state(memory, jvm, walk, kind, bytes) {
        FrameState::None => stub::by_link(memory, tables, jvm, walk, sp),
        FrameState::Reserved => stub::by_link(memory, tables, jvm, walk, sp.wrapping_add(bytes)),
        FrameState::Pair => {
            let [fp, pc] = memory.pair(sp)?;
            walk.return_to(pc, sp.wrapping_add(16), fp)
        }
        FrameState::Whole => {
            if has_frame_pointer(memory, tables, jvm, walk, kind, bytes) {
                return stub::by_frame_pointer(memory, walk);
            }
            if !walk.registers.has_sp() {
                return Err(End::IMPLAUSIBLE);
            }
            let end = frame_end(memory, tables, jvm, walk, kind, sp.wrapping_add(bytes))?;
            let slot = end.wrapping_sub(16);
            let [fp, pc] = memory.pair(slot)?;
            walk.return_to(pc, end, walk.in_frame(slot, fp))
        }
    }
}

/// Whether code with a frame of this size has a frame pointer. A wrapper's callees keep it, but for those that a
/// virtual thread brings from the heap.
#[inline(always)]
fn has_frame_pointer(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
    kind: Kind,
    bytes: u64,
) -> bool {
    let Registers { sp, fp, .. } = walk.registers;
    // Where only a bound is known of the stack pointer, the frame pointer may be far above it.
    let is_close = !walk.registers.has_sp() || fp.wrapping_sub(sp) <= bytes + SLACK_BYTES;
    kind != Kind::Method
        && is_close
        && stub::has_frame_pointer(memory, tables, jvm, walk)
        && (kind == Kind::Stub || !is_entered(memory, tables, jvm, walk, bytes))
}

/// Where a frame ends, which is above its size if the code has kept something beside it. Near the leaf, and where
/// native code was called, the return address has to prove it.
#[inline(always)]
fn frame_end(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
    kind: Kind,
    end: u64,
) -> Result<u64, End> {
    let is_proved = |walk: &Walk, end: u64| {
        memory.word(end.wrapping_sub(8)).is_ok_and(|pc| tables.is_return_address(memory, jvm, &walk.process, pc))
    };
    let has_called_no_method = walk.has_called_no_method(2);
    if !has_called_no_method && !walk.is_near_leaf() {
        return Ok(end);
    }
    // Of code that was interrupted most has kept nothing.
    if !has_called_no_method && is_proved(walk, end) {
        return Ok(end);
    }
    if kind == Kind::Method
        && let Some(spilled) = spilled_bytes(memory, walk)
    {
        let above = end.wrapping_add(spilled);
        if is_proved(walk, above) {
            return Ok(above);
        }
    }
    if is_proved(walk, end) { Ok(end) } else { Err(End::IMPLAUSIBLE) }
}

#[inline(always)]
fn frame_state(memory: &impl Memory, jvm: &JvmUnwind, walk: &Walk, kind: Kind, bytes: u64) -> FrameState {
    if !walk.is_exact() {
        return FrameState::Whole;
    }
    let pc = walk.registers.pc;
    let blob = Blob::of(jvm, walk);
    let begin = blob.code_begin(jvm);
    // The check of the receiver's class stands in front of all.
    let entry = if kind == Kind::Stub { begin } else { blob.verified_entry(jvm) };
    if pc <= entry {
        return FrameState::None;
    }
    let (Some(before), Some(next)) = (Four::read(memory, pc.wrapping_sub(16)), Four::read(memory, pc)) else {
        return FrameState::Whole;
    };
    let complete = begin.wrapping_add(signed(blob.word(jvm.blob.frame_complete), jvm.blob.frame_complete) as u64);
    let state = around(before, next, bytes);
    if state == FrameState::Whole && pc < complete && kind != Kind::Stub && !has_saved(memory, entry, pc, bytes) {
        return FrameState::None;
    }
    // What follows a wrapper's last instruction is its jump to the handler of an exception.
    if kind == Kind::NativeWrapper && before.follows_return() { FrameState::None } else { state }
}

/// Whether the code from the entry on has saved the return address.
#[inline(always)]
fn has_saved(memory: &impl Memory, entry: u64, pc: u64, bytes: u64) -> bool {
    for pair in 0..PROLOGUE_PAIRS {
        let place = entry.wrapping_add(pair * 8);
        if place >= pc {
            return false;
        }
        let Ok(word) = memory.word(place) else { return true };
        let is_second_done = place.wrapping_add(4) < pc;
        if saves(word as u32, bytes) || is_second_done && saves((word >> 32) as u32, bytes) {
            return true;
        }
    }
    true
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
