//! Tests walks through processes that are made up, word by word. Each test is for all processors; what only one of them has
//! is tested beside its code.

extern crate std;

/// Makes tests of functions that have the processor as a parameter: one of each for each processor.
macro_rules! for_each_arch {
    ($($test:ident),+ $(,)?) => {
        mod x86_64 {
            $(
                #[test]
                fn $test() {
                    super::$test::<crate::walk::arch::X86_64>();
                }
            )+
        }
        mod aarch64 {
            $(
                #[test]
                fn $test() {
                    super::$test::<crate::walk::arch::Aarch64>();
                }
            )+
        }
    };
}

mod chunk;
mod continuation;
mod dispatch;
pub(super) mod hotspot;
pub(super) mod interpreted;
pub(super) mod native;
mod random;

use std::{
    boxed::Box,
    cell::{Cell, RefCell},
    collections::HashMap,
    marker::PhantomData,
    vec,
    vec::Vec,
};

use super::{
    BlockWords, End, Memory, Registers, Step, Tables, Walk,
    arch::Arch,
    dispatch::{HostWalker, Parts, to_the_end},
};
use crate::abi::{
    CodeMapping, CompiledFrame, FrameRef, FrameWord, JvmUnwind, MAX_USER_FRAMES, ProcessUnwind, UnwindRow, walk_end,
};

pub(super) const STACK: u64 = 0x7fff_0000_0000;

/// What code and frames of a processor look like.
pub(super) trait MadeUp: Arch {
    /// Code that does nothing.
    const FILL: u64;
    /// A call. The address behind it is the one to be returned to.
    const CALL: &[u8];
    /// The same through a register.
    const INDIRECT_CALL: &[u8];
    /// Of a row: rule and words of a function that has no frame.
    const NO_FRAME: (u8, i16);

    /// Handlers of deoptimisation, as C2 and C1 make them.
    fn deopt_handlers(process: &mut MadeUpProcess<Self>, handlers: [u64; 2]);

    /// Registers of code without a frame that was called: the first word on the stack is what it returns to.
    fn called(process: &MadeUpProcess<Self>, registers: Registers<Self>) -> Registers<Self>;

    fn with_bytecode_pointer(registers: Registers<Self>, pointer: u64) -> Registers<Self>;

    /// A reference to an address, whose colour has this bit of those that matter.
    fn coloured(address: u64, bit: u32) -> u64;

    /// What the kernel leaves for the handler of a signal, with these registers of the interrupted code, of which the
    /// first word on the stack is what it returns to.
    fn signal_frame(process: &mut MadeUpProcess<Self>, sp: u64, interrupted: Registers<Self>);
}

/// A process: its memory, byte by byte, and its tables.
#[derive(Default)]
pub(super) struct MadeUpProcess<A> {
    arch: PhantomData<A>,
    bytes: HashMap<u64, u8>,
    pub(super) mappings: Vec<CodeMapping>,
    pub(super) rows: Vec<UnwindRow>,
    pub(super) jvm: Option<JvmUnwind>,
    /// What a walk has noted.
    pub(super) enters: Cell<u64>,
    /// What walks remember of places in compiled code.
    remembered: RefCell<HashMap<u64, CompiledFrame>>,
}

impl<A: Arch> MadeUpProcess<A> {
    pub(super) fn code(&mut self, address: u64, bytes: &[u8]) -> &mut Self {
        for (address, byte) in (address..).zip(bytes) {
            self.bytes.insert(address, *byte);
        }
        self
    }

    pub(super) fn words(&mut self, address: u64, words: &[u64]) -> &mut Self {
        for (address, word) in (address..).step_by(8).zip(words) {
            self.code(address, &word.to_le_bytes());
        }
        self
    }

    /// The frames of a walk from these registers on, and its end. They are the same if the process was walked before.
    pub(super) fn walk(&self, registers: Registers<A>) -> (Vec<FrameRef>, u8) {
        self.remembered.borrow_mut().clear();
        let walked = self.walk_again(registers);
        assert_eq!(self.walk_again(registers), walked);
        walked
    }

    /// With what earlier walks remember.
    pub(super) fn walk_again(&self, registers: Registers<A>) -> (Vec<FrameRef>, u8) {
        let mut walk = Box::new(Walk::default());
        let mapping_count = self.mappings.len() as u32;
        walk.begin(registers, ProcessUnwind { mapping_count, ..ProcessUnwind::default() });
        let parts = Parts { walk: &mut walk, memory: self, tables: self };
        let end = to_the_end(&mut HostWalker(parts));
        let frames = walk.words[..walk.header.len as usize].iter().map(|word| FrameWord(*word).decode());
        (frames.collect(), walk.quality(end).0)
    }
}

fn read(memory: &impl Memory, address: u64, words: &mut [u64]) -> Step {
    for (address, word) in (address..).step_by(8).zip(words) {
        *word = memory.word(address)?;
    }
    Ok(())
}

impl<A: Arch> Memory for MadeUpProcess<A> {
    fn byte(&self, address: u64) -> Result<u8, End> {
        self.bytes.get(&address).copied().ok_or(End::UNREADABLE)
    }

    fn word(&self, address: u64) -> Result<u64, End> {
        let mut bytes = [0; 8];
        for (index, byte) in (0..).zip(&mut bytes) {
            *byte = self.byte(address.wrapping_add(index))?;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    fn pair(&self, address: u64) -> Result<[u64; 2], End> {
        let mut words = [0; 2];
        read(self, address, &mut words).map(|()| words)
    }

    fn frame(&self, address: u64, words: &mut [u64]) -> Step {
        read(self, address, words)
    }

    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        read(self, address, &mut words[..bytes.div_ceil(8) as usize])
    }
}

impl<A: Arch> Tables for MadeUpProcess<A> {
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        self.mappings.get(index as usize)
    }

    fn row(&self, index: u32) -> Option<&UnwindRow> {
        self.rows.get(index as usize)
    }

    fn jvm(&self, _: &ProcessUnwind) -> Option<&JvmUnwind> {
        self.jvm.as_ref()
    }

    fn enters(&self, _: &ProcessUnwind, pc: u64) {
        self.enters.set(pc);
    }

    fn remembered_frame(&self, _: &ProcessUnwind, pc: u64) -> Option<CompiledFrame> {
        self.remembered.borrow().get(&pc).copied()
    }

    fn remember_frame(&self, _: &ProcessUnwind, pc: u64, frame: CompiledFrame) {
        self.remembered.borrow_mut().insert(pc, frame);
    }
}

pub(super) fn native(address: u64) -> FrameRef {
    FrameRef::Native { address }
}

/// An interpreter's frame around `fp`: the caller's stack pointer, frame pointer
/// and return address.
pub(super) fn interpreted_frame<A: Arch>(
    process: &mut MadeUpProcess<A>,
    fp: u64,
    bcp: u64,
    sender_sp: u64,
    caller_fp: u64,
    pc: u64,
) {
    let begin = fp - A::INTERPRETER_FRAME.below_fp_bytes;
    process.words(begin, &interpreter_words::<A>(bcp, sender_sp, caller_fp, pc));
}

/// The words of an interpreter's frame, from the bytecode pointer on.
fn interpreter_words<A: Arch>(bcp: u64, sender_sp: u64, caller_fp: u64, pc: u64) -> Vec<u64> {
    let at = A::INTERPRETER_FRAME;
    let mut words = vec![0; at.return_address + 1];
    (words[0], words[at.method]) = (bcp, hotspot::METHOD);
    (words[at.sender_sp], words[at.caller_fp], words[at.return_address]) = (sender_sp, caller_fp, pc);
    words
}
