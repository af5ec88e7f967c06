//! Puts together what the kernel side needs to walk through one JVM's code.

use joular_ebpf::{
    abi::{AddressRange, JvmUnwind, MAX_CODE_HEAPS, sender_sp},
    walk::arch::Arch as _,
};

use super::{
    code_cache::{Blob, CodeCache, blob_name},
    layout::Layout,
    libjvm::Libjvm,
    memory::{RemoteMemory, Unreadable},
};

use crate::{
    arch::{WalkOf, with_arch},
    bounds::Bound,
};

/// Limit of the interpreter's codelets: one per bytecode and some more.
const MAX_CODELETS: u64 = 4096;
const MAX_INTERPRETER_BYTES: u64 = 16 << 20;
const MAX_DESCRIPTION_BYTES: usize = 256;
/// Names of blobs that are looked at; a JVM has some dozens.
const MAX_BLOB_NAMES: usize = 1 << 12;

pub static CODELETS: Bound = Bound::new(
    "interpreter_not_read",
    MAX_CODELETS,
    "pieces of a JVM's interpreter, and 16 MiB of its code",
    "interpreted methods in the rest are not walked",
);

const METHOD_ENTRY: &[u8] = b"method entry point";

/// Addresses of the names by which blobs are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobNames {
    pub nmethod: [u64; 2],
    pub native: [u64; 2],
    pub vtable: [u64; 2],
}

impl BlobNames {
    /// The names expected from libjvm's file, until a blob shows its own.
    pub fn of_file(libjvm: &Libjvm, bias: u64) -> Self {
        let two = |found: &[u64]| {
            let mut names = [0; 2];
            for (name, address) in names.iter_mut().zip(found) {
                *name = bias.wrapping_add(*address);
            }
            names
        };
        Self {
            nmethod: two(&libjvm.nmethod_names),
            native: two(&libjvm.native_names),
            vtable: two(&libjvm.vtable_names),
        }
    }

    fn note(names: &mut [u64; 2], address: u64) {
        if !names.contains(&address) {
            // What was seen is certain; the other one may be a guess.
            *names = [address, names[0]];
        }
    }
}

/// What a survey of all blobs shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobSurvey {
    pub names: BlobNames,
    pub continuation_stubs: AddressRange,
    /// Whether a compiled method was seen, so that its name is certain.
    pub has_nmethod: bool,
    has_native: bool,
    has_vtable: bool,
}

impl BlobSurvey {
    /// Visits blobs until nothing is left to learn.
    pub fn take(memory: &dyn RemoteMemory, layout: &Layout, cache: &CodeCache, expected: BlobNames) -> Self {
        let mut survey = Self { names: expected, ..Self::default() };
        let mut known = std::collections::HashMap::new();
        cache.walk(memory, layout, |blob| {
            let kind = *known.entry(blob.name).or_insert_with(|| kind_of(memory, &blob));
            survey.note(kind, &blob);
            known.len() < MAX_BLOB_NAMES && !survey.is_complete(layout)
        });
        survey
    }

    fn is_complete(&self, layout: &Layout) -> bool {
        // Code of virtual threads came with 21.
        let has_continuations = self.continuation_stubs.start != 0 || layout.feature < 21;
        self.has_nmethod && self.has_native && self.has_vtable && has_continuations
    }

    fn note(&mut self, kind: BlobKind, blob: &Blob) {
        match kind {
            BlobKind::Nmethod => {
                BlobNames::note(&mut self.names.nmethod, blob.name);
                self.has_nmethod = true;
            }
            BlobKind::Native => {
                BlobNames::note(&mut self.names.native, blob.name);
                self.has_native = true;
            }
            BlobKind::Vtable => {
                BlobNames::note(&mut self.names.vtable, blob.name);
                self.has_vtable = true;
            }
            BlobKind::Continuation => {
                self.continuation_stubs = AddressRange { start: blob.code_begin, end: blob.start + blob.size };
            }
            BlobKind::Other => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlobKind {
    Nmethod,
    Native,
    Vtable,
    Continuation,
    Other,
}

fn kind_of(memory: &dyn RemoteMemory, blob: &Blob) -> BlobKind {
    match blob_name(memory, blob).as_deref() {
        Some("nmethod") => BlobKind::Nmethod,
        Some("native nmethod") => BlobKind::Native,
        Some("vtable chunks") => BlobKind::Vtable,
        Some(name) if is_continuation_stubs(name) => BlobKind::Continuation,
        _ => BlobKind::Other,
    }
}

/// `StubRoutines (continuation stubs)` in JDK 21 and 25, with differing spaces.
fn is_continuation_stubs(name: &str) -> bool {
    name.starts_with("StubRoutines") && name.to_ascii_lowercase().contains("continuation")
}

/// The interpreter's code and the entries of methods in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpreter {
    pub code: AddressRange,
    pub method_entries: AddressRange,
}

impl Interpreter {
    /// Empty while the JVM has not made it yet.
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<Self, Unreadable> {
        let queue = memory.u64(bias.wrapping_add(layout.statics.interpreter_code))?;
        if queue == 0 {
            return Ok(Self::default());
        }
        let layout = &layout.interpreter;
        let start = memory.field(queue, layout.buffer)?;
        let size = memory.field(queue, layout.buffer_limit)?;
        CODELETS.cut(u64::from(size > MAX_INTERPRETER_BYTES));
        if start == 0 || size == 0 || size > MAX_INTERPRETER_BYTES {
            return Ok(Self::default());
        }
        let end = start.saturating_add(size);
        let mut interpreter = Self { code: AddressRange { start, end }, ..Self::default() };
        let queue_end = start.saturating_add(memory.field(queue, layout.queue_end)?).min(end);
        let mut codelet = start.saturating_add(memory.field(queue, layout.queue_begin)?);
        let mut read = 0;
        while codelet < queue_end {
            if read >= MAX_CODELETS {
                CODELETS.cut(1);
                break;
            }
            read += 1;
            let size = memory.field(codelet, layout.codelet_size)?;
            let description = memory.field(codelet, layout.codelet_description)?;
            let next = codelet.saturating_add(size);
            if size == 0 || next > end {
                break;
            }
            let text = memory.c_string(description, MAX_DESCRIPTION_BYTES).unwrap_or_default();
            if text.starts_with(METHOD_ENTRY) {
                interpreter.add_method_entry(codelet, next);
            }
            codelet = next;
        }
        Ok(interpreter)
    }

    /// Adds a method entry; they stand one behind the other.
    const fn add_method_entry(&mut self, start: u64, end: u64) {
        if self.method_entries.start == 0 {
            self.method_entries.start = start;
        }
        self.method_entries.end = end;
    }
}

/// Puts together all but where frames of virtual threads are in the heap ([`super::continuations`]).
pub fn jvm_unwind(
    layout: &Layout,
    cache: &CodeCache,
    interpreter: &Interpreter,
    survey: &BlobSurvey,
    call_stub_return: u64,
) -> JvmUnwind {
    let mut unwind = JvmUnwind {
        code_low: cache.low(),
        interpreter: interpreter.code,
        method_entries: interpreter.method_entries,
        call_stub_return,
        continuation_stubs: survey.continuation_stubs,
        nmethod_names: survey.names.nmethod,
        native_names: survey.names.native,
        vtable_names: survey.names.vtable,
        blob: layout.blob,
        block_header: layout.heap.block_header,
        block_used: layout.heap.block_used,
        const_method: layout.method.const_method,
        const_method_size: layout.method.const_method_size,
        constants: layout.method.constants,
        name_index: layout.method.name_index,
        pool_size: layout.method.pool_size,
        pool_holder: layout.method.pool_holder,
        klass_name: layout.method.klass_name,
        bcp_words: with_arch!(layout.processor, A => WalkOf::<A>::INTERPRETER_FRAME).bcp_words(),
        sender_sp: sender_sp::of_jdk(layout.feature),
        ..JvmUnwind::default()
    };
    for (slot, heap) in unwind.code_heaps.iter_mut().zip(cache.heaps.iter().take(MAX_CODE_HEAPS)) {
        *slot = *heap;
    }
    unwind
}
