//! Reads HotSpot's code cache: heaps of blocks, each of which may hold a `CodeBlob`.
//!
//! A heap is divided into segments of a fixed size. Its segment map has a byte for each: 0 where a
//! block begins, 0xff where nothing is, else how far to step back towards the beginning.

use joular_ebpf::abi::{AddressRange, CodeHeap, MAX_CODE_HEAPS};

use super::{
    layout::Layout,
    memory::{RemoteMemory, Unreadable, field_in},
};

use crate::bounds::Bound;

/// HotSpot's own limit for all heaps together is 2 GiB.
const MAX_HEAP_BYTES: u64 = 1 << 31;
/// Steps towards a block's beginning; each covers up to 254 segments.
const MAX_HOPS: usize = 64;
/// Blocks of a heap that a walk visits.
const MAX_BLOCKS: usize = 1 << 18;
pub static HEAPS: Bound = Bound::new(
    "code_heaps_not_read",
    MAX_CODE_HEAPS as u64,
    "code heaps of a JVM",
    "compiled code in the rest is not walked",
);
pub static BLOCKS: Bound = Bound::new(
    "code_blocks_not_visited",
    MAX_BLOCKS as u64,
    "blocks of a JVM's code heap that are visited to learn the kinds of its code",
    "kinds that are found only behind them are not known, and their code is not walked",
);
const FREE: u8 = 0xff;
const MAX_NAME_BYTES: usize = 128;

/// The parts of a `CodeBlob` that every kind has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// Where its header begins.
    pub start: u64,
    pub size: u64,
    pub code_begin: u64,
    /// Address of its name.
    pub name: u64,
    /// In words.
    pub frame_size: u64,
}

impl Blob {
    pub const fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.size
    }
}

/// The heaps in use, by address, with where they are described; empty while the JVM
/// has none yet.
fn heaps(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<Vec<(CodeHeap, u64)>, Unreadable> {
    let array = memory.u64(bias.wrapping_add(layout.statics.code_heaps))?;
    if array == 0 {
        return Ok(Vec::new());
    }
    let count = HEAPS.within(memory.field(array, layout.heap.array_length)?);
    let elements = memory.field(array, layout.heap.array_data)?;
    let mut heaps = Vec::new();
    for index in 0..count {
        let address = memory.u64(elements.wrapping_add(index * 8))?;
        heaps.extend(heap(memory, layout, address)?.map(|heap| (heap, address)));
    }
    heaps.sort_by_key(|(heap, _): &(CodeHeap, u64)| heap.memory.start);
    Ok(heaps)
}

fn heap(memory: &dyn RemoteMemory, layout: &Layout, address: u64) -> Result<Option<CodeHeap>, Unreadable> {
    let layout = &layout.heap;
    let space = address.wrapping_add(u64::from(layout.memory));
    let map = address.wrapping_add(u64::from(layout.segment_map));
    let heap = CodeHeap {
        memory: AddressRange {
            start: memory.field(space, layout.low_boundary)?,
            end: memory.field(space, layout.high_boundary)?,
        },
        segment_map: memory.field(map, layout.low)?,
        log2_segment_size: u32::try_from(memory.field(address, layout.log2_segment_size)?).unwrap_or(u32::MAX),
        padding: 0,
    };
    let bytes = heap.memory.end.saturating_sub(heap.memory.start);
    let is_plausible = bytes > 0 && bytes <= MAX_HEAP_BYTES && (3..=16).contains(&heap.log2_segment_size);
    Ok((is_plausible && heap.segment_map != 0).then_some(heap))
}

/// The code cache of one JVM.
#[derive(Clone, Debug)]
pub struct CodeCache {
    pub heaps: Vec<CodeHeap>,
    /// Where the JVM describes each.
    descriptions: Vec<u64>,
}

impl CodeCache {
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<Self, Unreadable> {
        let (heaps, descriptions) = heaps(memory, layout, bias)?.into_iter().unzip();
        Ok(Self { heaps, descriptions })
    }

    /// The lowest address, from which frame words count.
    pub fn low(&self) -> u64 {
        self.heaps.first().map_or(0, |heap| heap.memory.start)
    }

    /// The blob that contains an address; `None` if no living blob does.
    pub fn find_blob(&self, memory: &dyn RemoteMemory, layout: &Layout, pc: u64) -> Result<Option<Blob>, Unreadable> {
        let Some(heap) = self.heaps.iter().find(|heap| heap.memory.contains(pc)) else { return Ok(None) };
        let mut segment = (pc - heap.memory.start) >> heap.log2_segment_size;
        for _ in 0..MAX_HOPS {
            match memory.u8(heap.segment_map.wrapping_add(segment))? {
                FREE => return Ok(None),
                0 => {
                    let block = heap.memory.start + (segment << heap.log2_segment_size);
                    return Ok(blob_at(memory, layout, block)?.filter(|blob| blob.contains(pc)));
                }
                back => segment = segment.saturating_sub(u64::from(back)),
            }
        }
        Ok(None)
    }

    /// Visits all living blobs, until `visit` says no. Blobs come and go meanwhile, so what cannot
    /// be read is left out.
    pub fn walk(&self, memory: &dyn RemoteMemory, layout: &Layout, mut visit: impl FnMut(Blob) -> bool) {
        for (heap, description) in self.heaps.iter().zip(&self.descriptions) {
            // Most of what is reserved is never used.
            let space = description.wrapping_add(u64::from(layout.heap.memory));
            let end = memory.field(space, layout.heap.high).unwrap_or(0).min(heap.memory.end);
            if !walk_heap(memory, layout, heap, end, &mut visit) {
                return;
            }
        }
    }
}

/// Returns whether to go on.
fn walk_heap(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    heap: &CodeHeap,
    end: u64,
    visit: &mut impl FnMut(Blob) -> bool,
) -> bool {
    const CHUNK: u64 = 4096;
    let segments = end.saturating_sub(heap.memory.start) >> heap.log2_segment_size;
    let mut visited = 0;
    let mut first = 0;
    while first < segments {
        // Chunks end at page borders: the map is committed by pages.
        let address = heap.segment_map.wrapping_add(first);
        let step = (CHUNK - address % CHUNK).min(segments - first);
        let Ok(map) = memory.bytes(address, usize::try_from(step).unwrap_or(0)) else { break };
        for (index, _) in map.iter().enumerate().filter(|&(_, &byte)| byte == 0) {
            visited += 1;
            if visited > MAX_BLOCKS {
                BLOCKS.cut(1);
                return true;
            }
            let block = heap.memory.start + ((first + index as u64) << heap.log2_segment_size);
            if let Ok(Some(blob)) = blob_at(memory, layout, block)
                && !visit(blob)
            {
                return false;
            }
        }
        first += step;
    }
    true
}

fn blob_at(memory: &dyn RemoteMemory, layout: &Layout, block: u64) -> Result<Option<Blob>, Unreadable> {
    let header = u64::from(layout.heap.block_header);
    let fields = usize::try_from(layout.blob.bytes).unwrap_or(0);
    // Block and blob in one go; a block too short for it is none of code.
    let bytes = memory.bytes(block, usize::try_from(header).unwrap_or(0).saturating_add(fields))?;
    if field_in(&bytes, layout.heap.block_used) == 0 {
        return Ok(None);
    }
    let bytes = bytes.get(usize::try_from(header).unwrap_or(0)..).unwrap_or_default();
    let start = block.wrapping_add(header);
    let code_begin = field_in(bytes, layout.blob.code_begin);
    let blob = Blob {
        start,
        size: field_in(bytes, layout.blob.size),
        code_begin: if layout.blob.has_offsets != 0 { start.wrapping_add(code_begin) } else { code_begin },
        name: field_in(bytes, layout.blob.name),
        frame_size: field_in(bytes, layout.blob.frame_size),
    };
    let is_plausible = blob.size > 0 && blob.size < MAX_HEAP_BYTES && blob.contains(blob.code_begin);
    Ok(is_plausible.then_some(blob))
}

/// A blob's name.
pub fn blob_name(memory: &dyn RemoteMemory, blob: &Blob) -> Option<String> {
    let name = memory.c_string(blob.name, MAX_NAME_BYTES).ok()?;
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// Whether it is a compiled method, or the wrapper of a native one.
pub fn is_compiled(memory: &dyn RemoteMemory, blob: &Blob) -> bool {
    matches!(blob_name(memory, blob).as_deref(), Some("nmethod" | "native nmethod"))
}
