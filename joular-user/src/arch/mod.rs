//! Contains what of user space depends on the processor: how code is decoded, what its instructions do to the stack,
//! how unwind tables name registers, and how static probes name operands.
//!
//! Each architecture is a folder that implements [`Arch`]; [`Native`] is the one that this program is built for. All
//! are built on every machine, so that tests of each run everywhere, and images of processes of another machine are
//! understood. The kernel side has the same in `walk/arch`.

pub mod aarch64;
mod registers;
mod rule;
pub mod state;
pub mod x86_64;

pub use aarch64::Aarch64;
use joular_ebpf::{abi::ArgumentPlace, walk};
pub use registers::{Moved, Moves, RegisterSet, Source};
pub use rule::{Rule, Saved, TableRow, words};
use serde::{Deserialize, Serialize};
use state::State;
pub use x86_64::X86_64;

#[cfg(target_arch = "x86_64")]
pub type Native = X86_64;
#[cfg(target_arch = "aarch64")]
pub type Native = Aarch64;

/// A processor whose code is understood, where it is known at run time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processor {
    X86_64,
    Aarch64,
}

impl Default for Processor {
    fn default() -> Self {
        Native::PROCESSOR
    }
}

/// Evaluates an expression with the [`Arch`] of a [`Processor`] as a type.
macro_rules! with_arch {
    ($processor:expr, $arch:ident => $value:expr) => {
        match $processor {
            $crate::arch::Processor::X86_64 => {
                type $arch = $crate::arch::X86_64;
                $value
            }
            $crate::arch::Processor::Aarch64 => {
                type $arch = $crate::arch::Aarch64;
                $value
            }
        }
    };
}
pub(crate) use with_arch;

/// The walk of stacks on a processor.
pub type WalkOf<A> = <A as Arch>::Walk;

/// Arguments of a function that every architecture passes in registers.
pub const ARGUMENTS: usize = 6;

/// Where an instruction is, and where execution goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub at: u64,
    /// Behind it.
    pub end: u64,
    pub flow: Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Behind it.
    Next,
    /// At this address, and behind it when that returns.
    Call(u64),
    /// The same, at an address from a register or memory.
    IndirectCall,
    /// At this address, or behind it.
    Branch(u64),
    /// At this address.
    Jump(u64),
    /// At an address from a register or memory.
    IndirectJump,
    Return,
    /// Nowhere that could be known: it is a fault.
    Stop,
    /// It is not an instruction.
    Invalid,
}

/// A processor architecture. A value of it decodes one piece of code in order, and may remember what it has passed.
pub trait Arch: Default {
    type Instruction;
    type Walk: walk::arch::Arch;

    const PROCESSOR: Processor;
    /// The number of its machine in the headers of ELF files (`e_machine`).
    const MACHINE: u16;
    /// Whose own instructions unwind tables have.
    const VENDOR: gimli::Vendor;
    /// To which compilers align most functions.
    const FUNCTION_ALIGNMENT_BYTES: u64;
    /// Whether a call pushes its return address.
    const CALL_PUSHES: bool;
    /// How to get to the caller from the first instruction of a function.
    const AS_CALLED: Rule;
    /// Registers of a function's first arguments, by number.
    const ARGUMENTS: [usize; ARGUMENTS];
    /// Registers that a function leaves as they were.
    const KEPT_BY_CALLS: RegisterSet;
    /// Whether methods of GraalVM native images are found in their code.
    const READS_NATIVE_IMAGES: bool;

    /// The instructions of code whose first byte is at `start`. What cannot be decoded is one as well.
    fn instructions(code: &[u8], start: u64) -> impl Iterator<Item = Self::Instruction>;

    fn step(instruction: &Self::Instruction) -> Step;

    /// At the first instruction of code that was called.
    fn called() -> State;

    /// Changes what is known of the stack by what an instruction does. `at` is its place in the code.
    fn pass(&mut self, instruction: &Self::Instruction, at: u32, state: &mut State);

    /// How to get to the caller.
    fn rule(state: &State) -> Rule;

    /// What an instruction writes, and what it only moves.
    fn moves(&mut self, instruction: &Self::Instruction) -> Moves;

    /// The address that an instruction calls, as far as that is plain from the instructions passed to this
    /// function before.
    fn callee(&mut self, instruction: &Self::Instruction) -> Option<u64>;

    /// Where code leads that only jumps to an address that stands behind it; calls of far addresses lead there.
    fn trampoline(code: &[u8]) -> Option<u64>;

    /// The address that an instruction puts into a register, if that may be one of code; of those passed to this
    /// function before, some may have made a part of it. Code that is not movable may have it as a number.
    fn taken_address(&mut self, instruction: &Self::Instruction, is_movable: bool) -> Option<u64>;

    /// Places in code, in order, at or right behind instructions that have an address as an operand. The code's first
    /// byte is at `start`.
    fn places_that_name(code: &[u8], start: u64, address: u64) -> impl Iterator<Item = u64>;

    /// The same of instructions that call or jump to an address that is one of those meant.
    fn places_that_lead(code: &[u8], start: u64, is_meant: impl Fn(u64) -> bool) -> impl Iterator<Item = u64>;

    /// Whether a function may end with this code, up to the address `end`. `is_code` says whether a function may
    /// be at an address.
    fn ends_function(code: &[u8], end: u32, is_code: impl Fn(u32) -> bool) -> bool;

    /// Whether this is what a C library has handlers of signals return to: the system call `rt_sigreturn`.
    fn ends_signal(code: &[u8]) -> bool;

    /// Whether an instruction may be the poll of a safepoint, in code that HotSpot compiled.
    fn is_poll(instruction: &Self::Instruction) -> bool;

    /// The rule that a row of an unwind table says.
    fn table_rule(row: &TableRow) -> Rule;

    /// The numbers of the frame and stack pointers in unwind tables.
    const DWARF_FP: u16;

    /// The byte of its slot from which the code of a linkage table has pushed a word, if this DWARF expression is
    /// one of the frame address there.
    fn plt_pushes_at(expression: &[u8]) -> Option<u64>;

    /// Where an operand of 8 bytes of a static probe is, as the assembler writes it, without its size.
    fn probe_operand(operand: &str) -> Option<ArgumentPlace>;
}

/// A program for aarch64 whose source and making are beside it.
#[cfg(test)]
pub fn aarch64_fixture(name: &str) -> std::fs::File {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/aarch64"));
    std::fs::File::open(folder.join(name)).unwrap()
}
