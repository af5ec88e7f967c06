//! Applies rows of unwind tables: they say whether the return address is in the link register, or where it was saved.

use super::{
    Live, Registers, Walk,
    instructions::{code_address, ends_with_call, is_signal_return},
};
use crate::{
    abi::{UnwindRow, rule, walk_end},
    walk::{
        End, Memory, Step,
        native::{return_to, words},
    },
};

/// Goes on in the caller by a row: the frame address is a base register plus the row's words.
#[inline(always)]
pub(super) fn by_row(memory: &impl Memory, walk: &mut Walk, row: UnwindRow) -> Step {
    let Registers { sp, fp, live: Live { lr, .. }, .. } = walk.registers;
    let is_counted_up = matches!(row.rule, rule::SP_PAIR | rule::FP_PAIR);
    let frame_bytes = words(row.cfa_words as i64);
    let saved_at = words(row.fp_words as i64).wrapping_add(if is_counted_up { 0 } else { frame_bytes });
    let is_saved = is_counted_up || row.fp_words != 0;
    let base = match row.rule {
        rule::SP | rule::SP_RETURN_ONLY | rule::SP_PAIR if walk.registers.has_sp() => sp,
        // A frame pointer leads to the pair that was saved, in all code that has one.
        rule::SP | rule::SP_PAIR if is_saved => fp.wrapping_sub(saved_at),
        rule::FP | rule::FP_RETURN_ONLY | rule::FP_PAIR => fp,
        _ => return Err(End(walk_end::NO_RULE)),
    };
    let cfa = base.wrapping_add(frame_bytes);
    if !is_saved {
        // A thread's first function may have 0 there.
        return match lr {
            _ if !walk.is_exact() => Err(End::IMPLAUSIBLE),
            0 => Err(End(walk_end::ROOT)),
            _ if is_link(memory, lr) => walk.return_to(lr, cfa, fp),
            _ => Err(End::IMPLAUSIBLE),
        };
    }
    // What was saved is part of a frame.
    if cfa <= sp {
        return Err(End::IMPLAUSIBLE);
    }
    let slot = base.wrapping_add(saved_at);
    if matches!(row.rule, rule::SP_RETURN_ONLY | rule::FP_RETURN_ONLY) {
        let pc = memory.word(slot)?;
        return return_to(walk, pc, cfa, fp);
    }
    let [caller_fp, pc] = memory.pair(slot)?;
    return_to(walk, pc, cfa, caller_fp)
}

/// Whether a call has left that in the link register, or the kernel for a handler of signals.
#[inline(always)]
fn is_link(memory: &impl Memory, lr: u64) -> bool {
    let pc = code_address(lr);
    let Ok([before, word]) = memory.pair(pc.wrapping_sub(8)) else { return false };
    ends_with_call(pc, before) || is_signal_return(word)
}

/// Whether a rule is one that a stub of a JVM has.
#[inline(always)]
pub(super) const fn is_of_stub(of: u8) -> bool {
    matches!(
        of,
        rule::SP
            | rule::SP_PUSHED
            | rule::FP
            | rule::SP_RETURN_ONLY
            | rule::FP_RETURN_ONLY
            | rule::SP_PAIR
            | rule::FP_PAIR
    )
}

/// The stack pointer of the caller of a frame whose frame pointer is this: a bound, since the pair that it points at is
/// at the bottom of most frames ([`Registers::has_sp`]).
#[inline(always)]
pub(super) const fn above_frame_pointer(fp: u64) -> u64 {
    fp.wrapping_add(16) | 1
}
