//! Keeps images of JVMs that were held still: what a walk of each thread's stack and the naming of
//! its frames read, in a file. With an image, all of that runs without a JVM, without privileges,
//! and the same each time.
//!
//! ```text
//! "JOULARIMG\0"   magic, 10 bytes
//! u16 LE          version of the format
//! zstd frame of one [`JvmImage`], postcard
//! ```
//!
//! An image may be of another processor than this program is for: [`Libjvm::processor`] says of which one.
//!
//! The file may be anyone's. Its size is bounded, packed and unpacked, and its content is as
//! hostile as a live JVM's memory.

use std::{fmt, io::Read as _};

use joular_data::model::{
    frame::{Frame, FrameKind},
    quality::StackQuality,
    units::Address,
};
use joular_ebpf::{
    abi::{CodeMapping, CompilerThread, FrameWord, UnwindRow},
    walk::{Registers, arch::Arch},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    JvmBuild, JvmError,
    host_walk::{ProcessTables, WalkedStack, walk},
    jvm::Jvm,
    libjvm::Libjvm,
    memory::{MemoryImage, RemoteMemory},
    pinned::ArrivedStack,
};
use crate::arch::{WalkOf, with_arch};

const MAGIC: &[u8; 10] = b"JOULARIMG\0";
const VERSION: u16 = 3;
const MAX_PACKED_BYTES: usize = 4 << 20;
const MAX_BYTES: u64 = 64 << 20;
/// High, because files are made seldom and kept long.
const COMPRESSION_LEVEL: i32 = 19;

#[derive(Debug, Error)]
pub enum ImageError {
    #[error("reading an image of a JVM: it is not an image, or of another version")]
    NotAnImage,
    #[error("reading an image of a JVM: it is larger than {MAX_BYTES} bytes, or {MAX_PACKED_BYTES} packed")]
    TooLarge,
    #[error("reading an image of a JVM: {0}")]
    Damaged(String),
    #[error("writing an image of a JVM: {0}")]
    Write(String),
}

/// A thread, as it was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageThread {
    pub name: String,
    /// In the JVM's own namespace.
    pub tid: u32,
    /// As [`Arch::registers`] has them.
    pub registers: Vec<u64>,
}

impl ImageThread {
    pub fn registers<A: Arch>(&self) -> Registers<A> {
        A::registers(&self.registers)
    }
}

/// Everything that was read to walk and name the stacks of one held JVM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmImage {
    /// Its version.
    pub jvm: String,
    pub libjvm: Libjvm,
    pub bias: u64,
    pub memory: MemoryImage,
    pub threads: Vec<ImageThread>,
    /// Names of the mappings' files.
    modules: Vec<String>,
    /// Start, end, bias, first row, number of rows.
    mappings: Vec<(u64, u64, u64, u32, u32)>,
    /// Address, words of the frame address and of the frame pointer, rule.
    rows: Vec<(u32, i16, i8, u8)>,
}

/// A stack with its frames named, root first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStack {
    pub frames: Vec<Frame>,
    pub quality: StackQuality,
}

/// Writes it for people and for comparison: a line per frame, and repeated frames as one.
impl fmt::Display for NamedStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |frame: &Frame| {
            let module = frame.module.as_ref().map(|module| format!("{module} ")).unwrap_or_default();
            let place = frame.file.as_ref().zip(frame.line).map(|(file, line)| format!(" {file}:{line}"));
            format!("{} {module}{}{}", frame.kind.name(), frame.method(), place.unwrap_or_default())
        };
        for same in self.frames.chunk_by(|one, other| one == other) {
            let times = if same.len() > 1 { format!(" × {}", same.len()) } else { String::new() };
            writeln!(f, "    {}{times}", same.first().map(line).unwrap_or_default())?;
        }
        writeln!(f, "    end: {}", self.quality.end.name())
    }
}

impl JvmImage {
    /// Every thread's stack, as a text.
    pub fn text(&self) -> Result<String, JvmError> {
        let mut jvm = self.attach()?;
        let mut text = format!("{}\n", self.jvm);
        for thread in &self.threads {
            let stack = self.walk(&self.memory, &jvm, thread);
            text += &format!("{}\n{}", thread.name, self.name(&mut jvm, &stack));
        }
        Ok(text)
    }

    /// Sets the tables of native code: as many names as mappings.
    #[must_use]
    pub fn with_tables(mut self, tables: &ProcessTables, modules: &[String]) -> Self {
        let mapping = |of: &CodeMapping| (of.start, of.end, of.bias, of.first_row, of.row_count);
        self.mappings = tables.mappings.iter().map(mapping).collect();
        self.rows = tables.rows.iter().map(|row| (row.address, row.cfa_words, row.fp_words, row.rule)).collect();
        self.modules = modules.to_vec();
        self
    }

    pub fn tables(&self) -> ProcessTables {
        let mapping =
            |&(start, end, bias, first_row, row_count): &_| CodeMapping { start, end, bias, first_row, row_count };
        let row = |&(address, cfa_words, fp_words, rule): &_| UnwindRow { address, cfa_words, fp_words, rule };
        ProcessTables {
            mappings: self.mappings.iter().map(mapping).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    pub fn encode(&self) -> Result<Vec<u8>, ImageError> {
        let bytes = postcard::to_stdvec(self).map_err(|error| ImageError::Write(error.to_string()))?;
        let packed = zstd::bulk::compress(&bytes, COMPRESSION_LEVEL);
        let packed = packed.map_err(|error| ImageError::Write(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES || packed.len() > MAX_PACKED_BYTES {
            return Err(ImageError::TooLarge);
        }
        Ok([MAGIC.as_slice(), &VERSION.to_le_bytes(), &packed].concat())
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ImageError> {
        let damaged = |error: &dyn std::fmt::Display| ImageError::Damaged(error.to_string());
        let packed = bytes.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(&VERSION.to_le_bytes()));
        let packed = packed.ok_or(ImageError::NotAnImage)?;
        if packed.len() > MAX_PACKED_BYTES {
            return Err(ImageError::TooLarge);
        }
        let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|error| damaged(&error))?;
        decoder.window_log_max(MAX_BYTES.ilog2()).map_err(|error| damaged(&error))?;
        let mut unpacked = Vec::new();
        decoder.take(MAX_BYTES + 1).read_to_end(&mut unpacked).map_err(|error| damaged(&error))?;
        if unpacked.len() as u64 > MAX_BYTES {
            return Err(ImageError::TooLarge);
        }
        postcard::from_bytes(&unpacked).map_err(|error| damaged(&error))
    }

    /// The build that its own tables describe.
    pub fn build(&self) -> Result<JvmBuild, JvmError> {
        JvmBuild::read(&self.memory, self.libjvm.clone(), self.bias)
    }

    /// The JVM, understood as a live one is.
    pub fn attach(&self) -> Result<Jvm, JvmError> {
        Jvm::attach(Box::new(self.memory.clone()), self.build()?.into(), self.bias)
    }

    /// A thread's stack as the kernel would send it.
    pub fn walk(&self, memory: &dyn RemoteMemory, jvm: &Jvm, thread: &ImageThread) -> WalkedStack {
        let tables = self.tables();
        let compilers = compiler(jvm, thread);
        with_arch!(self.libjvm.processor, A => {
            let registers = thread.registers::<WalkOf<A>>();
            walk(memory, &tables, tables.mappings.len(), jvm.unwind_info(), registers, compilers.as_ref())
        })
    }

    /// Its frames with all that is known of them; for native code, file and address.
    pub fn name(&self, jvm: &mut Jvm, stack: &WalkedStack) -> NamedStack {
        let mut words: Vec<Address> = stack.words.iter().map(|word| Address(word.0)).collect();
        let end = stack.quality.end.code();
        jvm.pin([ArrivedStack { id: stack.id, generation: 0, end, words: &mut words }]);
        let mut frames = Vec::new();
        for word in words.iter().rev().map(|address| FrameWord(address.0)) {
            if word.is_of_a_jvm() {
                frames.extend(jvm.resolve_all(&[word]).into_iter().flatten());
            } else {
                frames.push(self.native(word));
            }
        }
        NamedStack { frames, quality: stack.quality }
    }

    fn native(&self, word: FrameWord) -> Frame {
        let is_here = |(start, end, ..): &(u64, u64, u64, u32, u32)| *start <= word.0 && word.0 < *end;
        let found = self.mappings.iter().zip(&self.modules).find(|(mapping, _)| is_here(mapping));
        let Some((mapping, module)) = found else { return Frame::new(FrameKind::Native, "nowhere") };
        let kind = if module == "libjvm.so" { FrameKind::Vm } else { FrameKind::Native };
        let name = format!("{:#x}", word.0.wrapping_sub(mapping.2));
        Frame { module: Some(module.as_str().into()), ..Frame::new(kind, name) }
    }
}

/// What the JVM says of a thread if it compiles.
pub fn compiler(jvm: &Jvm, thread: &ImageThread) -> Option<CompilerThread> {
    // As the kernel's names go.
    let is_compiler = ["C1 CompilerThre", "C2 CompilerThre"].iter().any(|prefix| thread.name.starts_with(prefix));
    let wanted: &[u32] = if is_compiler { &[thread.tid] } else { &[] };
    jvm.compiler_threads(wanted).first().map(|(_, compiler)| *compiler)
}

/// The part of the tables that look-ups used: the same look-ups find the same in it.
pub fn cut(tables: &ProcessTables, used: &dyn Fn(u32) -> bool) -> ProcessTables {
    let mut kept = ProcessTables::default();
    for mapping in &tables.mappings {
        let first_row = u32::try_from(kept.rows.len()).unwrap_or(u32::MAX);
        for index in mapping.first_row..mapping.first_row.saturating_add(mapping.row_count) {
            kept.rows.extend(tables.rows.get(index as usize).filter(|_| used(index)));
        }
        let row_count = u32::try_from(kept.rows.len()).unwrap_or(u32::MAX).saturating_sub(first_row);
        kept.mappings.push(CodeMapping { first_row, row_count, ..*mapping });
    }
    kept
}
