//! Defines registers, and what is kept in them.

use crate::walk::{Memory, Step};

/// What is known of the registers of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    /// The rest only of code that was interrupted: no callee says where it saved them.
    pub rax: u64,
    pub rbx: u64,
    pub r13: u64,
}

impl Registers {
    pub const WORDS: usize = 6;

    /// All, in the order in which images of processes have them.
    pub const fn of_words([pc, sp, fp, rax, rbx, r13]: [u64; Self::WORDS]) -> Self {
        Self { pc, sp, fp, rax, rbx, r13 }
    }

    /// Goes from a function's first instruction to its caller: the return address is on top of the stack.
    #[inline(always)]
    pub fn enter_caller(&mut self, memory: &impl Memory) -> Step {
        self.pc = memory.word(self.sp)?;
        self.sp = self.sp.wrapping_add(8);
        Ok(())
    }

    /// The `Method*` that the interpreter enters.
    #[inline(always)]
    pub const fn method(&self) -> u64 {
        self.rbx
    }

    /// The interpreter's bytecode pointer.
    #[inline(always)]
    pub const fn bytecode_pointer(&self) -> u64 {
        self.r13
    }
}
