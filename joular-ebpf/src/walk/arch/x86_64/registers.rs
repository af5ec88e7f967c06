//! Defines registers, and what is kept in them.

use super::Registers;
use crate::walk::{Memory, Step, arch::first_words};

/// Registers that only interrupted code has.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub rax: u64,
    /// The `Method*` that the interpreter enters.
    pub rbx: u64,
    /// The interpreter's bytecode pointer.
    pub r13: u64,
}

pub(super) fn of_words(words: &[u64]) -> Registers {
    let [pc, sp, fp, rax, rbx, r13] = first_words(words);
    Registers { pc, sp, fp, live: Live { rax, rbx, r13 } }
}

/// The return address is on top of the stack.
#[inline(always)]
pub(super) fn enter_caller(registers: &mut Registers, memory: &impl Memory) -> Step {
    registers.pc = memory.word(registers.sp)?;
    registers.sp = registers.sp.wrapping_add(8);
    Ok(())
}
