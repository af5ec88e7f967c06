//! Steps through code of a JVM whose frame nobody describes: stubs and adapters. The architecture
//! decides where their return addresses are.

use super::{
    End, Memory, Registers, Step, Tables, Walk,
    arch::stub::{by_frame_pointer, by_what_the_stack_holds, without_frame},
    hotspot::blob_word,
    is_in_code_cache,
};
use crate::abi::{FrameWord, JvmUnwind, walk_end};

/// Farthest that a stub's frame pointer is above its stack pointer.
pub(super) const MAX_FRAME_BYTES: u64 = 64 << 10;
/// Words that the JVM keeps of a virtual thread on its carrier's stack, and some.
const MAX_ENTRY_WORDS: u64 = 20;

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

/// Goes on when the rest of a virtual thread's stack is in the heap. Right above is the frame in
/// which its carrier entered it. What the JVM keeps there is not code, so the first return address
/// is the carrier's. But if C++ is just bringing more of the stack from the heap, anything may lie
/// there, and only the frame pointer tells.
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
