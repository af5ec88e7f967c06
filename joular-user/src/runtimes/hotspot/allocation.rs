//! Finds where a JVM's allocations can be seen, and what its threads have allocated.
//!
//! A thread counts the bytes that it has allocated whenever it leaves an allocation buffer, or allocates outside of
//! one. With what it used of its buffer in use that is exact (`Thread::cooked_allocated_bytes` says the same, and so
//! does Java's `ThreadMXBean`).

use std::{
    collections::HashMap,
    fs::File,
    sync::{Arc, OnceLock},
};

use joular_ebpf::abi::{self, Field, JvmAllocation};
use thiserror::Error;

use super::{
    allocation_search::{self, Anchors, VIRTUAL_FUNCTIONS},
    fields::{LayoutError, Names},
    flags,
    jvm::Jvm,
    layout::Layout,
    memory::{Pages, RemoteMemory, Unreadable},
    threads::ThreadLayout,
};
use crate::{
    elf::{Elf, ElfError},
    runtimes::AllocationSites,
};

/// The functions that probes are put on, as C++ writes their names up to JDK 16, and later.
const IN_NEW_BUFFER: [&[u8]; 2] = [
    b"_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassP8HeapWordmmP6Thread",
    b"_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP10JavaThread",
];
const OUTSIDE_BUFFER: [&[u8]; 2] = [
    b"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassP8HeapWordmP6Thread",
    b"_ZN11AllocTracer28send_allocation_outside_tlabEP5KlassPP12HeapWordImplmP10JavaThread",
];
const THREAD_ENDED: &[u8] = b"_ZN13ThreadService13remove_threadEP10JavaThreadb";

/// The flag that is asked where objects are told of, and nowhere else beside that: an anchor where symbols are missing.
const FLAG_BESIDE: &str = "DTraceAllocProbes";

/// Where probes go: offsets in libjvm's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationFunctions {
    pub in_new_buffer: u64,
    pub outside_buffer: u64,
    pub thread_ended: u64,
}

/// Those of one file: `None` inside if it has been searched in vain.
pub type KnownFunctions = Arc<OnceLock<Option<AllocationFunctions>>>;

#[derive(Debug, Error)]
enum SearchError {
    #[error(transparent)]
    File(#[from] ElfError),
    #[error(transparent)]
    Memory(#[from] Unreadable),
}

/// Where a JVM's allocations can be seen. `library` is its file.
pub fn sites(jvm: &Jvm, library: &File) -> Option<AllocationSites> {
    let (build, ..) = jvm.parts();
    let layout = build.layout.allocation.filter(|_| build.layout.threads.is_some())?;
    let functions = match build.allocation.get() {
        Some(known) => *known,
        // What fails may succeed with the next process: this one's memory may be going away.
        None => {
            let found = functions(jvm, library).ok()?;
            *build.allocation.get_or_init(|| found)
        }
    };
    Some(AllocationSites { functions: functions?, fields: layout.fields })
}

fn functions(jvm: &Jvm, library: &File) -> Result<Option<AllocationFunctions>, SearchError> {
    let elf = Elf::read(library)?;
    match named(&elf)? {
        Some(named) => Ok(Some(named)),
        None => match anchors(jvm)? {
            Some(anchors) => Ok(allocation_search::find(&elf, anchors)?),
            None => Ok(None),
        },
    }
}

/// `None`: the symbols were stripped, or this version has others.
fn named(elf: &Elf<'_>) -> Result<Option<AllocationFunctions>, ElfError> {
    let code = elf.code().next().ok_or(ElfError::Malformed("it has no code"))?;
    let Some(symbols) = elf.static_symbols()? else { return Ok(None) };
    let [new_11, new, outside_11, outside, ended] =
        symbols.addresses([IN_NEW_BUFFER[0], IN_NEW_BUFFER[1], OUTSIDE_BUFFER[0], OUTSIDE_BUFFER[1], THREAD_ENDED]);
    Ok(match (new_11.or(new), outside_11.or(outside), ended) {
        (Some(in_new), Some(outside), Some(ended)) => Some(AllocationFunctions {
            in_new_buffer: code.offset_of(in_new),
            outside_buffer: code.offset_of(outside),
            thread_ended: code.offset_of(ended),
        }),
        _ => None,
    })
}

/// What a search begins at; `None`: this JVM has no such flag, or no thread yet.
fn anchors(jvm: &Jvm) -> Result<Option<Anchors>, Unreadable> {
    let (build, memory, bias) = jvm.parts();
    let memory = Pages::new(memory);
    let Some(threads) = &build.layout.threads else { return Ok(None) };
    let Some(flag) = flags::value_address(&memory, &build.layout, bias, FLAG_BESIDE)? else { return Ok(None) };
    let mut first = None;
    threads.each(&memory, bias, |thread| {
        first = Some(thread);
        Ok(false)
    })?;
    let Some(first) = first else { return Ok(None) };
    let table = memory.u64(first)?;
    let mut functions = [0; VIRTUAL_FUNCTIONS];
    for (index, function) in functions.iter_mut().enumerate() {
        *function = memory.u64(table.wrapping_add(8 * index as u64))?.wrapping_sub(bias);
    }
    let in_file = |address: u64| address.wrapping_sub(bias);
    Ok(Some(Anchors { flag: in_file(flag), thread_table: in_file(table), thread_functions: functions }))
}

/// What each thread of a JVM has allocated, by its number in the JVM's own namespace.
pub fn allocated_bytes(jvm: &Jvm) -> HashMap<u32, u64> {
    let (build, memory, bias) = jvm.parts();
    let Layout { threads, allocation, .. } = &build.layout;
    let (Some(threads), Some(allocation)) = (threads, allocation) else { return HashMap::new() };
    allocation.of_threads(threads, &Pages::new(memory), bias)
}

/// Where threads keep what they have allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationLayout {
    allocated_bytes: Field,
    buffer_start: Field,
    buffer_top: Field,
    /// What the kernel's programs read.
    pub fields: JvmAllocation,
}

impl AllocationLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        let buffer = names.start("Thread", "_tlab")?;
        let in_buffer = |name| {
            let field = names.one(&[("ThreadLocalAllocBuffer", name)])?;
            Ok::<_, LayoutError>(Field { offset: field.offset.saturating_add(buffer), ..field })
        };
        let allocated_bytes = names.one(&[("Thread", "_allocated_bytes")])?;
        let (buffer_start, buffer_top) = (in_buffer("_start")?, in_buffer("_top")?);
        // Since JDK 13 the hash stands above the count of references.
        let symbol_hash = match names.one(&[("Symbol", "_hash_and_refcount")]) {
            Ok(both) => both.offset.saturating_add(2),
            Err(_) => names.one(&[("Symbol", "_identity_hash")])?.offset,
        };
        let fields = JvmAllocation {
            allocated_bytes: allocated_bytes.offset.into(),
            tlab_start: buffer_start.offset.into(),
            tlab_top: buffer_top.offset.into(),
            tlab_desired_size: in_buffer("_desired_size")?.offset.into(),
            klass_name: names.one(&[("Klass", "_name")])?.offset.into(),
            symbol_hash: symbol_hash.into(),
        };
        Ok(Self { allocated_bytes, buffer_start, buffer_top, fields })
    }

    /// What each thread has allocated, by its number in the JVM's own namespace.
    fn of_threads(&self, threads: &ThreadLayout, memory: &dyn RemoteMemory, bias: u64) -> HashMap<u32, u64> {
        let mut found = HashMap::new();
        // A list that changes meanwhile is looked at again with the next window.
        let _ = threads.each(memory, bias, |thread| {
            let number = threads.number(memory, thread)?;
            found.insert(number, self.of_thread(memory, thread)?);
            Ok(true)
        });
        found.remove(&0);
        found
    }

    fn of_thread(&self, memory: &dyn RemoteMemory, thread: u64) -> Result<u64, Unreadable> {
        let [before, start, top] = [self.allocated_bytes, self.buffer_start, self.buffer_top];
        Ok(abi::allocated_bytes(
            memory.field(thread, before)?,
            memory.field(thread, start)?,
            memory.field(thread, top)?,
        ))
    }
}
