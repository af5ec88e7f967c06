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
    runtimes::{AllocationSites, NotNow},
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

/// A flag that the JVM asks where it tells of an object. Without symbols the search begins there.
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

/// Where a JVM's allocations can be seen. `library` is its file.
///
/// # Errors
/// If the JVM's memory changes while it is read.
pub fn sites(jvm: &Jvm, library: &File) -> Result<Option<AllocationSites>, NotNow> {
    let (build, ..) = jvm.parts();
    let Some(layout) = build.layout.allocation.filter(|_| build.layout.threads.is_some()) else { return Ok(None) };
    let functions = match build.allocation.get() {
        Some(known) => *known,
        None => {
            let found = functions(jvm, library)?;
            *build.allocation.get_or_init(|| found)
        }
    };
    Ok(functions.map(|functions| AllocationSites { functions, fields: layout.fields }))
}

/// A file that cannot be read has none.
fn functions(jvm: &Jvm, library: &File) -> Result<Option<AllocationFunctions>, NotNow> {
    let Ok(elf) = Elf::read(library) else { return Ok(None) };
    if let Some(named) = named(&elf).ok().flatten() {
        return Ok(Some(named));
    }
    let (Some(anchors), Ok(code)) = (anchors(jvm)?, elf.section_range(".text")) else { return Ok(None) };
    // Else it was no thread that was read: the list is replaced when a thread begins or ends.
    if !anchors.thread_functions.iter().all(|function| code.contains(function)) {
        return Err(NotNow);
    }
    Ok(allocation_search::find(&elf, anchors).ok().flatten())
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

/// What a search begins at; `None`: this JVM has no such flag.
fn anchors(jvm: &Jvm) -> Result<Option<Anchors>, NotNow> {
    let (build, memory, bias) = jvm.parts();
    let memory = Pages::new(memory);
    let Some(threads) = &build.layout.threads else { return Ok(None) };
    let flag = flags::value_address(&memory, &build.layout, bias, FLAG_BESIDE).map_err(|_| NotNow)?;
    let Some(flag) = flag else { return Ok(None) };
    let mut first = None;
    let listed = threads.each(&memory, bias, |thread| {
        first = Some(thread);
        Ok(false)
    });
    let (table, functions) = match (listed, first) {
        (Ok(()), Some(first)) => virtual_functions(&memory, first).map_err(|_| NotNow)?,
        _ => return Err(NotNow),
    };
    let in_file = |address: u64| address.wrapping_sub(bias);
    Ok(Some(Anchors { flag: in_file(flag), thread_table: in_file(table), thread_functions: functions.map(in_file) }))
}

/// The table of virtual functions that an object begins with, and the first of them.
fn virtual_functions(memory: &dyn RemoteMemory, object: u64) -> Result<(u64, [u64; VIRTUAL_FUNCTIONS]), Unreadable> {
    let table = memory.u64(object)?;
    let mut functions = [0; VIRTUAL_FUNCTIONS];
    for (index, function) in functions.iter_mut().enumerate() {
        *function = memory.u64(table.wrapping_add(8 * index as u64))?;
    }
    Ok((table, functions))
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
