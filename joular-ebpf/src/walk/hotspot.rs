//! Finds the block of a JVM's code cache that the program counter is in, and the kind of code
//! there.
//!
//! A segment map says where the block begins. Behind its header stands a `CodeBlob`; the address of
//! its name tells its kind. The interpreter is one blob as well, but known by its range: its
//! methods need nothing from it.

use super::{BLOCK_WORDS, BlockWords, End, MAX_BLOCK_BYTES, Memory, Step, Walk, arch::Arch, compiled, stub};
use crate::abi::{Field, FrameWord, JvmUnwind, walk_end};

/// A byte of the segment map leads back by up to 254 segments; a method of 12
/// such strides is larger than a JVM compiles.
const MAX_HOPS: u32 = 12;
const FREE_SEGMENT: u8 = 0xff;

/// The module that knows how to step through a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`super::interpreted::step`].
    Interpreted,
    /// [`compiled::step`].
    Compiled(compiled::Kind),
    /// [`stub::step`].
    Stub(stub::Kind),
}

/// What the code is. Its block is read, unless it is the interpreter or the call
/// stub.
#[inline(always)]
pub fn kind<A: Arch>(memory: &impl Memory, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Result<Kind, End> {
    let pc = walk.registers.pc;
    if jvm.interpreter.contains(pc) {
        return Ok(Kind::Interpreted);
    }
    if !walk.is_exact() {
        if pc == jvm.call_stub_return {
            return Ok(Kind::Stub(stub::Kind::Entry));
        }
        if jvm.continuation_stubs.contains(pc) {
            return Ok(Kind::Stub(stub::Kind::Continuation));
        }
    }
    read_block(memory, jvm, walk)?;
    let blob = Blob::of(jvm, walk);
    let name = blob.word(jvm.blob.name);
    Ok(if is_one_of(name, &jvm.nmethod_names) {
        Kind::Compiled(compiled::Kind::Method)
    } else if is_one_of(name, &jvm.native_names) {
        Kind::Compiled(compiled::Kind::NativeWrapper)
    } else if is_one_of(name, &jvm.vtable_names) {
        Kind::Stub(stub::Kind::Frameless)
    } else if compiled::has_frame_size(&blob, jvm) {
        Kind::Compiled(compiled::Kind::Stub)
    } else {
        Kind::Stub(stub::Kind::Unknown)
    })
}

#[inline(always)]
pub(super) fn blob_word(jvm: &JvmUnwind, pc: u64) -> FrameWord {
    FrameWord::blob(pc.wrapping_sub(jvm.code_low) as u32)
}

#[inline(always)]
const fn is_one_of(name: u64, names: &[u64; 2]) -> bool {
    name != 0 && (name == names[0] || name == names[1])
}

/// Reads the block with the program counter, unless it is the one read before.
#[inline(always)]
fn read_block<A: Arch>(memory: &impl Memory, jvm: &JvmUnwind, walk: &mut Walk<A>) -> Step {
    let pc = walk.registers.pc;
    if pc >= walk.block.start && pc < walk.block.end {
        return Ok(());
    }
    // Not whole until it is.
    walk.block.end = 0;
    let start = match find_block(memory, jvm, pc) {
        Ok(start) => start,
        Err(end) => {
            walk.push(blob_word(jvm, pc))?;
            return Err(end);
        }
    };
    let bytes = jvm.block_header.saturating_add(jvm.blob.bytes);
    let bytes = if bytes > MAX_BLOCK_BYTES as u32 { MAX_BLOCK_BYTES as u32 } else { bytes };
    if let Err(end) = memory.block(start, bytes, &mut walk.block.words) {
        walk.push(blob_word(jvm, pc))?;
        return Err(end);
    }
    if field(&walk.block.words, 0, jvm.block_used) == 0 {
        walk.push(blob_word(jvm, pc))?;
        return Err(End(walk_end::DEAD_CODE));
    }
    walk.block.blob = start.wrapping_add(u64::from(jvm.block_header));
    walk.block.start = start;
    let size = Blob::of(jvm, walk).word(jvm.blob.size) & u64::from(u32::MAX);
    walk.block.end = walk.block.blob.wrapping_add(size);
    Ok(())
}

/// Where the block with this address begins.
#[inline(always)]
fn find_block(memory: &impl Memory, jvm: &JvmUnwind, pc: u64) -> Result<u64, End> {
    let Some(heap) = jvm.code_heaps.iter().find(|heap| heap.memory.contains(pc)) else {
        return Err(End(walk_end::NO_MAPPING));
    };
    let log2_bytes = heap.log2_segment_size & 31;
    let mut segment = pc.wrapping_sub(heap.memory.start) >> log2_bytes;
    for _ in 0..MAX_HOPS {
        match memory.byte(heap.segment_map.wrapping_add(segment))? {
            0 => return Ok(heap.memory.start.wrapping_add(segment << log2_bytes)),
            FREE_SEGMENT => break,
            back => segment = segment.wrapping_sub(u64::from(back)),
        }
    }
    Err(End(walk_end::DEAD_CODE))
}

/// The blob in the block that was read.
#[derive(Clone, Copy)]
pub(super) struct Blob<'a> {
    words: &'a BlockWords,
    /// Of the blob in the block.
    offset: u32,
    start: u64,
    has_offsets: bool,
}

impl<'a> Blob<'a> {
    #[inline(always)]
    pub(super) fn of<A: Arch>(jvm: &JvmUnwind, walk: &'a Walk<A>) -> Self {
        Self {
            words: &walk.block.words,
            offset: jvm.block_header,
            start: walk.block.blob,
            has_offsets: jvm.blob.has_offsets != 0,
        }
    }

    #[inline(always)]
    pub(super) fn word(&self, of: Field) -> u64 {
        field(self.words, self.offset, of)
    }

    /// An address, which newer versions have as an offset from `base`.
    #[inline(always)]
    fn address(&self, of: Field, base: u64) -> u64 {
        let word = self.word(of);
        if self.has_offsets { base.wrapping_add(word) } else { word }
    }

    #[inline(always)]
    pub(super) fn code_begin(&self, jvm: &JvmUnwind) -> u64 {
        self.address(jvm.blob.code_begin, self.start)
    }

    #[inline(always)]
    pub(super) fn verified_entry(&self, jvm: &JvmUnwind) -> u64 {
        self.address(jvm.blob.verified_entry, self.code_begin(jvm))
    }

    /// Whether a frame that would return there has been deoptimised.
    #[inline(always)]
    pub(super) fn is_deoptimised(&self, jvm: &JvmUnwind, pc: u64) -> bool {
        let is_handler = |of: Field| of.width != 0 && pc == self.address(of, self.start);
        is_handler(jvm.blob.deopt_handler) || is_handler(jvm.blob.deopt_mh_handler)
    }
}

/// A field, zero-extended; 0 if this version has none.
#[inline(always)]
fn field(words: &BlockWords, base: u32, field: Field) -> u64 {
    let offset = base.wrapping_add(u32::from(field.offset));
    // Every offset that makes sense is within; the mask tells the verifier so.
    let Some(word) = words.get((offset as usize / 8) & (BLOCK_WORDS - 1)) else { return 0 };
    // Fields are aligned to their width: none crosses a word.
    let word = *word >> (offset % 8 * 8);
    match field.width {
        1 => word & 0xff,
        2 => word & 0xffff,
        4 => word & 0xffff_ffff,
        8 => word,
        _ => 0,
    }
}
