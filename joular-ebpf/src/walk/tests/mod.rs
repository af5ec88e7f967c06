//! Tests walks through processes that are made up, word by word.

extern crate std;

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
    vec::Vec,
};

use super::{
    BlockWords, End, FrameWords, Memory, Registers, Step, Tables, Walk,
    arch::{
        interpreter::frame,
        made_up::{
            CALL, FILL, INDIRECT_CALL, NO_FRAME, called, coloured, deopt_handlers, interpreter_words, signal_frame,
            with_bytecode_pointer,
        },
    },
    dispatch::{HostWalker, Parts, to_the_end},
};
use crate::abi::{
    CodeMapping, CompiledFrame, FrameRef, FrameWord, JvmUnwind, MAX_USER_FRAMES, ProcessUnwind, UnwindRow, walk_end,
};

pub(super) const STACK: u64 = 0x7fff_0000_0000;

/// A process: its memory, byte by byte, and its tables.
#[derive(Default)]
pub(super) struct MadeUpProcess {
    bytes: HashMap<u64, u8>,
    pub(super) mappings: Vec<CodeMapping>,
    pub(super) rows: Vec<UnwindRow>,
    pub(super) jvm: Option<JvmUnwind>,
    /// What a walk has noted.
    pub(super) enters: Cell<u64>,
    /// What walks remember of places in compiled code.
    remembered: RefCell<HashMap<u64, CompiledFrame>>,
}

impl MadeUpProcess {
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
    pub(super) fn walk(&self, registers: Registers) -> (Vec<FrameRef>, u8) {
        self.remembered.borrow_mut().clear();
        let walked = self.walk_again(registers);
        assert_eq!(self.walk_again(registers), walked);
        walked
    }

    /// With what earlier walks remember.
    pub(super) fn walk_again(&self, registers: Registers) -> (Vec<FrameRef>, u8) {
        let mut walk = Box::new(Walk::EMPTY);
        let mapping_count = self.mappings.len() as u32;
        walk.begin(registers, ProcessUnwind { mapping_count, ..ProcessUnwind::default() });
        let parts = Parts { walk: &mut walk, memory: self, tables: self };
        let end = to_the_end(&mut HostWalker(parts));
        let frames = walk.words[..walk.header.len as usize].iter().map(|word| FrameWord(*word).decode());
        (frames.collect(), walk.quality(end).0)
    }
}

fn array<const N: usize>(memory: &impl Memory, address: u64) -> Result<[u64; N], End> {
    let mut words = [0; N];
    for (address, word) in (address..).step_by(8).zip(&mut words) {
        *word = memory.word(address)?;
    }
    Ok(words)
}

impl Memory for MadeUpProcess {
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
        array(self, address)
    }

    fn frame(&self, address: u64, words: &mut FrameWords) -> Step {
        *words = array(self, address)?;
        Ok(())
    }

    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        for (address, word) in (address..address + u64::from(bytes)).step_by(8).zip(words) {
            *word = self.word(address)?;
        }
        Ok(())
    }
}

impl Tables for MadeUpProcess {
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
pub(super) fn interpreted_frame(
    process: &mut MadeUpProcess,
    fp: u64,
    bcp: u64,
    sender_sp: u64,
    caller_fp: u64,
    pc: u64,
) {
    let begin = fp - frame::BELOW_FP_BYTES;
    process.words(begin, &interpreter_words(bcp, sender_sp, caller_fp, pc));
}
