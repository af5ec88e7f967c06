//! Steps through a method in the interpreter. Its frame has a frame pointer and a fixed layout
//! around it, which the architecture decides.

use super::{End, Memory, Registers, Step, Tables, Walk, arch::Arch, hotspot::blob_word, identity::MethodIdentity};
use crate::abi::{FrameWord, JvmUnwind};

/// Locals and operands are at most 65 535 words each.
pub(super) const MAX_FRAME_BYTES: u64 = 2 << 20;
const METHOD_END: u64 = 1 << 48;

/// One frame of the interpreter.
#[inline(always)]
pub fn step<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Step {
    if walk.is_exact() {
        if let Some((pc, sp)) = A::leaving(memory, tables, jvm, walk) {
            walk.push(blob_word(jvm, walk.registers.pc))?;
            return walk.go_on(pc, sp, walk.registers.fp);
        }
        // The entries of a few kinds of methods stand elsewhere: there is no frame yet,
        // where none makes sense.
        let may_enter = jvm.method_entries.contains(walk.registers.pc) || !has_frame(memory, walk);
        if may_enter && let Some((pc, sp, fp)) = A::entering(memory, tables, jvm, walk) {
            let method = A::method(&walk.registers.live);
            if is_method(method) {
                let identity = MethodIdentity::read(memory, jvm, method);
                walk.push_method(FrameWord::interpreted(method, 0), identity)?;
            } else {
                walk.push(blob_word(jvm, walk.registers.pc))?;
            }
            return walk.go_on(pc, sp, fp);
        }
    }
    if is_below_stub(jvm, walk)
        && let Some((pc, sp)) = A::calling_stub(memory, tables, jvm, walk)
    {
        walk.push(blob_word(jvm, walk.registers.pc))?;
        return walk.go_on(pc, sp, walk.registers.fp);
    }
    whole_frame(memory, jvm, walk)
}

/// Whether an entry of methods has called a stub. Those of intrinsics do so without building a frame;
/// all that have one call native code.
#[inline(always)]
fn is_below_stub<A: Arch>(jvm: &JvmUnwind, walk: &Walk<A>) -> bool {
    let callee = walk.words.get((walk.header.len as usize).wrapping_sub(1)).copied().unwrap_or(0);
    !walk.is_exact() && jvm.method_entries.contains(walk.registers.pc) && FrameWord(callee).is_of_a_jvm()
}

/// A frame that is whole.
#[inline(always)]
fn whole_frame<A: Arch>(memory: &impl Memory, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Step {
    let Registers { pc, sp, fp, .. } = walk.registers;
    let at = A::INTERPRETER_FRAME;
    let read = if fp.wrapping_sub(sp) > MAX_FRAME_BYTES {
        Err(End::IMPLAUSIBLE)
    } else {
        memory.frame(fp.wrapping_sub(at.below_fp_bytes), walk.frame.as_mut())
    };
    let method = walk.frame[at.method];
    if read.is_err() || !is_method(method) {
        walk.push(blob_word(jvm, pc))?;
        return Err(read.err().unwrap_or(End::IMPLAUSIBLE));
    }
    let saved = A::saved_bcp(&walk.frame, jvm.bcp_words);
    let identity = MethodIdentity::read(memory, jvm, method);
    let bci = bci(jvm, walk, identity.const_method, saved);
    walk.push_method(FrameWord::interpreted(method, bci), identity)?;
    let least_sp = fp.wrapping_add(16);
    let sender_sp = walk.in_frame(fp, walk.frame[at.sender_sp]);
    let sender_sp = if sender_sp.wrapping_sub(least_sp) < MAX_FRAME_BYTES { sender_sp } else { least_sp };
    let caller_fp = walk.in_frame(fp, walk.frame[at.caller_fp]);
    walk.return_to(walk.frame[at.return_address], sender_sp, caller_fp)
}

#[inline(always)]
fn has_frame<A: Arch>(memory: &impl Memory, walk: &Walk<A>) -> bool {
    let Registers { sp, fp, .. } = walk.registers;
    fp.wrapping_sub(sp) <= MAX_FRAME_BYTES && memory.word(A::INTERPRETER_FRAME.method_slot(fp)).is_ok_and(is_method)
}

/// The interpreter keeps the bytecode pointer in a register, and in the frame when it calls.
#[inline(always)]
fn bci<A: Arch>(jvm: &JvmUnwind, walk: &Walk<A>, const_method: u64, saved: u64) -> u16 {
    let bytecodes = const_method.wrapping_add(u64::from(jvm.const_method_size));
    let live = A::bytecode_pointer(&walk.registers.live).wrapping_sub(bytecodes);
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
