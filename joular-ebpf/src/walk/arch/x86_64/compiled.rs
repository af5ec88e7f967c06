//! Tells how code with a frame of a fixed size makes and removes it, and where its return address
//! is meanwhile, by the interrupted instruction.

use super::{
    Registers, Walk,
    instructions::{FrameState, has_no_frame_to_jump, in_method, in_prologue, in_stub, in_wrapper, jump, poll_note},
    spills::spilled_bytes,
    stub,
};
use crate::{
    abi::{Field, JvmUnwind},
    walk::{
        End, Memory, Step, Tables,
        compiled::{Kind, frame_words, has_frame_size},
        continuation::is_entered,
        hotspot::Blob,
    },
};

/// How much larger than its size a frame may be: aligned, or with what was pushed.
const SLACK_BYTES: u64 = 64;
/// Four words, and two copies of short strings.
const MAX_PUSHED_WORDS: u64 = 8;
const MAX_PUSHED_BYTES: u64 = MAX_PUSHED_WORDS * 8;

/// Goes on in the caller.
#[inline(always)]
pub(super) fn caller(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
    let state = frame_state(memory, tables, jvm, walk, kind);
    let blob = Blob::of(jvm, walk);
    if !has_frame_size(&blob, jvm) {
        return stub::without_frame(memory, tables, jvm, walk);
    }
    let bytes = frame_words(&blob, jvm) * 8;
    let Registers { sp, fp, .. } = walk.registers;
    match state {
        FrameState::None => stub::without_frame(memory, tables, jvm, walk),
        FrameState::Pushed => {
            let [fp, pc] = memory.pair(sp)?;
            walk.return_to(pc, sp.wrapping_add(16), fp)
        }
        FrameState::FramePointer => stub::by_frame_pointer(memory, walk),
        FrameState::Popped => {
            let pc = memory.word(sp.wrapping_sub(8))?;
            walk.go_on(pc, sp, fp)
        }
        FrameState::Lost => Err(End::IMPLAUSIBLE),
        FrameState::Reserved => {
            let end = sp.wrapping_add(bytes);
            let pc = memory.word(end.wrapping_sub(8))?;
            walk.return_to(pc, end, fp)
        }
        FrameState::Whole | FrameState::Unknown => {
            let frame_end = sp.wrapping_add(bytes);
            // A wrapper aligns its stack for some calls, a stub does or pushes what it
            // saves; both have a frame pointer where they do.
            let is_close = fp.wrapping_sub(sp) <= bytes + SLACK_BYTES;
            if is_close && has_frame_pointer(memory, tables, jvm, walk, kind, bytes) {
                return stub::by_frame_pointer(memory, walk);
            }
            let end = match kept_bytes(memory, tables, jvm, walk, kind, frame_end)
                .or_else(|| pushed_bytes(memory, tables, jvm, walk, bytes))
            {
                Some(more) => frame_end.wrapping_add(more),
                None if walk.is_exact() && returns_from(memory, tables, jvm, walk, sp) => {
                    return stub::without_frame(memory, tables, jvm, walk);
                }
                None => frame_end,
            };
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
    match kind {
        Kind::Method => false,
        Kind::NativeWrapper => !is_entered(memory, tables, jvm, walk, bytes),
        Kind::Stub => stub::has_frame_pointer(memory, tables, jvm, walk),
    }
}

/// What a method keeps beside its frame while code that is not a method works for it, if the return address
/// proves that. C1 may have pushed a register first.
#[inline(always)]
fn kept_bytes(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
    kind: Kind,
    frame_end: u64,
) -> Option<u64> {
    if kind != Kind::Method || !walk.has_called_no_method(2) {
        return None;
    }
    let spilled = spilled_bytes(memory, walk)?;
    let slot = frame_end.wrapping_sub(8).wrapping_add(spilled);
    if returns_from(memory, tables, jvm, walk, slot) {
        Some(spilled)
    } else if returns_from(memory, tables, jvm, walk, slot.wrapping_add(8)) {
        Some(spilled + 8)
    } else {
        None
    }
}

/// What code has pushed beside its frame, which only the return address shows, farther up: C1's up to two
/// words around a type check and its call, C2's one during such a check, and more while it searches a
/// string. The latter ends with what the stack pointer was before.
#[inline(always)]
fn pushed_bytes(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, bytes: u64) -> Option<u64> {
    // Such calls do not lead to Java.
    if !walk.is_near_leaf() {
        return Some(0);
    }
    let slot = walk.registers.sp.wrapping_add(bytes).wrapping_sub(8);
    let is_return = |pushed: u64| {
        memory.word(slot.wrapping_add(pushed)).is_ok_and(|pc| tables.is_return_address(memory, jvm, walk, pc))
    };
    let sp = walk.registers.sp;
    let kept = memory.word(sp).unwrap_or(0).wrapping_sub(sp);
    // In the search, addresses of calls that returned long ago may lie where the return address would
    // be if nothing had been pushed.
    if searches_string(memory, walk, kept) && is_return(kept) {
        Some(kept)
    } else if is_return(0) {
        Some(0)
    } else if kept <= MAX_PUSHED_BYTES && is_return(kept) {
        Some(kept)
    } else if is_return(8) {
        // First: an adapter that aligns the stack leaves the same address a word farther up, too.
        Some(8)
    } else {
        // From the third word on, what the stack pointer was before is pushed as well. A loop, and no iterator's method,
        // which would be a function of its own with pointers to this one's stack.
        for words in 2..=MAX_PUSHED_WORDS {
            if is_return(words * 8) {
                return Some(words * 8);
            }
        }
        None
    }
}

/// Whether the code is in the loop that C2 searches a string by: on the stack are the old stack
/// pointer, both strings, the length of the one to find, and up to two copies of 16 bytes
/// (`C2_MacroAssembler::string_indexof`).
#[inline(always)]
fn searches_string(memory: &impl Memory, walk: &Walk, kept: u64) -> bool {
    const PUSHED: u64 = 32;
    const COPY: u64 = 16;
    const TWO_COPIES: u64 = 2 * COPY;
    walk.is_exact()
        && matches!(kept.wrapping_sub(PUSHED), 0 | COPY | TWO_COPIES)
        && memory.word(walk.registers.sp.wrapping_add(24)).is_ok_and(|length| length.wrapping_sub(1) < 1 << 31)
}

/// Whether a return address stands there. On top of the stack, it is that of a wrapper of a native
/// method, which has checks behind the end of its frame.
#[inline(always)]
fn returns_from(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk, slot: u64) -> bool {
    memory.word(slot).is_ok_and(|pc| tables.is_return_address(memory, jvm, walk, pc))
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
    let before = memory.word(pc.wrapping_sub(8)).unwrap_or(0);
    if offset >= complete || offset < 0 {
        return match kind {
            Kind::Method if is_in_poll_stub(memory, walk, next) || jumps_without_frame(walk, next[0], before) => {
                FrameState::None
            }
            Kind::Method => in_method(next, before),
            Kind::NativeWrapper => in_wrapper(next, before),
            Kind::Stub => in_stub(next, before, offset == 0),
        };
    }
    // The check of the receiver's class stands in front of all.
    if kind != Kind::Stub && pc < blob.verified_entry(jvm) {
        return FrameState::None;
    }
    match in_prologue(next, before) {
        // A method's prologue ends with checks; a wrapper may have no frame at all.
        FrameState::Unknown if kind == Kind::Method => FrameState::Whole,
        FrameState::Unknown if returns_from(memory, tables, jvm, walk, walk.registers.sp) => FrameState::None,
        FrameState::Unknown => FrameState::Whole,
        state => state,
    }
}

/// Whether a method that returns has jumped to the stub of its poll.
#[inline(always)]
fn is_in_poll_stub(memory: &impl Memory, walk: &Walk, next: [u64; 2]) -> bool {
    let length = u64::from(poll_note(next));
    let place = walk.registers.pc.wrapping_add(length);
    length != 0 && memory.word(place).is_ok_and(|word| leaves_block(walk, place, word))
}

#[inline(always)]
fn jumps_without_frame(walk: &Walk, word: u64, before: u64) -> bool {
    has_no_frame_to_jump(before) && leaves_block(walk, walk.registers.pc, word)
}

/// Whether the instruction there jumps out of the code that was read.
#[inline(always)]
fn leaves_block(walk: &Walk, place: u64, word: u64) -> bool {
    jump(word).is_some_and(|distance| {
        let target = place.wrapping_add(distance as u64);
        target < walk.block.start || target >= walk.block.end
    })
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
