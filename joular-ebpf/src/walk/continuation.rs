//! Steps from a virtual thread to its carrier.
//!
//! A carrier enters a virtual thread through `Continuation.enterSpecial`. In that method's frame lies a
//! `ContinuationEntry`, and behind it the carrier's frame pointer and a return address. The thread's own frames
//! stand below. Those that the JVM has brought back from the heap were copied as they were: the frame pointer
//! that the lowest of them saved is that of an earlier entry, on any carrier. What such a frame returns to is
//! right: `enterSpecial`, or, where older frames are still in the heap, a stub that brings them
//! (`StubRoutines::cont_returnBarrier`). The walk then goes on with those in the heap ([`chunk`]).

use super::{
    End, Memory, Registers, Step, Tables, Walk, arch::Arch, chunk, hotspot::blob_word, is_in_code_cache,
    stub::MAX_FRAME_BYTES,
};
use crate::abi::{FrameWord, JvmUnwind, walk_end};

/// Most words of arguments on the stack: methods have up to 255, some of them in registers.
const MAX_ARGUMENT_WORDS: u64 = 256;
/// Of a `ContinuationEntry`: its size on the stack, `_parent` and `_cont`, `_flags` and `_argsize`. They
/// are the same in JDK 21 to 25, which do not tell them.
const ENTRY_BYTES: u64 = 64;
const ENTRY_PARENT: u64 = 8;
pub(super) const ENTRY_CONTINUATION: u64 = 16;
const ENTRY_FLAGS: u64 = 32;
/// Of the frame with the entry: what `enterSpecial` pushed first, and its return address.
const FRAME_BYTES: u64 = ENTRY_BYTES + 16;

/// Whether the frame to be walked, of this size, is that of `enterSpecial`, with its stack pointer where it should
/// be. The frame pointer proves nothing.
#[inline(always)]
pub(super) fn is_entered<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk<A>,
    bytes: u64,
) -> bool {
    let sp = walk.registers.sp;
    bytes == FRAME_BYTES
        && argument_words(memory, sp).is_some()
        && kept_of_carrier(memory, tables, jvm, walk, sp).is_some()
}

/// Goes on when the rest of a virtual thread's stack is in the heap, or where that part ends.
#[inline(always)]
pub(super) fn step<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Step {
    if walk.is_in_chunk() {
        if chunk::go_on_behind(memory, tables, jvm, walk) {
            return Ok(());
        }
        let entry = chunk::leave(walk);
        let is_known = walk.is_frozen == 0 && jvm.enter_special != 0;
        return if is_known { walk.go_on(jvm.enter_special, entry, 0) } else { to_carrier(memory, walk, entry) };
    }
    let callee = walk.words.get((walk.header.len as usize).wrapping_sub(1)).copied();
    let is_of_thread = callee.is_some_and(|word| FrameWord(word).is_of_a_jvm());
    let entry = if is_of_thread { find_entry(memory, tables, jvm, walk) } else { None };
    if let Some(entry) = entry
        && chunk::begin(memory, tables, jvm, walk, entry)
    {
        return Ok(());
    }
    walk.push(blob_word(jvm, walk.registers.pc))?;
    walk.is_frozen = 1;
    match entry {
        Some(entry) => to_carrier(memory, walk, entry),
        None if is_of_thread => Err(End(walk_end::FROZEN)),
        None => while_brought(memory, tables, jvm, walk),
    }
}

/// C++ is just bringing more of the stack from the heap. Anything may lie there, and only the frame pointer tells.
#[inline(always)]
fn while_brought<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Step {
    let Registers { sp, fp, .. } = walk.registers;
    match memory.pair(fp) {
        Ok([_, pc]) if is_carrier(memory, tables, jvm, walk, pc) && fp.wrapping_sub(sp) < MAX_FRAME_BYTES => {
            A::by_frame_pointer(memory, walk)
        }
        _ => Err(End(walk_end::FROZEN)),
    }
}

/// The entry of the virtual thread. Above the stack pointer are arguments of the frame that is the last one here, and
/// then the frame in which the carrier entered the thread.
#[inline(always)]
fn find_entry<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk<A>) -> Option<u64> {
    for index in 0..=MAX_ARGUMENT_WORDS {
        let entry = walk.registers.sp.wrapping_add(index * 8);
        // Entry and frames are aligned to two words, so one may lie behind the arguments.
        let is_it = |arguments: u64| index == arguments + arguments % 2;
        if argument_words(memory, entry).is_some_and(is_it)
            && kept_of_carrier(memory, tables, jvm, walk, entry).is_some()
        {
            return Some(entry);
        }
    }
    None
}

/// Goes on in the carrier behind an entry, which was found to be one. In the heap, addresses may be higher.
#[inline(always)]
fn to_carrier<A: Arch>(memory: &impl Memory, walk: &mut Walk<A>, entry: u64) -> Step {
    let [fp, pc] = memory.pair(entry.wrapping_add(ENTRY_BYTES))?;
    walk.go_on(pc, entry.wrapping_add(FRAME_BYTES), fp)
}

/// How many words of arguments the lowest frame of a virtual thread has, if the thread's `ContinuationEntry` may
/// begin there: it has no parent, is of a continuation, and says that this is a virtual thread.
#[inline(always)]
fn argument_words(memory: &impl Memory, entry: u64) -> Option<u64> {
    let [parent, continuation] = memory.pair(entry.wrapping_add(ENTRY_PARENT)).ok()?;
    if parent != 0 || continuation == 0 {
        return None;
    }
    let word = memory.word(entry.wrapping_add(ENTRY_FLAGS)).ok()?;
    (word as u32 == 1 && word >> 32 <= MAX_ARGUMENT_WORDS).then_some(word >> 32)
}

/// The carrier's frame pointer and program counter, behind an entry.
#[inline(always)]
fn kept_of_carrier<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk<A>,
    entry: u64,
) -> Option<[u64; 2]> {
    let [fp, pc] = memory.pair(entry.wrapping_add(ENTRY_BYTES)).ok()?;
    is_carrier(memory, tables, jvm, walk, pc).then_some([fp, pc])
}

#[inline(always)]
fn is_carrier<A: Arch>(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk<A>, pc: u64) -> bool {
    is_in_code_cache(jvm, A::code_address(pc)) && tables.is_return_address(memory, jvm, walk, pc)
}
