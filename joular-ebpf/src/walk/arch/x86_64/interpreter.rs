//! Reads the interpreter's frame, and the few instructions around a method's entry and its end
//! where there is none.

use super::{
    InterpreterFrame, Live, Registers, Walk,
    instructions::{FrameState, Leaving, in_prologue, leaving_interpreter, takes_off_word},
};
use crate::{
    abi::JvmUnwind,
    walk::{Memory, Tables, interpreted::MAX_FRAME_BYTES},
};

pub(super) const FRAME: InterpreterFrame =
    InterpreterFrame { below_fp_bytes: 64, method: 5, sender_sp: 7, caller_fp: 8, return_address: 9 };
pub(super) type FrameWords = [u64; 10];

/// The frame is gone, but the jump back has not happened: where it leads, and the
/// stack pointer there.
#[inline(always)]
pub(super) fn leaving(memory: &impl Memory, _: &impl Tables, _: &JvmUnwind, walk: &Walk) -> Option<(u64, u64)> {
    let Registers { pc, sp, live: Live { rbx, r13, .. }, .. } = walk.registers;
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
pub(super) fn entering(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64, u64)> {
    let Registers { pc, sp, fp, live: Live { rax, rbx, r13 } } = walk.registers;
    let [top, second] = memory.pair(sp).ok()?;
    if tables.is_return_address(memory, jvm, walk, top) {
        return Some((top, above(sp, r13), fp));
    }
    // `push rbp` is done. The instructions alone do not say so: room for a local is made
    // by the same ones.
    let is_pushed = in_prologue([memory.word(pc).ok()?, 0], 0) == FrameState::Pushed;
    if is_pushed && tables.is_return_address(memory, jvm, walk, second) {
        return Some((second, above(sp, r13), top));
    }
    // The frame pointer is set, but not all is pushed.
    if fp.wrapping_sub(sp) < FRAME.below_fp_bytes {
        let [caller_fp, pc] = memory.pair(fp).ok()?;
        let sender_sp = if fp > sp { memory.word(fp.wrapping_sub(8)).ok()? } else { r13 };
        if tables.is_return_address(memory, jvm, walk, pc) {
            return Some((pc, above(fp, sender_sp), caller_fp));
        }
    }
    // Locals are being pushed, with the return address in rax.
    let is_built = memory.word(FRAME.method_slot(fp)).is_ok_and(|method| method == rbx);
    (!is_built && tables.is_return_address(memory, jvm, walk, rax)).then(|| (rax, above(sp, r13), fp))
}

/// An intrinsic's entry, which called its stub without a frame: where it returns to, and the stack
/// pointer there. A word was added to the stack if it was not aligned for the call.
#[inline(always)]
pub(super) fn calling_stub(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk,
) -> Option<(u64, u64)> {
    let Registers { pc, sp, live: Live { r13, .. }, .. } = walk.registers;
    let added = if takes_off_word(memory.word(pc).ok()?) { 8 } else { 0 };
    let slot = sp.wrapping_add(added);
    let caller = memory.word(slot).ok()?;
    tables.is_return_address(memory, jvm, walk, caller).then(|| (caller, above(slot, r13)))
}

/// A stack pointer that should be above another; the next word if it is not.
#[inline(always)]
const fn above(sp: u64, wanted: u64) -> u64 {
    if wanted > sp && wanted - sp < MAX_FRAME_BYTES { wanted } else { sp.wrapping_add(8) }
}
