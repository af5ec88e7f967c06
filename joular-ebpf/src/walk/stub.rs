//! Code of a JVM whose frame nobody describes: stubs and adapters. Most of it has
//! a frame pointer or no frame; which of the two is told by what the stack holds.

use super::{
    End, Memory, Registers, Step, Tables, Walk,
    hotspot::blob_word,
    instructions::{FrameState, in_epilogue, in_prologue},
    is_in_code_cache,
};
use crate::abi::{FrameWord, JvmUnwind, walk_end};

/// Farthest that a stub's frame pointer is above its stack pointer.
const MAX_FRAME_BYTES: u64 = 64 << 10;
/// Words that the JVM keeps of a virtual thread on its carrier's stack, and some.
const MAX_ENTRY_WORDS: u64 = 20;
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
pub(super) fn without_frame(memory: &impl Memory, walk: &mut Walk) -> Step {
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

/// What is known of such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Where C++ called Java: it has a frame pointer.
    Entry,
    /// The jumps through tables of virtual methods: they have no frame.
    Frameless,
    /// Where a virtual thread goes on with what the heap has of its stack.
    Continuation,
    Unknown,
}

/// One frame of such code.
#[inline(always)]
pub fn step(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, kind: Kind) -> Step {
    walk.push(blob_word(jvm, walk.registers.pc))?;
    match kind {
        Kind::Entry => by_frame_pointer(memory, walk),
        Kind::Frameless => without_frame(memory, walk),
        Kind::Continuation => to_carrier(memory, tables, jvm, walk),
        Kind::Unknown => by_what_the_stack_holds(memory, tables, jvm, walk),
    }
}

/// The rest of a virtual thread's stack is in the heap. Right above is the frame in
/// which its carrier entered it: what the JVM keeps there is no code, so the first
/// return address is the carrier's. But if more of the stack is just being brought
/// from the heap, by C++, what lies there is anything, and only the frame pointer
/// tells.
#[inline(always)]
fn to_carrier(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    walk.is_frozen = 1;
    let Registers { sp, fp, .. } = walk.registers;
    let is_carrier = |pc| is_in_code_cache(jvm, pc) && tables.is_return_address(memory, jvm, &walk.process, pc);
    let callee = walk.words.get((walk.header.len as usize).wrapping_sub(2)).copied();
    if !callee.is_some_and(|word| FrameWord(word).is_of_a_jvm()) {
        return match memory.pair(fp) {
            Ok([_, pc]) if is_carrier(pc) && fp.wrapping_sub(sp) < MAX_FRAME_BYTES => by_frame_pointer(memory, walk),
            _ => Err(End(walk_end::FROZEN)),
        };
    }
    let mut below = 0;
    for index in 0..MAX_ENTRY_WORDS {
        let Ok(word) = memory.word(sp.wrapping_add(index * 8)) else { break };
        if is_carrier(word) {
            return walk.return_to(word, sp.wrapping_add(index * 8 + 8), below);
        }
        below = word;
    }
    Err(End(walk_end::FROZEN))
}

#[inline(always)]
fn by_what_the_stack_holds(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    let [top, second] = memory.pair(walk.registers.sp)?;
    let state = if walk.is_exact() { frame_state(memory, walk.registers.pc) } else { FrameState::Whole };
    if state == FrameState::Pushed {
        return return_from(memory, walk, second, walk.registers.sp.wrapping_add(8), top);
    }
    if top == COOKIE {
        return without_frame(memory, walk);
    }
    let process = walk.process;
    let is_return = |pc| tables.is_return_address(memory, jvm, &process, pc);
    if state == FrameState::FramePointer {
        return by_frame_pointer(memory, walk);
    }
    // Code that called has a frame, if it ever makes one.
    if !walk.is_exact() && has_frame_pointer(memory, tables, jvm, walk) {
        return by_frame_pointer(memory, walk);
    }
    if state == FrameState::None || is_return(top) {
        return from_adapter(memory, walk, top);
    }
    if walk.is_exact() && has_frame_pointer(memory, tables, jvm, walk) {
        return by_frame_pointer(memory, walk);
    }
    if is_return(second) {
        return walk.return_to(second, walk.registers.sp.wrapping_add(16), top);
    }
    // An adapter that moves the arguments holds the return address meanwhile.
    let Registers { rax, r13, sp, fp, .. } = walk.registers;
    if walk.is_exact() && is_return(rax) {
        let caller_sp = if r13.wrapping_sub(sp) < MAX_ARGUMENT_BYTES { r13 } else { sp };
        return walk.return_to(rax, if caller_sp > sp { caller_sp } else { sp.wrapping_add(8) }, fp);
    }
    Err(End::IMPLAUSIBLE)
}

#[inline(always)]
fn frame_state(memory: &impl Memory, pc: u64) -> FrameState {
    let Ok(next) = memory.pair(pc) else { return FrameState::Unknown };
    match in_prologue(next, 0) {
        // Without `push rbp` in front it is no prologue that is known.
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
    tables.is_return_address(memory, jvm, &walk.process, pc)
}

/// The return address is on top of the stack. An adapter from compiled to
/// interpreted code, or back, has put it there again, below what it pushed: the
/// caller's stack pointer is then in r13.
#[inline(always)]
fn from_adapter(memory: &impl Memory, walk: &mut Walk, pc: u64) -> Step {
    let Registers { sp, fp, r13, .. } = walk.registers;
    let moved = r13.wrapping_sub(sp);
    let is_moved = walk.is_exact()
        && moved > 8
        && moved < MAX_ARGUMENT_BYTES
        && memory.word(r13.wrapping_sub(8)).is_ok_and(|original| original == pc);
    walk.return_to(pc, if is_moved { r13 } else { sp.wrapping_add(8) }, fp)
}
