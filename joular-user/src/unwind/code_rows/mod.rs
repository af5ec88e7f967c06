//! Makes rows from code itself, for code that has no table.
//!
//! A JVM writes stubs whose frames nothing describes, and some libraries have functions without a
//! table ([`super::gaps`]). Some keep no frame pointer, some use it for
//! other things, some align the stack pointer. But what an instruction does to the stack is plain:
//! code that was called has its return address on top of the stack or in a register, and from there on each
//! push, pop, subtraction and copy can be followed ([`crate::arch::state`]), along all ways through the code
//! ([`flow`]). Where it cannot, there is no row.
//!
//! The code is a target's: the work is bounded whatever it says.

#[cfg(test)]
mod aarch64_tests;
pub mod flow;
#[cfg(test)]
mod tests;

use joular_ebpf::abi::{UnwindRow, rule};

use super::rows::{Rows, Rule};
use crate::{arch::Arch, runtimes::OwnCode};

/// The rows of code; addresses count from its beginning.
pub fn rows<A: Arch>(code: &OwnCode) -> Vec<UnwindRow> {
    let mut rows = Rows::of::<A>();
    for piece in &code.called {
        let (start, end) = (piece.start as usize, piece.end as usize);
        let Some(bytes) = code.bytes.get(start..end) else { continue };
        if u64::from(piece.start) < rows.end {
            continue;
        }
        rows.begin(u64::from(piece.start));
        let mut covered = piece.start;
        for line in flow::lines::<A>(bytes) {
            let at = piece.start + line.start;
            if at > covered {
                // Nothing leads there, or not along a way that can be followed.
                rows.push(u64::from(covered), Rule::only(rule::NONE));
            }
            rows.push(u64::from(at), line.rule);
            covered = piece.start + line.end;
        }
        if covered < piece.end {
            rows.push(u64::from(covered), Rule::only(rule::NONE));
        }
        rows.end = u64::from(piece.end);
    }
    let mut rows = rows.finish();
    if code.pushed_words > 0 {
        let own_frame = rows.iter_mut().filter(|row| row.rule == rule::SP && row.fp_words == 0);
        own_frame.for_each(|row| (row.rule, row.fp_words) = (rule::SP_PUSHED, code.pushed_words));
        // The others would lead to the caller's frame without what it pushed.
        rows.iter_mut().filter(|row| row.rule != rule::SP_PUSHED).for_each(|row| row.rule = rule::NONE);
    }
    rows
}
