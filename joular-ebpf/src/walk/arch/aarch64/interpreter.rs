//! Reads the layout of the interpreter's frames, and how they are made and left.

use super::{
    InterpreterFrame, Live, Registers, Walk,
    instructions::{POP_PAIR, RET, code_address, is_restore_of_stack, is_signing},
};
use crate::{
    abi::JvmUnwind,
    walk::{Memory, Tables, interpreted::MAX_FRAME_BYTES},
};

/// The interpreter takes back what its caller does not need, so the caller's stack pointer may be below the frame's end.
pub(super) const FRAME: InterpreterFrame =
    InterpreterFrame { below_fp_bytes: 72, method: 6, sender_sp: 8, caller_fp: 9, return_address: 10 };
pub(super) type FrameWords = [u64; 11];

/// How far above the stack pointer the frame pointer is, when it has just been set.
const NEW_FRAME_BYTES: u64 = 80;

/// The frame is gone, but the return has not happened: where it leads, and the stack pointer there.
#[inline(always)]
pub(super) fn leaving(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> Option<(u64, u64)> {
    let Registers { pc, sp, live: Live { lr, .. }, .. } = walk.registers;
    let [before, next] = memory.pair(pc.wrapping_sub(8)).ok()?;
    let (last, word) = ((before >> 32) as u32, next as u32);
    let is_popped = last == POP_PAIR || is_signing(last);
    let sp = if is_popped && (is_restore_of_stack(word) || is_signing(word)) {
        // What was popped last is still there, and below it what the frame says of the caller.
        above(sp, memory.word(sp.wrapping_sub(24)).ok()?)
    } else if word == RET {
        sp
    } else {
        return None;
    };
    tables.is_return_address(memory, jvm, walk, lr).then_some((lr, sp))
}

/// The frame is not built yet: the caller's program counter, stack pointer and frame pointer.
#[inline(always)]
pub(super) fn entering(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64, u64)> {
    let Registers { sp, fp, live: Live { lr, .. }, .. } = walk.registers;
    // Behind a call by the code that enters methods, the register is its own.
    if jvm.method_entries.contains(code_address(lr)) || !tables.is_return_address(memory, jvm, walk, lr) {
        return None;
    }
    let sender_sp = walk.registers.sender_sp(jvm);
    let is_of_method = memory.word(FRAME.method_slot(fp)).unwrap_or(0) == walk.registers.live.x12;
    if is_of_method {
        let [caller_fp, return_address] = memory.pair(fp).ok()?;
        // The frame pointer is set, but not all is stored.
        if fp.wrapping_sub(sp) == NEW_FRAME_BYTES && code_address(return_address) == code_address(lr) {
            return Some((lr, above(sp, sender_sp), caller_fp));
        }
        // The caller may be the same method: its frame has another caller's stack pointer.
        if memory.word(fp.wrapping_sub(8)).unwrap_or(0) == sender_sp {
            return None;
        }
    }
    Some((lr, above(sp, sender_sp), fp))
}

/// A stack pointer that should not be below another; that one if it is.
#[inline(always)]
const fn above(sp: u64, wanted: u64) -> u64 {
    if wanted > sp && wanted - sp < MAX_FRAME_BYTES { wanted } else { sp }
}
