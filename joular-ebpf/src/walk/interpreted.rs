//! A method in the interpreter. Its frame has a frame pointer and a fixed layout
//! around it, which has been the same since JDK 9.
//!
//! In words from the frame pointer: the caller's 0, the return address 1, the
//! caller's stack pointer −1 (without the arguments that an adapter pushed), the
//! `Method*` −3, the bytecode pointer −8.

use super::{
    End, Memory, Registers, Step, Tables, Walk,
    hotspot::blob_word,
    identity::MethodIdentity,
    instructions::{FrameState, Leaving, in_prologue, leaving_interpreter},
};
use crate::abi::{FrameWord, JvmUnwind};

/// Locals and operands are at most 65 535 words each.
const MAX_FRAME_BYTES: u64 = 2 << 20;
/// From its frame pointer on down to the bytecode pointer.
const FIXED_BYTES: u64 = 64;
const FP_INDEX: usize = 8;
const RETURN_INDEX: usize = 9;
const SENDER_SP_INDEX: usize = 7;
const METHOD_INDEX: usize = 5;
const METHOD_END: u64 = 1 << 48;

/// One frame of the interpreter.
#[inline(always)]
pub fn step(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    if walk.is_exact() {
        if let Some((pc, sp)) = leaving(memory, walk) {
            walk.push(blob_word(jvm, walk.registers.pc))?;
            return walk.go_on(pc, sp, walk.registers.fp);
        }
        // The entries of a few kinds of methods stand elsewhere: there is no frame yet,
        // where none makes sense.
        let may_enter = jvm.method_entries.contains(walk.registers.pc) || !has_frame(memory, walk);
        if may_enter && let Some((pc, sp, fp)) = entering(memory, tables, jvm, walk) {
            let method = walk.registers.rbx;
            if is_method(method) {
                let identity = MethodIdentity::read(memory, jvm, method);
                walk.push_method(FrameWord::interpreted(method, 0), identity)?;
            } else {
                walk.push(blob_word(jvm, walk.registers.pc))?;
            }
            return walk.go_on(pc, sp, fp);
        }
    }
    frame(memory, jvm, walk)
}

/// A frame that is whole.
#[inline(always)]
fn frame(memory: &impl Memory, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
    let Registers { pc, sp, fp, .. } = walk.registers;
    let read = if fp.wrapping_sub(sp) > MAX_FRAME_BYTES {
        Err(End::IMPLAUSIBLE)
    } else {
        memory.ten(fp.wrapping_sub(FIXED_BYTES), &mut walk.frame)
    };
    let method = walk.frame[METHOD_INDEX];
    if read.is_err() || !is_method(method) {
        walk.push(blob_word(jvm, pc))?;
        return Err(read.err().unwrap_or(End::IMPLAUSIBLE));
    }
    let saved = if jvm.bcp_words == -7 { walk.frame[1] } else { walk.frame[0] };
    let identity = MethodIdentity::read(memory, jvm, method);
    let bci = bci(jvm, walk, identity.const_method, saved);
    walk.push_method(FrameWord::interpreted(method, bci), identity)?;
    let least_sp = fp.wrapping_add(16);
    let sender_sp = walk.frame[SENDER_SP_INDEX];
    let sender_sp = if sender_sp.wrapping_sub(least_sp) < MAX_FRAME_BYTES { sender_sp } else { least_sp };
    walk.return_to(walk.frame[RETURN_INDEX], sender_sp, walk.frame[FP_INDEX])
}

#[inline(always)]
fn has_frame(memory: &impl Memory, walk: &Walk) -> bool {
    let Registers { sp, fp, .. } = walk.registers;
    fp.wrapping_sub(sp) <= MAX_FRAME_BYTES && memory.word(fp.wrapping_sub(24)).is_ok_and(is_method)
}

/// The interpreter keeps the bytecode pointer in r13, and in the frame when it calls.
#[inline(always)]
fn bci(jvm: &JvmUnwind, walk: &Walk, const_method: u64, saved: u64) -> u16 {
    let bytecodes = const_method.wrapping_add(u64::from(jvm.const_method_size));
    let live = walk.registers.r13.wrapping_sub(bytecodes);
    if walk.is_exact() && live <= u64::from(u16::MAX) {
        return live as u16;
    }
    let saved = saved.wrapping_sub(bytecodes);
    if saved <= u64::from(u16::MAX) { saved as u16 } else { 0 }
}

#[inline(always)]
const fn is_method(word: u64) -> bool {
    word != 0 && word & 7 == 0 && word < METHOD_END
}

/// The frame is gone, but the jump back has not happened: where it leads, and the
/// stack pointer there.
#[inline(always)]
fn leaving(memory: &impl Memory, walk: &Walk) -> Option<(u64, u64)> {
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
fn entering(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> Option<(u64, u64, u64)> {
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
    if fp.wrapping_sub(sp) < FIXED_BYTES {
        let [caller_fp, pc] = memory.pair(fp).ok()?;
        let sender_sp = if fp > sp { memory.word(fp.wrapping_sub(8)).ok()? } else { r13 };
        if tables.is_return_address(memory, jvm, &walk.process, pc) {
            return Some((pc, above(fp, sender_sp), caller_fp));
        }
    }
    // Locals are being pushed, with the return address in rax.
    let is_built = memory.word(fp.wrapping_sub(24)).is_ok_and(|method| method == rbx);
    (!is_built && tables.is_return_address(memory, jvm, &walk.process, rax)).then(|| (rax, above(sp, r13), fp))
}

/// A stack pointer that should be above another; the next word if it is not.
#[inline(always)]
const fn above(sp: u64, wanted: u64) -> u64 {
    if wanted > sp && wanted - sp < MAX_FRAME_BYTES { wanted } else { sp.wrapping_add(8) }
}
