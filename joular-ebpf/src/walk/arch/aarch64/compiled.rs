//! Tells how code with a frame of a fixed size makes and removes it, and where its return address
//! is meanwhile, by the interrupted instruction.

use super::{
    Walk,
    instructions::{Four, FrameState, around, code_address, saves},
    spills::spilled_bytes,
    stub,
};
use crate::{
    abi::{Field, JvmUnwind},
    walk::{
        End, Memory, Step, Tables,
        compiled::{Kind, frame_words, has_frame_size},
        hotspot::Blob,
        is_in_code_cache,
    },
};

/// Pairs of instructions in front of a frame: checks of the class, and stores that touch the stack to come.
const PROLOGUE_PAIRS: u64 = 24;

/// Goes on in the caller.
#[inline(always)]
pub(super) fn caller(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
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
        FrameState::Whole => whole(memory, tables, jvm, walk, kind, bytes),
    }
}

/// A frame that is whole. Near the leaf, and where native code was called, the return address has to prove where it ends:
/// code may have kept something beside it.
#[inline(always)]
fn whole(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind, bytes: u64) -> Step {
    let end = walk.registers.sp.wrapping_add(bytes);
    let has_called_no_method = walk.has_called_no_method(2);
    // Nothing is kept beside what is in the heap, and the oldest frame there returns nowhere.
    let is_method_in_the_middle = kind == Kind::Method && !has_called_no_method && !walk.is_near_leaf();
    if walk.is_in_chunk() || is_method_in_the_middle && walk.registers.has_sp() {
        return to_end(memory, walk, end);
    }
    // Of code that was interrupted most has kept nothing.
    let is_likely = walk.registers.has_sp() && (kind != Kind::Method || !has_called_no_method);
    if is_likely && is_end(memory, tables, jvm, walk, end) {
        return to_end(memory, walk, end);
    }
    if kind != Kind::Method {
        if stub::has_frame_pointer(memory, tables, jvm, walk) {
            return stub::by_frame_pointer(memory, walk);
        }
        // The handler of safepoints returns to where the method polled, and no call is there.
        let is_place = kind == Kind::Stub && walk.registers.has_sp() && ends_in_code(memory, jvm, end);
        return if is_place { to_end(memory, walk, end) } else { Err(End::IMPLAUSIBLE) };
    }
    if !walk.registers.has_sp() {
        return Err(End::IMPLAUSIBLE);
    }
    let above = end.wrapping_add(spilled_bytes(memory, walk));
    if above != end && is_end(memory, tables, jvm, walk, above) {
        return to_end(memory, walk, above);
    }
    if !is_likely && is_end(memory, tables, jvm, walk, end) { to_end(memory, walk, end) } else { Err(End::IMPLAUSIBLE) }
}

/// Goes on behind a frame that ends there.
#[inline(always)]
fn to_end(memory: &impl Memory, walk: &mut Walk, end: u64) -> Step {
    let slot = end.wrapping_sub(16);
    let [fp, pc] = memory.pair(slot)?;
    walk.return_to(pc, end, walk.in_frame(slot, fp))
}

/// Whether a return address stands at the end of a frame.
#[inline(always)]
fn is_end(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, end: u64) -> bool {
    let return_address = memory.word(end.wrapping_sub(8));
    return_address.is_ok_and(|pc| tables.is_return_address(memory, jvm, walk, pc))
}

/// Whether an instruction's address in the code cache stands at the end of a frame.
#[inline(always)]
fn ends_in_code(memory: &impl Memory, jvm: &JvmUnwind, end: u64) -> bool {
    let Ok(pc) = memory.word(end.wrapping_sub(8)) else { return false };
    pc & 3 == 0 && is_in_code_cache(jvm, code_address(pc))
}

/// A function of its own, whose stack is free again when a return address is looked at: all that call each other have 512
/// bytes before Linux 6.13.
#[inline(never)]
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
