//! Reads the interpreter's frame, and the few instructions around a method's entry and its end
//! where there is none.

use super::{
    Registers,
    instructions::{FrameState, Leaving, in_prologue, leaving_interpreter, takes_off_word},
};
use crate::{
    abi::JvmUnwind,
    walk::{Memory, Tables, Walk, interpreted::MAX_FRAME_BYTES},
};

/// Where an interpreter's frame keeps its bytecode pointer, in words from its frame
/// pointer: so since JDK 9, and told by no table.
pub const BCP_WORDS: i32 = -8;

/// Words of a frame that a walk reads.
pub const FRAME_WORDS: usize = 10;

/// What stands in a frame around its frame pointer, by its place among
/// [`crate::walk::FrameWords`]. The same since JDK 9.
pub(in crate::walk) mod frame {
    use crate::walk::FrameWords;

    /// From the frame pointer on down to the bytecode pointer.
    pub const BELOW_FP_BYTES: u64 = 64;
    pub const METHOD: usize = 5;
    /// The caller's stack pointer, without the arguments that an adapter pushed.
    pub const SENDER_SP: usize = 7;
    pub const CALLER_FP: usize = 8;
    pub const RETURN: usize = 9;

    /// The bytecode pointer, as of the last call. JDK 8 has it a word higher than [`super::BCP_WORDS`].
    #[inline(always)]
    pub const fn saved_bcp(words: &FrameWords, bcp_words: i32) -> u64 {
        if bcp_words == -7 { words[1] } else { words[0] }
    }

    /// Where the `Method*` stands.
    #[inline(always)]
    pub const fn method_slot(fp: u64) -> u64 {
        fp.wrapping_sub(BELOW_FP_BYTES).wrapping_add(METHOD as u64 * 8)
    }
}

/// The frame is gone, but the jump back has not happened: where it leads, and the
/// stack pointer there.
#[inline(always)]
pub(in crate::walk) fn leaving(
    memory: &impl Memory,
    _: &impl Tables,
    _: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64)> {
    let Registers { pc, sp, rbx, r13, .. } = walk.registers;
    match leaving_interpreter(memory.word(pc).ok()?) {
        Leaving::BeforePop => Some((memory.word(sp).ok()?, above(sp, rbx))),
        Leaving::BeforeUnextend => Some((r13, above(sp, rbx))),
        Leaving::BeforeJump => Some((r13, sp)),
        Leaving::Not => None,
    }
}

/// The frame is not built yet: the caller's registers. In r13 is the caller's
/// stack pointer.
#[inline(always)]
pub(in crate::walk) fn entering(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64, u64)> {
    let Registers { pc, sp, fp, rax, rbx, r13, .. } = walk.registers;
    let [top, second] = memory.pair(sp).ok()?;
    if tables.is_return_address(memory, jvm, &walk.process, top) {
        return Some((top, above(sp, r13), fp));
    }
    // `push rbp` is done. The instructions alone do not say so: room for a local is made
    // by the same ones.
    let is_pushed = in_prologue([memory.word(pc).ok()?, 0], 0) == FrameState::Pushed;
    if is_pushed && tables.is_return_address(memory, jvm, &walk.process, second) {
        return Some((second, above(sp, r13), top));
    }
    // The frame pointer is set, but not all is pushed.
    if fp.wrapping_sub(sp) < frame::BELOW_FP_BYTES {
        let [caller_fp, pc] = memory.pair(fp).ok()?;
        let sender_sp = if fp > sp { memory.word(fp.wrapping_sub(8)).ok()? } else { r13 };
        if tables.is_return_address(memory, jvm, &walk.process, pc) {
            return Some((pc, above(fp, sender_sp), caller_fp));
        }
    }
    // Locals are being pushed, with the return address in rax.
    let is_built = memory.word(frame::method_slot(fp)).is_ok_and(|method| method == rbx);
    (!is_built && tables.is_return_address(memory, jvm, &walk.process, rax)).then(|| (rax, above(sp, r13), fp))
}

/// An intrinsic's entry, which called its stub without a frame: where it returns to, and the stack
/// pointer there. A word was added to the stack if it was not aligned for the call.
#[inline(always)]
pub(in crate::walk) fn calling_stub(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64)> {
    let Registers { pc, sp, r13, .. } = walk.registers;
    let added = if takes_off_word(memory.word(pc).ok()?) { 8 } else { 0 };
    let slot = sp.wrapping_add(added);
    let caller = memory.word(slot).ok()?;
    tables.is_return_address(memory, jvm, &walk.process, caller).then(|| (caller, above(slot, r13)))
}

/// A stack pointer that should be above another; the next word if it is not.
#[inline(always)]
const fn above(sp: u64, wanted: u64) -> u64 {
    if wanted > sp && wanted - sp < MAX_FRAME_BYTES { wanted } else { sp.wrapping_add(8) }
}
