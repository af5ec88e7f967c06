//! Finds out how much compiled code has put on the stack beyond its frame: around calls of C++ it keeps registers there
//! (`SaveLiveRegisters` and `push_call_clobbered_registers` in HotSpot), and for short calls two words. No description
//! says so, but the code that is executed next does: it restores what was kept, and then the stack pointer.

use super::{
    Walk,
    instructions::{ends_run, stack_change},
};
use crate::walk::{BLOCK_WORDS, Memory};

/// Of code that restores registers: a few instructions, each for two or four registers.
const SEARCHED_WORDS: usize = 32;
/// 32 registers of 64 bytes, and the general ones.
const MAX_SPILLED_BYTES: i64 = 4 << 10;

/// The bytes that the code at the program counter will take off the stack before it goes elsewhere, with calls
/// between; 0 if it takes none. The block that was read is forgotten.
#[inline(always)]
pub(super) fn spilled_bytes(memory: &impl Memory, walk: &mut Walk) -> u64 {
    // There is no other room for so many bytes.
    walk.block.end = 0;
    if memory.block(walk.registers.pc, SEARCHED_WORDS as u32 * 8, &mut walk.block.words).is_err() {
        return 0;
    }
    let mut bytes = 0;
    for index in 0..SEARCHED_WORDS {
        // Every index is within; the mask tells the verifier so.
        let word = walk.block.words.get(index & (BLOCK_WORDS - 1)).copied().unwrap_or(0);
        let (first, second) = (word as u32, (word >> 32) as u32);
        if ends_run(first) {
            break;
        }
        bytes += stack_change(first);
        if ends_run(second) {
            break;
        }
        bytes += stack_change(second);
    }
    if bytes > 0 && bytes <= MAX_SPILLED_BYTES { bytes as u64 } else { 0 }
}
