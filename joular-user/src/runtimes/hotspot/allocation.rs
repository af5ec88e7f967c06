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
    memory::{Pages, RemoteMemory, Unreadable, field_in, visit_each},
    threads::ThreadLayout,
};
use crate::{
    arch::Native,
    elf::{Elf, ElfError},
    runtimes::{AllocationFunctions, AllocationSites, NotNow},
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

/// A flag that the JVM asks where it reports an object. Without symbols the search begins there.
const FLAG_BESIDE: &str = "DTraceAllocProbes";

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
    // Else it was not a thread that was read: the list is replaced when a thread begins or ends.
    if !anchors.thread_functions.iter().all(|function| code.contains(function)) {
        return Err(NotNow);
    }
    Ok(allocation_search::find::<Native>(&elf, anchors).ok().flatten())
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
    let listed = threads.addresses(&memory, bias, &[]).map_err(|_| NotNow)?;
    let first = listed.first().ok_or(NotNow)?;
    let (table, functions) = virtual_functions(&memory, *first).map_err(|_| NotNow)?;
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

/// Threads of a JVM when they were last looked at.
#[derive(Debug, Default)]
pub struct KnownThreads {
    addresses: Vec<u64>,
    /// Address and what was allocated, by the thread's number in the JVM's own namespace.
    by_number: HashMap<u32, (u64, u64)>,
}

impl KnownThreads {
    /// What each thread of a JVM has allocated, by its number. Where no thread has come or gone, only those that `ran`
    /// are read; `None`: all are. Returns `None` if not all could be read.
    pub fn allocated_bytes(&mut self, jvm: &Jvm, ran: Option<&[u32]>) -> Option<HashMap<u32, u64>> {
        let (build, memory, bias) = jvm.parts();
        let Layout { threads, allocation, .. } = &build.layout;
        let (threads, allocation) = (threads.as_ref()?, allocation.as_ref()?);
        let addresses = threads.addresses(memory, bias, &self.addresses).ok()?;
        let read = |of: &[u64]| allocation.of_threads(threads, memory, of);
        let is_read = match ran {
            Some(ran) if addresses == self.addresses => self.read_again(ran, read),
            _ => false,
        };
        if !is_read {
            self.by_number.clear();
            self.addresses.clear();
            self.by_number.extend(read(&addresses)?);
            self.addresses = addresses;
        }
        Some(self.by_number.iter().map(|(number, (_, bytes))| (*number, *bytes)).collect())
    }

    /// Returns whether each has the number that it had.
    fn read_again(&mut self, ran: &[u32], read: impl Fn(&[u64]) -> Option<ByNumber>) -> bool {
        let known: Vec<u64> = ran.iter().filter_map(|number| Some(self.by_number.get(number)?.0)).collect();
        let Some(found) = read(&known) else { return false };
        let is_alike = found.len() == known.len()
            && found
                .iter()
                .all(|(number, (address, _))| self.by_number.get(number).is_some_and(|(known, _)| known == address));
        if is_alike {
            self.by_number.extend(found);
        }
        is_alike
    }
}

/// Threads with their numbers, addresses, and what they have allocated.
type ByNumber = Vec<(u32, (u64, u64))>;

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

    /// What each of these threads has allocated. They are read together, because each call of the kernel's costs more
    /// than what it reads. `None`: not all could be.
    fn of_threads(&self, threads: &ThreadLayout, memory: &dyn RemoteMemory, all: &[u64]) -> Option<ByNumber> {
        let [before, start, top] = [self.allocated_bytes, self.buffer_start, self.buffer_top];
        let os_thread = threads.os_thread();
        let fields = Span::of(&[before, start, top, os_thread])?;
        // Where the system's part of a thread is; its own address, and what it has allocated.
        let mut found: Vec<(u64, (u64, u64))> = Vec::with_capacity(all.len());
        let is_whole = fields.visit(memory, all, |thread, bytes| {
            let field = |field| fields.field(bytes, field);
            let allocated = abi::allocated_bytes(field(before), field(start), field(top));
            found.push((field(os_thread), (thread, allocated)));
        });
        // One that has none yet, or none any more, does not run.
        found.retain(|(of_system, _)| *of_system != 0);
        let of_system: Vec<u64> = found.iter().map(|(of_system, _)| *of_system).collect();
        let (id, mut numbers) = (Span::of(&[threads.thread_id()])?, Vec::with_capacity(found.len()));
        let is_numbered = id.visit(memory, &of_system, |_, bytes| {
            numbers.push(u32::try_from(id.field(bytes, threads.thread_id())).unwrap_or(0));
        });
        let numbered = numbers.into_iter().zip(found).map(|(number, (_, thread))| (number, thread));
        (is_whole && is_numbered).then(|| numbered.filter(|(number, _)| *number != 0).collect())
    }
}

/// The part of a structure that some of its fields are in.
struct Span {
    start: u16,
    length: usize,
}

impl Span {
    /// Longest that is read of each thread.
    const LONGEST: usize = 4096;

    fn of(fields: &[Field]) -> Option<Self> {
        let start = fields.iter().map(|field| field.offset).min()?;
        let end = fields.iter().map(|field| usize::from(field.offset) + usize::from(field.width)).max()?;
        let length = end.checked_sub(start.into()).filter(|length| (1..=Self::LONGEST).contains(length))?;
        Some(Self { start, length })
    }

    /// Calls with each structure's address and part. Returns whether all could be read.
    fn visit(&self, memory: &dyn RemoteMemory, structures: &[u64], mut visit: impl FnMut(u64, &[u8])) -> bool {
        let start = u64::from(self.start);
        let at: Vec<u64> = structures.iter().map(|address| address.wrapping_add(start)).collect();
        visit_each(memory, &at, self.length, |index, bytes| {
            visit(structures.get(index).copied().unwrap_or(0), bytes);
        })
    }

    /// A field of a structure in this part of it.
    fn field(&self, bytes: &[u8], field: Field) -> u64 {
        field_in(bytes, Field { offset: field.offset.saturating_sub(self.start), ..field })
    }
}
