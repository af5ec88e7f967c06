//! Reads the layout of the interpreter's frames, and how they are made and left.

use super::{
    Registers,
    instructions::{POP_PAIR, RET, is_restore_of_stack, is_signing},
};
use crate::{
    abi::JvmUnwind,
    walk::{Memory, Tables, Walk, arch::code_address, interpreted::MAX_FRAME_BYTES},
};

/// Where an interpreter's frame keeps its bytecode pointer, in words from its frame
/// pointer: so since JDK 9, and told by no table.
pub const BCP_WORDS: i32 = -9;
/// Words of a frame that a walk reads.
pub const FRAME_WORDS: usize = 11;

/// What stands in a frame around its frame pointer, by its place among
/// [`crate::walk::FrameWords`]. The same since JDK 9.
pub(in crate::walk) mod frame {
    use crate::walk::FrameWords;

    /// From the frame pointer on down to the bytecode pointer.
    pub const BELOW_FP_BYTES: u64 = 72;
    pub const METHOD: usize = 6;
    /// The caller's stack pointer, without the arguments that an adapter pushed. The interpreter takes back what its
    /// caller does not need, so it may be below the frame's end.
    pub const SENDER_SP: usize = 8;
    pub const CALLER_FP: usize = 9;
    pub const RETURN: usize = 10;

    /// The bytecode pointer, as of the last call.
    #[inline(always)]
    pub const fn saved_bcp(words: &FrameWords, _: i32) -> u64 {
        words[0]
    }

    /// Where the `Method*` stands.
    #[inline(always)]
    pub const fn method_slot(fp: u64) -> u64 {
        fp.wrapping_sub(BELOW_FP_BYTES).wrapping_add(METHOD as u64 * 8)
    }
}

/// How far above the stack pointer the frame pointer is, when it has just been set.
const NEW_FRAME_BYTES: u64 = 80;

/// The frame is gone, but the return has not happened: where it leads, and the stack pointer there.
#[inline(always)]
pub(in crate::walk) fn leaving(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64)> {
    let Registers { pc, sp, lr, .. } = walk.registers;
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
    tables.is_return_address(memory, jvm, &walk.process, lr).then_some((lr, sp))
}

/// The frame is not built yet: the caller's program counter, stack pointer and frame pointer.
#[inline(always)]
pub(in crate::walk) fn entering(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64, u64)> {
    let Registers { sp, fp, lr, .. } = walk.registers;
    // Behind a call by the code that enters methods, the register is its own.
    if jvm.method_entries.contains(code_address(lr)) || !tables.is_return_address(memory, jvm, &walk.process, lr) {
        return None;
    }
    let sender_sp = walk.registers.sender_sp(jvm);
    let is_of_method = memory.word(frame::method_slot(fp)).unwrap_or(0) == walk.registers.method();
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

/// Entries of intrinsics jump to their stubs.
#[inline(always)]
pub(in crate::walk) const fn calling_stub(
    _: &impl Memory,
    _: &impl Tables,
    _: &JvmUnwind,
    _: &Walk,
) -> Option<(u64, u64)> {
    None
}

/// A stack pointer that should not be below another; that one if it is.
#[inline(always)]
const fn above(sp: u64, wanted: u64) -> u64 {
    if wanted > sp && wanted - sp < MAX_FRAME_BYTES { wanted } else { sp }
}
