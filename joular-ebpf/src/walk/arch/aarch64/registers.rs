//! Defines registers, and what is kept in them.

use super::Registers;
use crate::{
    abi::{JvmUnwind, sender_sp},
    walk::arch::first_words,
};

/// Registers that only interrupted code has.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// x30.
    pub lr: u64,
    /// The `Method*` that the interpreter enters (`rmethod`).
    pub x12: u64,
    pub x13: u64,
    pub x19: u64,
    /// The interpreter's bytecode pointer (`rbcp`).
    pub x22: u64,
}

pub(super) fn of_words(words: &[u64]) -> Registers {
    let [pc, sp, fp, lr, x12, x13, x19, x22] = first_words(words);
    Registers { pc, sp, fp, live: Live { lr, x12, x13, x19, x22 } }
}

impl Registers {
    /// Whether the stack pointer is known. It is a multiple of 16. Behind a step by the frame pointer only a bound is
    /// known, at or below it: then 1 is added.
    #[inline(always)]
    pub(super) const fn has_sp(&self) -> bool {
        self.sp & 1 == 0
    }

    /// The caller's stack pointer, without what adapters add, where a method of the interpreter is entered.
    #[inline(always)]
    pub(super) const fn sender_sp(&self, jvm: &JvmUnwind) -> u64 {
        if jvm.sender_sp == sender_sp::X13 { self.live.x13 } else { self.live.x19 }
    }
}
