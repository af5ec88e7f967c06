//! Contains what of a walk depends on the processor: a folder for each architecture, which implements [`Arch`].
//!
//! [`Native`] is the one that this is built for: the processor of the eBPF programs, and elsewhere that of the host. All are
//! built on every machine, so that tests of each run everywhere, and images of processes of another machine are walked. What
//! depends on the processor in the programs themselves is in `unwind/arch` of their binary.

pub mod aarch64;
pub mod x86_64;

use core::{fmt::Debug, ops::Index};

pub use aarch64::Aarch64;
pub use x86_64::X86_64;

use super::{End, Memory, Registers, Step, Tables, Walk, compiled::Kind};
use crate::abi::{JvmUnwind, UnwindRow};

#[cfg(any(bpf_target_arch = "aarch64", target_arch = "aarch64"))]
pub type Native = Aarch64;
#[cfg(not(any(bpf_target_arch = "aarch64", target_arch = "aarch64")))]
pub type Native = X86_64;

/// Where an interpreter's frame has what a walk reads: words around its frame pointer, the lowest one first. The same since
/// JDK 9, and told by no table.
#[derive(Clone, Copy, Debug)]
pub struct InterpreterFrame {
    /// From the frame pointer on down to the first word, the bytecode pointer.
    pub below_fp_bytes: u64,
    /// Places among the words: of the `Method*`,
    pub method: usize,
    /// of the caller's stack pointer, without the arguments that an adapter pushed,
    pub sender_sp: usize,
    pub caller_fp: usize,
    pub return_address: usize,
}

impl InterpreterFrame {
    /// Where the bytecode pointer stands, in words from the frame pointer.
    pub const fn bcp_words(&self) -> i32 {
        -(self.below_fp_bytes as i32 / 8)
    }

    /// Where the `Method*` stands.
    #[inline(always)]
    pub const fn method_slot(&self, fp: u64) -> u64 {
        fp.wrapping_sub(self.below_fp_bytes).wrapping_add(self.method as u64 * 8)
    }
}

/// A processor architecture, by its procedure call standard and as HotSpot uses it.
pub trait Arch: Copy + Debug + Default + Eq + 'static {
    /// Registers that only interrupted code has: no callee says where it saved them.
    type Live: Copy + Debug + Default + Eq;
    /// Words of an interpreter's frame: as many as stand from the first one that is read up to the last.
    type FrameWords: Copy + Debug + Default + AsMut<[u64]> + Index<usize, Output = u64>;

    const INTERPRETER_FRAME: InterpreterFrame;

    /// All registers, in the order in which images of processes have them. Those that are missing are 0.
    fn registers(words: &[u64]) -> Registers<Self>;

    /// Goes from a function's first instruction to its caller.
    fn enter_caller(registers: &mut Registers<Self>, memory: &impl Memory) -> Step;

    /// Whether a stack pointer may be the caller's: it is above that of the frame. Where a call pushes nothing, interrupted
    /// code may not have moved it yet.
    fn may_be_callers(walk: &Walk<Self>, sp: u64) -> bool;

    /// The `Method*` that the interpreter enters.
    fn method(live: &Self::Live) -> u64;

    /// The interpreter's bytecode pointer.
    fn bytecode_pointer(live: &Self::Live) -> u64;

    /// The address in a return address, which may be signed.
    fn code_address(word: u64) -> u64;

    /// Whether code is returned to there: behind a call, or where a method's handler of deoptimisation begins.
    fn is_returned_to(memory: &impl Memory, pc: u64) -> bool;

    /// The address in a reference of generational ZGC, which may have colours.
    fn uncoloured(reference: u64) -> u64;

    /// Goes on in the caller by a row of unwind tables. Its rule is one of those that say where a frame ends.
    fn by_row(memory: &impl Memory, walk: &mut Walk<Self>, row: UnwindRow) -> Step;

    /// Whether a rule is one that a stub of a JVM has.
    fn is_of_stub(rule: u8) -> bool;

    /// The stack pointer of the caller of a frame of native code whose frame pointer is this.
    fn above_frame_pointer(fp: u64) -> u64;

    /// Registers of the code that a signal interrupted, from what the kernel left for its handler.
    fn interrupted(memory: &impl Memory, frame: u64) -> Result<Registers<Self>, End>;

    /// Goes on in the caller of code with a frame of a fixed size, which may be about to make or remove it.
    fn compiled_caller(
        memory: &impl Memory,
        tables: &impl Tables,
        jvm: &JvmUnwind,
        walk: &mut Walk<Self>,
        kind: Kind,
    ) -> Step;

    /// Goes on in the caller of a stub that has a frame pointer.
    fn by_frame_pointer(memory: &impl Memory, walk: &mut Walk<Self>) -> Step;

    /// The same of one that has no frame.
    fn without_frame(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &mut Walk<Self>) -> Step;

    /// The same of code that nothing is known of.
    fn by_what_the_stack_holds(
        memory: &impl Memory,
        tables: &impl Tables,
        jvm: &JvmUnwind,
        walk: &mut Walk<Self>,
    ) -> Step;

    /// The bytecode pointer that stands in an interpreter's frame, as of the last call. `bcp_words` says where.
    fn saved_bcp(words: &Self::FrameWords, bcp_words: i32) -> u64;

    /// Whether an interpreter's frame is gone, but the jump back has not happened: where it leads, and the stack pointer
    /// there.
    fn leaving(memory: &impl Memory, tables: &impl Tables, jvm: &JvmUnwind, walk: &Walk<Self>) -> Option<(u64, u64)>;

    /// Whether it is not built yet: the caller's program counter, stack pointer and frame pointer.
    fn entering(
        memory: &impl Memory,
        tables: &impl Tables,
        jvm: &JvmUnwind,
        walk: &Walk<Self>,
    ) -> Option<(u64, u64, u64)>;

    /// Whether an intrinsic's entry called its stub without a frame: where it returns to, and the stack pointer there.
    fn calling_stub(
        memory: &impl Memory,
        tables: &impl Tables,
        jvm: &JvmUnwind,
        walk: &Walk<Self>,
    ) -> Option<(u64, u64)>;
}

/// The first words, with 0 for those that are missing.
fn first_words<const N: usize>(words: &[u64]) -> [u64; N] {
    core::array::from_fn(|index| words.get(index).copied().unwrap_or(0))
}
