//! Finds the regions of a heap of G1. What a young collection could not move (beside pinned objects since JDK 22, or
//! without room) stays in its region, and nothing at the object's place tells then whether it survived.

use joular_ebpf::abi::Survival;

use super::{
    fields::{LayoutError, Names},
    memory::{RemoteMemory, Unreadable},
};

/// Regions are 1 to 512 MiB large.
const SHIFTS: std::ops::RangeInclusive<u32> = 20..=29;
/// Classes have had this prefix since JDK 23.
const PREFIXES: [&str; 2] = ["G1", ""];

/// Where a heap of G1 has its table of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionLayout {
    /// Address of the pointer to the heap, without the load bias.
    heap: u64,
    manager: u16,
    /// JDK 12 to 15: the heap has only a pointer to the manager.
    is_pointer: bool,
    /// Of the manager.
    biased_base: u64,
    shift: u64,
    kind: u32,
}

impl RegionLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        let of = |name: &str, field| {
            let found = PREFIXES.map(|prefix| names.start(&format!("{prefix}{name}"), field));
            let [new, old] = found;
            new.or(old)
        };
        let table = u64::from(of("HeapRegionManager", "_regions")?);
        let in_table = |field| Ok::<_, LayoutError>(table + u64::from(names.start("G1HeapRegionTable", field)?));
        let manager = names.structs.field("G1CollectedHeap", "_hrm");
        Ok(Self {
            heap: names.fixed("Universe", "_collectedHeap")?,
            manager: names.start("G1CollectedHeap", "_hrm")?,
            is_pointer: manager.is_some_and(|field| field.type_name.ends_with('*')),
            biased_base: in_table("_biased_base")?,
            shift: in_table("_shift_by")?,
            kind: u32::from(of("HeapRegion", "_type")?) + u32::from(of("HeapRegionType", "_tag")?),
        })
    }

    /// The regions of a JVM with this collector; they stay where they are. `None`: there is no such table.
    pub fn read(self, memory: &dyn RemoteMemory, bias: u64) -> Result<Option<Survival>, Unreadable> {
        let heap = memory.u64(bias.wrapping_add(self.heap))?;
        let manager = heap.wrapping_add(u64::from(self.manager));
        let manager = if self.is_pointer { memory.u64(manager)? } else { manager };
        let regions = memory.u64(manager.wrapping_add(self.biased_base))?;
        let region_shift = memory.u32(manager.wrapping_add(self.shift))?;
        let is_plausible = regions != 0 && SHIFTS.contains(&region_shift);
        Ok(is_plausible.then_some(Survival { regions, region_shift, region_kind: self.kind, ..Survival::default() }))
    }
}
