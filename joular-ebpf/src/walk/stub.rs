//! Steps through code of a JVM whose frame nobody describes: stubs and adapters. Most stubs have rows,
//! which user space made from their code. For the others, the architecture decides where their
//! return addresses are.

use super::{
    End, Memory, Registers, Step, Tables, Walk,
    arch::stub::{by_frame_pointer, by_what_the_stack_holds, without_frame},
    hotspot::blob_word,
    is_in_code_cache, native,
};
use crate::abi::{FrameWord, JvmUnwind, UnwindRow, rule, walk_end};

/// Farthest that a stub's frame pointer is above its stack pointer.
pub(super) const MAX_FRAME_BYTES: u64 = 64 << 10;
/// Most words of arguments on the stack: methods have up to 255, some of them in registers.
const MAX_ARGUMENT_WORDS: u64 = 256;
/// Of a `ContinuationEntry`: its size on the stack, `_parent` and `_cont`, `_flags` and `_argsize`. They
/// are the same in JDK 21 to 25, which do not tell them.
const ENTRY_BYTES: u64 = 64;
const ENTRY_PARENT: u64 = 8;
const ENTRY_FLAGS: u64 = 32;

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

/// One frame of a stub by its row; `None` if it has none. What the row calls the return address must
/// look like one.
#[inline(always)]
pub fn step_by_row(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Option<Step> {
    let row = native::row_of(tables, walk)?;
    if !matches!(row.rule, rule::SP | rule::FP | rule::SP_PUSHED | rule::KEPT_SP..) {
        return None;
    }
    Some(by_row(memory, tables, jvm, walk, row))
}

#[inline(always)]
fn by_row(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk, row: UnwindRow) -> Step {
    walk.push(blob_word(jvm, walk.registers.pc))?;
    let mut pushed = 0;
    let mut row = row;
    if row.rule == rule::SP_PUSHED {
        pushed = row.fp_words as u8;
        row = UnwindRow { rule: rule::SP, fp_words: 0, ..row };
    }
    native::by_row(memory, walk, row)?;
    walk.registers.sp = walk.registers.sp.wrapping_add(u64::from(pushed) * 8);
    let is_proved = tables.is_return_address(memory, jvm, &walk.process, walk.registers.pc);
    if is_proved { Ok(()) } else { Err(End::IMPLAUSIBLE) }
}

/// Goes on when the rest of a virtual thread's stack is in the heap. Above are arguments of the frame
/// that is the last one here, and then the frame in which the carrier entered the thread: what the JVM
/// keeps of it ([`is_entry`]), the carrier's frame pointer, and a return address. But if C++ is just
/// bringing more of the stack from the heap, anything may lie there, and only the frame pointer tells.
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
    for index in 0..MAX_ARGUMENT_WORDS {
        let entry = sp.wrapping_add(index * 8);
        if !is_entry(memory, entry) {
            continue;
        }
        let kept = entry.wrapping_add(ENTRY_BYTES);
        return match memory.pair(kept) {
            Ok([fp, pc]) if is_carrier(pc) => walk.return_to(pc, kept.wrapping_add(16), fp),
            _ => Err(End(walk_end::FROZEN)),
        };
    }
    Err(End(walk_end::FROZEN))
}

/// Whether a `ContinuationEntry` of a virtual thread may begin there: it has no parent, is of a
/// continuation, says that this is a virtual thread, and how many words of arguments there are.
#[inline(always)]
fn is_entry(memory: &impl Memory, address: u64) -> bool {
    let Ok([parent, continuation]) = memory.pair(address.wrapping_add(ENTRY_PARENT)) else { return false };
    if parent != 0 || continuation == 0 {
        return false;
    }
    let is_virtual_thread = |word: u64| word as u32 == 1 && word >> 32 <= MAX_ARGUMENT_WORDS;
    memory.word(address.wrapping_add(ENTRY_FLAGS)).is_ok_and(is_virtual_thread)
}
