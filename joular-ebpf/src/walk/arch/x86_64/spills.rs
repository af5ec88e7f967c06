//! Finds out how much compiled code has put on the stack beyond its frame while C++ works for it: the
//! barriers of ZGC, and since JDK 24 of G1, keep registers there (`SaveLiveRegisters` in HotSpot), and those
//! of C1 arguments. No description says so, but the code that is returned to does: it restores what was kept,
//! and then the stack pointer.

use super::{
    Walk,
    instructions::{is_pop_frame_pointer, lowers_stack, raises_stack},
};
use crate::walk::{BLOCK_WORDS, Memory};

/// Of code that restores registers: 15 general ones, and as many of vectors.
const SEARCHED_BYTES: u32 = 256;
/// 32 registers of 64 bytes, and the general ones.
const MAX_SPILLED_BYTES: u64 = 4 << 10;

/// The bytes that the code at the program counter will take off the stack before it does anything else to
/// it. The block that was read is forgotten.
#[inline(always)]
pub(super) fn spilled_bytes(memory: &impl Memory, walk: &mut Walk) -> Option<u64> {
    // There is no other room for so many bytes.
    walk.block.end = 0;
    memory.block(walk.registers.pc, SEARCHED_BYTES, &mut walk.block.words).ok()?;
    for at in 0..SEARCHED_BYTES - 8 {
        let next = unaligned(&walk.block.words, at);
        if lowers_stack(next) {
            return None;
        }
        if let Some((bytes, length)) = raises_stack(next) {
            // The method's own end restores the frame pointer next.
            let behind = unaligned(&walk.block.words, at.wrapping_add(length));
            let is_end = is_pop_frame_pointer(behind);
            return if is_end || bytes > MAX_SPILLED_BYTES { None } else { Some(bytes) };
        }
    }
    None
}

/// The 8 bytes from an offset on.
#[inline(always)]
fn unaligned(words: &[u64; BLOCK_WORDS], at: u32) -> u64 {
    let (index, shift) = (at as usize / 8, at % 8 * 8);
    // Every offset is within; the mask tells the verifier so.
    let word = |index: usize| words.get(index & (BLOCK_WORDS - 1)).copied().unwrap_or(0);
    if shift == 0 { word(index) } else { word(index) >> shift | word(index + 1) << (64 - shift) }
}
