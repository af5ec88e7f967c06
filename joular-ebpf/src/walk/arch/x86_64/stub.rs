//! Reads the layouts of stubs and adapters. Most of them have a frame pointer or no frame; the
//! stack's content tells which of the two.

use super::{
    Live, Registers, Walk,
    instructions::{FrameState, in_epilogue, in_prologue},
};
use crate::{
    abi::JvmUnwind,
    walk::{End, Memory, Step, Tables, stub::MAX_FRAME_BYTES},
};

/// Farthest that an adapter moves arguments.
const MAX_ARGUMENT_BYTES: u64 = 4 << 10;
/// What the stub of methods' entry barriers has in front of its return address:
/// room for another stack pointer, should the method be deoptimised right there.
const COOKIE: u64 = u64::MAX;

/// The frame pointer points at the caller's, with the return address behind it.
#[inline(always)]
pub(super) fn by_frame_pointer(memory: &impl Memory, walk: &mut Walk) -> Step {
    let fp = walk.registers.fp;
    let [caller_fp, pc] = memory.pair(fp)?;
    return_from(memory, walk, pc, fp.wrapping_add(8), caller_fp)
}

/// The return address is on top of the stack.
#[inline(always)]
pub(super) fn without_frame(memory: &impl Memory, _: &impl Tables, _: &JvmUnwind, walk: &mut Walk) -> Step {
    let sp = walk.registers.sp;
    let pc = memory.word(sp)?;
    return_from(memory, walk, pc, sp, walk.registers.fp)
}

/// The return address stands there, or behind a cookie.
#[inline(always)]
fn return_from(memory: &impl Memory, walk: &mut Walk, pc: u64, slot: u64, fp: u64) -> Step {
    let next = slot.wrapping_add(8);
    if pc == COOKIE {
        return walk.return_to(memory.word(next)?, next.wrapping_add(8), fp);
    }
    walk.return_to(pc, next, fp)
}

/// Code that nothing is known of.
#[inline(always)]
pub(super) fn by_what_the_stack_holds(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
) -> Step {
    let [top, second] = memory.pair(walk.registers.sp)?;
    let state = if walk.is_exact() { frame_state(memory, walk.registers.pc) } else { FrameState::Whole };
    if state == FrameState::Pushed {
        return return_from(memory, walk, second, walk.registers.sp.wrapping_add(8), top);
    }
    if top == COOKIE {
        return without_frame(memory, tables, jvm, walk);
    }
    let is_return = |walk: &Walk, pc| tables.is_return_address(memory, jvm, walk, pc);
    if state == FrameState::FramePointer {
        return by_frame_pointer(memory, walk);
    }
    // Code that called has a frame, if it ever makes one.
    if !walk.is_exact() && has_frame_pointer(memory, tables, jvm, walk) {
        return by_frame_pointer(memory, walk);
    }
    if state == FrameState::None || is_return(walk, top) {
        return from_adapter(memory, walk, top);
    }
    if walk.is_exact() && has_frame_pointer(memory, tables, jvm, walk) {
        return by_frame_pointer(memory, walk);
    }
    if is_return(walk, second) {
        return walk.return_to(second, walk.registers.sp.wrapping_add(16), top);
    }
    // An adapter that moves the arguments holds the return address meanwhile.
    let Registers { sp, fp, live: Live { rax, r13, .. }, .. } = walk.registers;
    if walk.is_exact() && is_return(walk, rax) {
        let caller_sp = if r13.wrapping_sub(sp) < MAX_ARGUMENT_BYTES { r13 } else { sp };
        return walk.return_to(rax, if caller_sp > sp { caller_sp } else { sp.wrapping_add(8) }, fp);
    }
    Err(End::IMPLAUSIBLE)
}

#[inline(always)]
fn frame_state(memory: &impl Memory, pc: u64) -> FrameState {
    let Ok(next) = memory.pair(pc) else { return FrameState::Unknown };
    match in_prologue(next, 0) {
        // Without `push rbp` in front it is not a prologue that is known.
        FrameState::Unknown | FrameState::Reserved => in_epilogue(next),
        state => state,
    }
}

#[inline(always)]
pub(super) fn has_frame_pointer(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> bool {
    let fp = walk.registers.fp;
    if fp.wrapping_sub(walk.registers.sp) >= MAX_FRAME_BYTES {
        return false;
    }
    let Ok([pc, next]) = memory.pair(fp.wrapping_add(8)) else { return false };
    let pc = if pc == COOKIE { next } else { pc };
    tables.is_return_address(memory, jvm, walk, pc)
}

/// The return address is on top of the stack. An adapter from compiled to
/// interpreted code, or back, has put it there again, below what it pushed: the
/// caller's stack pointer is then in r13.
#[inline(always)]
fn from_adapter(memory: &impl Memory, walk: &mut Walk, pc: u64) -> Step {
    let Registers { sp, fp, live: Live { r13, .. }, .. } = walk.registers;
    let moved = r13.wrapping_sub(sp);
    let is_moved = walk.is_exact()
        && moved > 8
        && moved < MAX_ARGUMENT_BYTES
        && memory.word(r13.wrapping_sub(8)).is_ok_and(|original| original == pc);
    walk.return_to(pc, if is_moved { r13 } else { sp.wrapping_add(8) }, fp)
}
