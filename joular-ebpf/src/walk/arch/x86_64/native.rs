//! Applies rows of unwind tables: the return address stands in the word below the canonical frame address.

use super::{Walk, plt};
use crate::{
    abi::{UnwindRow, rule, walk_end},
    walk::{
        End, Memory, Step,
        native::{return_to, words},
    },
};

/// Goes on in the caller by a row.
#[inline(always)]
pub(super) fn by_row(memory: &impl Memory, walk: &mut Walk, row: UnwindRow) -> Step {
    match row.rule {
        rule::SP => by_frame_address(memory, walk, row, walk.registers.sp),
        rule::FP => by_frame_address(memory, walk, row, walk.registers.fp),
        rule::PLT => {
            let row = UnwindRow { cfa_words: plt::cfa_words(walk.registers.pc), fp_words: 0, ..row };
            by_frame_address(memory, walk, row, walk.registers.sp)
        }
        rule::KEPT_SP.. => {
            let kept = memory.word(walk.registers.sp.wrapping_add(words(row.cfa_words as i64)))?;
            let row = UnwindRow { cfa_words: (row.rule - rule::KEPT_SP) as i16, ..row };
            by_frame_address(memory, walk, row, kept)
        }
        _ => Err(End(walk_end::NO_RULE)),
    }
}

/// Whether a rule is one that a stub of a JVM has.
#[inline(always)]
pub(super) const fn is_of_stub(of: u8) -> bool {
    matches!(of, rule::SP | rule::FP | rule::SP_PUSHED | rule::KEPT_SP..)
}

/// The stack pointer of the caller of a frame whose frame pointer is this.
#[inline(always)]
pub(super) const fn above_frame_pointer(fp: u64) -> u64 {
    fp.wrapping_add(16)
}

/// The frame address is the base register plus the row's words.
#[inline(always)]
pub(super) fn by_frame_address(memory: &impl Memory, walk: &mut Walk, row: UnwindRow, base: u64) -> Step {
    let cfa = base.wrapping_add(words(row.cfa_words as i64));
    // Mostly both stand side by side: one read.
    if row.fp_words == -2 {
        let [fp, pc] = memory.pair(cfa.wrapping_sub(16))?;
        return return_to(walk, pc, cfa, fp);
    }
    let pc = memory.word(cfa.wrapping_sub(8))?;
    let fp = match row.fp_words {
        0 => walk.registers.fp,
        from_cfa => memory.word(cfa.wrapping_add(words(from_cfa as i64)))?,
    };
    return_to(walk, pc, cfa, fp)
}
