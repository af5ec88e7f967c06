//! Does the walk of the eBPF programs over memory that is read from outside: of a process that is
//! held still, or of an image of one.

use joular_data::model::quality::StackQuality;
use joular_ebpf::{
    abi::{CodeMapping, CompilerThread, FrameWord, JvmUnwind, ProcessUnwind, StackHeader, StackId, UnwindRow},
    walk::{
        self, BlockWords, End, Memory, Registers, Step, Tables, Walk,
        arch::Arch,
        dispatch::{HostWalker, Parts, to_the_end},
    },
};

use super::memory::RemoteMemory;

/// What the kernel side has of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTables {
    /// Sorted by address.
    pub mappings: Vec<CodeMapping>,
    pub rows: Vec<UnwindRow>,
}

impl Tables for ProcessTables {
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        self.mappings.get(index as usize)
    }

    fn row(&self, index: u32) -> Option<&UnwindRow> {
        self.rows.get(index as usize)
    }

    /// Its JVM is given beside it: see [`mod@walk`].
    fn jvm(&self, _: &ProcessUnwind) -> Option<&JvmUnwind> {
        None
    }
}

/// Tables of a process, and its one JVM.
struct WithJvm<'a, T> {
    tables: &'a T,
    jvm: &'a JvmUnwind,
}

impl<T: Tables> Tables for WithJvm<'_, T> {
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        self.tables.mapping(index)
    }

    fn row(&self, index: u32) -> Option<&UnwindRow> {
        self.tables.row(index)
    }

    fn jvm(&self, _: &ProcessUnwind) -> Option<&JvmUnwind> {
        Some(self.jvm)
    }
}

/// A stack as the kernel would send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedStack {
    pub id: StackId,
    /// Leaf first.
    pub words: Vec<FrameWord>,
    pub quality: StackQuality,
}

/// Walks one thread. `mapping_count` is that of its tables; `compiler` is given for a thread that
/// compiles.
pub fn walk<A: Arch>(
    memory: &dyn RemoteMemory,
    tables: &impl Tables,
    mapping_count: usize,
    jvm: &JvmUnwind,
    registers: Registers<A>,
    compiler: Option<&CompilerThread>,
) -> WalkedStack {
    let memory = Remote(memory);
    let mut walk = Box::new(Walk::default());
    let mapping_count = u32::try_from(mapping_count).unwrap_or(0);
    walk.begin(registers, ProcessUnwind { mapping_count, jvm: 1, ..ProcessUnwind::default() });
    let tables = WithJvm { tables, jvm };
    let end = to_the_end(&mut HostWalker(Parts { walk: &mut walk, memory: &memory, tables: &tables }));
    if let Some(compiler) = compiler {
        walk::push_compiled_method(&memory, jvm, compiler, &mut walk);
    }
    let id = walk.finish(0, end);
    let StackHeader { len, flags, .. } = walk.header;
    let words = walk.words.iter().take(len as usize).map(|word| FrameWord(*word)).collect();
    WalkedStack { id, words, quality: StackQuality::of_flags(flags) }
}

/// A process's memory, for code that is compiled for the kernel, too.
#[derive(Clone, Copy, Debug)]
pub struct Remote<'a>(pub &'a dyn RemoteMemory);

impl Memory for Remote<'_> {
    fn byte(&self, address: u64) -> Result<u8, End> {
        self.0.u8(address).map_err(|_| End::UNREADABLE)
    }

    fn word(&self, address: u64) -> Result<u64, End> {
        self.0.u64(address).map_err(|_| End::UNREADABLE)
    }

    fn pair(&self, address: u64) -> Result<[u64; 2], End> {
        let mut words = [0; 2];
        self.frame(address, &mut words).map(|()| words)
    }

    fn frame(&self, address: u64, words: &mut [u64]) -> Step {
        // All or nothing, as the kernel's helper.
        let bytes = self.0.bytes(address, size_of_val(words)).map_err(|_| End::UNREADABLE)?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(())
    }

    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        let length = (bytes as usize).min(size_of::<BlockWords>());
        let mut bytes = self.0.bytes(address, length).map_err(|_| End::UNREADABLE)?;
        bytes.resize(length.next_multiple_of(8), 0);
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(())
    }
}
