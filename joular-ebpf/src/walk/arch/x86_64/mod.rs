//! Supports x86-64, by the System V ABI and as HotSpot uses it.

mod colours;
mod compiled;
mod instructions;
mod interpreter;
#[cfg(test)]
mod made_up;
mod native;
pub mod plt;
mod registers;
mod signal_frame;
mod spills;
mod stub;
#[cfg(test)]
mod tests;

pub use registers::Live;

use super::{Arch, InterpreterFrame};
use crate::{
    abi::{JvmUnwind, UnwindRow},
    walk::{self, End, Memory, Step, Tables, compiled::Kind},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct X86_64;

type Registers = walk::Registers<X86_64>;
type Walk = walk::Walk<X86_64>;

impl Arch for X86_64 {
    type Live = Live;
    type FrameWords = interpreter::FrameWords;

    const INTERPRETER_FRAME: InterpreterFrame = interpreter::FRAME;

    fn registers(words: &[u64]) -> Registers {
        registers::of_words(words)
    }

    #[inline(always)]
    fn enter_caller(registers: &mut Registers, memory: &impl Memory) -> Step {
        registers::enter_caller(registers, memory)
    }

    #[inline(always)]
    fn may_be_callers(walk: &Walk, sp: u64) -> bool {
        sp > walk.registers.sp
    }

    #[inline(always)]
    fn method(live: &Live) -> u64 {
        live.rbx
    }

    #[inline(always)]
    fn bytecode_pointer(live: &Live) -> u64 {
        live.r13
    }

    #[inline(always)]
    fn code_address(word: u64) -> u64 {
        instructions::code_address(word)
    }

    #[inline(always)]
    fn is_returned_to(memory: &impl Memory, pc: u64) -> bool {
        instructions::is_returned_to(memory, pc)
    }

    #[inline(always)]
    fn uncoloured(reference: u64) -> u64 {
        colours::uncoloured(reference)
    }

    #[inline(always)]
    fn by_row(memory: &impl Memory, walk: &mut Walk, row: UnwindRow) -> Step {
        native::by_row(memory, walk, row)
    }

    #[inline(always)]
    fn is_of_stub(rule: u8) -> bool {
        native::is_of_stub(rule)
    }

    #[inline(always)]
    fn above_frame_pointer(fp: u64) -> u64 {
        native::above_frame_pointer(fp)
    }

    #[inline(always)]
    fn interrupted(memory: &impl Memory, frame: u64) -> Result<Registers, End> {
        signal_frame::registers(memory, frame)
    }

    #[inline(always)]
    fn compiled_caller(
        memory: &impl Memory,
        tables: &impl Tables,
        jvm: &JvmUnwind,
        walk: &mut Walk,
        kind: Kind,
    ) -> Step {
        compiled::caller(memory, tables, jvm, walk, kind)
    }

    #[inline(always)]
    fn by_frame_pointer(memory: &impl Memory, walk: &mut Walk) -> Step {
        stub::by_frame_pointer(memory, walk)
    }

    #[inline(always)]
    fn without_frame(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
        stub::without_frame(memory, tables, jvm, walk)
    }

    #[inline(always)]
    fn by_what_the_stack_holds(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk) -> Step {
        stub::by_what_the_stack_holds(memory, tables, jvm, walk)
    }

    #[inline(always)]
    fn saved_bcp(words: &interpreter::FrameWords, bcp_words: i32) -> u64 {
        // JDK 8 has it a word higher.
        if bcp_words == -7 { words[1] } else { words[0] }
    }

    #[inline(always)]
    fn leaving(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> Option<(u64, u64)> {
        interpreter::leaving(memory, tables, jvm, walk)
    }

    #[inline(always)]
    fn entering(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> Option<(u64, u64, u64)> {
        interpreter::entering(memory, tables, jvm, walk)
    }

    #[inline(always)]
    fn calling_stub(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk) -> Option<(u64, u64)> {
        interpreter::calling_stub(memory, tables, jvm, walk)
    }
}
