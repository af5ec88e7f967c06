//! Finds a JVM's own performance counters in its memory: what `jcmd PerfCounter.print` shows.
//!
//! They are entries of one block, which other programs can also read as a file below `/tmp/hsperfdata_…`. Its memory is
//! read, which is the same with and without that file, and in a container. The layout is of HotSpot's
//! `perfMemory.hpp` (`PerfDataPrologue`, `PerfDataEntry`), unchanged from JDK 11 to 25. `-XX:-UsePerfData` makes a JVM
//! without counters.

use super::{
    fields::{LayoutError, Names},
    memory::{RemoteMemory, Unreadable},
};

use crate::bounds::Bound;

const MAGIC: u32 = 0xcafe_c0c0;
const PROLOGUE_BYTES: usize = 32;
const ENTRY_BYTES: usize = 20;
/// A JVM makes some hundred.
const MAX_ENTRIES: u32 = 4096;
const MAX_NAME_BYTES: usize = 256;

pub static ENTRIES: Bound = Bound::new(
    "jvm_counters_not_read",
    MAX_ENTRIES as u64,
    "performance counters of a JVM",
    "what the rest says of its collections is not known",
);

/// Where the block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfDataLayout {
    /// Address of the pointer to it, without the load bias.
    start: u64,
}

impl PerfDataLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        Ok(Self { start: names.fixed("PerfMemory", "_start")? })
    }

    /// The addresses of the values with these names.
    pub fn addresses<const N: usize>(
        self,
        memory: &dyn RemoteMemory,
        bias: u64,
        names: [&str; N],
    ) -> Result<[Option<u64>; N], Unreadable> {
        let mut found = [None; N];
        let block = memory.u64(bias.wrapping_add(self.start))?;
        if block == 0 {
            return Ok(found);
        }
        let prologue = memory.bytes(block, PROLOGUE_BYTES)?;
        // The magic number is written with its first byte first, whatever the machine.
        if prologue.get(..4) != Some(&MAGIC.to_be_bytes()) {
            return Ok(found);
        }
        let mut at = block.wrapping_add(u64::from(word(&prologue, 24)));
        for _ in 0..ENTRIES.within(word(&prologue, 28).into()) {
            let entry = memory.bytes(at, ENTRY_BYTES)?;
            let (length, name_at, data_at) = (word(&entry, 0), word(&entry, 4), word(&entry, 16));
            if length == 0 {
                break;
            }
            let name = memory.c_string(at.wrapping_add(name_at.into()), MAX_NAME_BYTES).unwrap_or_default();
            if let Some(position) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                found[position] = Some(at.wrapping_add(data_at.into()));
            }
            at = at.wrapping_add(length.into());
        }
        Ok(found)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::runtimes::hotspot::memory::MemoryImage;

    const POINTER: u64 = 0x1000;
    const BLOCK: u64 = 0x2000;

    fn image(block: Vec<u8>) -> MemoryImage {
        MemoryImage::from_ranges(vec![(POINTER, BLOCK.to_le_bytes().to_vec()), (BLOCK, block)])
    }

    fn block(names: &[&str]) -> Vec<u8> {
        let mut block = MAGIC.to_be_bytes().to_vec();
        block.resize(24, 0);
        block.extend(32_u32.to_le_bytes());
        block.extend(u32::try_from(names.len()).unwrap().to_le_bytes());
        for name in names {
            let data_at = u32::try_from((ENTRY_BYTES + name.len() + 1).next_multiple_of(8)).unwrap();
            let mut entry = Vec::new();
            for word in [data_at + 8, 20, 0, 0, data_at] {
                entry.extend(word.to_le_bytes());
            }
            entry.extend(name.as_bytes());
            entry.resize(data_at as usize + 8, 0);
            block.extend(entry);
        }
        block.resize(block.len() + 512, 0);
        block
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let memory = image(block(&["sun.gc.lastCause", "sun.gc.cause", "sun.rt.jvmVersion"]));
        let layout = PerfDataLayout { start: POINTER };
        let found = layout.addresses(&memory, 0, ["sun.gc.cause", "java.missing"]).unwrap();
        assert_eq!(found, [Some(BLOCK + 32 + 48 + 40), None]);
    }

    proptest! {
        #[test]
        fn any_block_is_read_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..600), has_magic: bool) {
            let mut bytes = bytes;
            if has_magic && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
            }
            let _ = PerfDataLayout { start: POINTER }.addresses(&image(bytes), 0, ["sun.gc.cause"]);
        }
    }
}
