//! Defines registers, and what is kept in them.

use super::code_address;
use crate::{
    abi::{JvmUnwind, sender_sp},
    walk::{Memory, Step},
};

/// What is known of the registers of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub pc: u64,
    /// See [`Registers::has_sp`].
    pub sp: u64,
    /// x29.
    pub fp: u64,
    /// x30. This and the rest only of code that was interrupted: no callee says where it saved them.
    pub lr: u64,
    pub x12: u64,
    pub x13: u64,
    pub x19: u64,
    pub x22: u64,
}

impl Registers {
    pub const WORDS: usize = 8;

    /// All, in the order in which images of processes have them.
    pub const fn of_words([pc, sp, fp, lr, x12, x13, x19, x22]: [u64; Self::WORDS]) -> Self {
        Self { pc, sp, fp, lr, x12, x13, x19, x22 }
    }

    /// Goes from a function's first instruction to its caller.
    #[inline(always)]
    pub fn enter_caller(&mut self, _: &impl Memory) -> Step {
        self.pc = code_address(self.lr);
        Ok(())
    }

    /// Whether the stack pointer is known. It is a multiple of 16. Behind a step by the frame pointer only a bound is
    /// known, at or below it: then 1 is added.
    #[inline(always)]
    pub(in crate::walk) const fn has_sp(&self) -> bool {
        self.sp & 1 == 0
    }

    /// The `Method*` that the interpreter enters (`rmethod`).
    #[inline(always)]
    pub const fn method(&self) -> u64 {
        self.x12
    }

    /// The interpreter's bytecode pointer (`rbcp`).
    #[inline(always)]
    pub const fn bytecode_pointer(&self) -> u64 {
        self.x22
    }

    /// The caller's stack pointer, without what adapters add, where a method of the interpreter is entered.
    #[inline(always)]
    pub(super) const fn sender_sp(&self, jvm: &JvmUnwind) -> u64 {
        if jvm.sender_sp == sender_sp::X13 { self.x13 } else { self.x19 }
    }
}
