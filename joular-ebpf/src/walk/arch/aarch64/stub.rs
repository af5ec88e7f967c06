//! Reads the layouts of stubs and adapters. Most stubs have rows. Of the others, those that call anything have a frame
//! pointer, and the rest leave the return address in the link register.

use super::{
    Live, Registers, Walk,
    instructions::{Four, FrameState, around, code_address, makes_room},
};
use crate::{
    abi::JvmUnwind,
    walk::{End, Memory, Step, Tables, stub::MAX_FRAME_BYTES},
};

/// Farthest that an adapter moves arguments: as far as one instruction makes room for them.
const MAX_ARGUMENT_BYTES: u64 = 4 << 10;
/// Instructions of an adapter, from where it made room on: it moves each argument by one or two.
const MAX_ADAPTER_WORDS: u64 = 32;

/// The frame pointer points at the caller's, with the return address behind it. Code of HotSpot saves them first, and so
/// at the top of its frame.
#[inline(always)]
pub(super) fn by_frame_pointer(memory: &impl Memory, walk: &mut Walk) -> Step {
    let fp = walk.registers.fp;
    let [caller_fp, pc] = memory.pair(fp)?;
    walk.return_to(pc, fp.wrapping_add(16), caller_fp)
}

/// The return address is in the link register.
#[inline(always)]
pub(super) fn without_frame(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    by_link(memory, tables, jvm, walk, walk.registers.sp)
}

/// The same, with the caller's stack pointer there. Code that calls others has its own addresses in the register from its
/// first call on.
#[inline(always)]
pub(super) fn by_link(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, sp: u64) -> Step {
    let Registers { fp, live: Live { lr, .. }, .. } = walk.registers;
    if !walk.is_exact() || !tables.is_return_address(memory, jvm, walk, lr) {
        return Err(End::IMPLAUSIBLE);
    }
    walk.return_to(lr, sp, fp)
}

/// Code that nothing is known of.
#[inline(always)]
pub(super) fn by_what_the_stack_holds(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk,
) -> Step {
    let Registers { pc, sp, fp, live: Live { lr, .. } } = walk.registers;
    let has_frame_pointer = has_frame_pointer(memory, tables, jvm, walk);
    if !walk.is_exact() {
        return if has_frame_pointer { by_frame_pointer(memory, walk) } else { Err(End::IMPLAUSIBLE) };
    }
    let state = match (Four::read(memory, pc.wrapping_sub(16)), Four::read(memory, pc)) {
        (Some(before), Some(next)) => around(before, next, 0),
        _ => FrameState::Whole,
    };
    if state == FrameState::Pair {
        let [caller_fp, pc] = memory.pair(sp)?;
        return walk.return_to(pc, sp.wrapping_add(16), caller_fp);
    }
    if state == FrameState::None {
        return by_link(memory, tables, jvm, walk, caller_sp(memory, jvm, walk));
    }
    // Of a frame that was made, the register still has the return address, or that of a call since then. What is
    // somewhere else is of a caller. All methods of the interpreter return to the same few places, and what they call
    // makes no frame, if it has no row.
    let link = code_address(lr);
    let is_own = link >= walk.block.start && link < walk.block.end;
    let is_in_frame = code_address(memory.word(fp.wrapping_add(8)).unwrap_or(0)) == link;
    let is_saved = is_in_frame && !jvm.interpreter.contains(link);
    if has_frame_pointer && (is_own || is_saved) {
        return by_frame_pointer(memory, walk);
    }
    by_link(memory, tables, jvm, walk, caller_sp(memory, jvm, walk))
}

#[inline(always)]
pub(super) fn has_frame_pointer(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> bool {
    let Registers { sp, fp, .. } = walk.registers;
    fp & 7 == 0
        && fp.wrapping_sub(sp & !1) < MAX_FRAME_BYTES
        && memory.word(fp.wrapping_add(8)).is_ok_and(|pc| tables.is_return_address(memory, jvm, walk, pc))
}

/// The caller's stack pointer, if the code has not moved it. An adapter from compiled to interpreted code moves it, and
/// keeps what it was for the interpreter.
#[inline(always)]
fn caller_sp(memory: &impl Memory, jvm: &JvmUnwind, walk: &Walk) -> u64 {
    let Registers { pc, sp, .. } = walk.registers;
    let sender_sp = walk.registers.sender_sp(jvm);
    let bytes = sender_sp.wrapping_sub(sp);
    if bytes == 0 || bytes >= MAX_ARGUMENT_BYTES {
        return sp;
    }
    // Elsewhere, that register has anything, such as the stack pointer of a caller farther up.
    let expected = makes_room(jvm.sender_sp, bytes);
    for words in 2..MAX_ADAPTER_WORDS {
        if memory.word(pc.wrapping_sub(words * 4)).unwrap_or(0) == expected {
            return sender_sp;
        }
    }
    sp
}
