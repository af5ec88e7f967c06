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
    /// All, in the order in which images of processes have them.
    pub const fn of_words([pc, sp, fp, rax, rbx, r13]: [u64; 6]) -> Self {
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

/// Numbers of registers in DWARF's tables (System V ABI, AMD64 supplement, 3.6.2).
pub mod dwarf {
    pub const FP: u16 = 6;
    pub const SP: u16 = 7;
    /// The column of the return address.
    pub const RETURN_ADDRESS: u16 = 16;
}
