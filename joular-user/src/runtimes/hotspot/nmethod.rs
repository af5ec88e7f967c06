//! Reads compiled methods: from a place in the code to the methods that stand there.
//!
//! Compilers describe places where the code may be looked at ([`PcDesc`]s, sorted) and give each a
//! chain of [`scopes`](super::scopes). A return address is such a place. For any other address there
//! are several ways to look it up: [`LookUp`].
//!
//! [`PcDesc`]: NmethodLayout::pc_offset

use super::{
    code_cache::{Blob, CodeCache},
    layout::{Layout, NmethodLayout},
    machine_code::CodeOf,
    memory::{RemoteMemory, Unreadable, field_in},
    places::{Place, Places},
    scopes::{SCOPE_BYTES, Scope, chain},
};

use crate::{arch::with_arch, bounds::Bound};

/// C2 gives up on methods long before they have this many.
const MAX_PC_DESCS: u64 = 1 << 20;
const MAX_METADATA: u64 = 1 << 20;
/// Limits of code whose [`Places`] are sought; C2's largest methods have a tenth.
const MAX_CODE_BYTES: usize = 1 << 20;
const MAX_PLACES: usize = 1 << 16;
const MAX_NULL_CHECKS: usize = 1 << 14;

pub static PLACES: Bound = Bound::new(
    "code_places_not_sought",
    MAX_CODE_BYTES as u64,
    "bytes of a compiled method, 65536 places that are described in it and 16384 checks for null",
    "a leaf in a longer one is named by the described places around it",
);

/// A range of the JVM's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    start: u64,
    end: u64,
}

/// A compiled method that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nmethod {
    pub blob: Blob,
    pub compile_id: u32,
    /// 1 to 3: C1; 4: C2.
    pub compile_level: u8,
    /// The `Method*` that was compiled; 0 if it was unloaded.
    pub method: u64,
    /// Behind the code of the method itself.
    code_end: u64,
    pc_descs: Extent,
    scopes: Extent,
    metadata: Extent,
    null_checks: Extent,
}

/// Which descriptors speak for an address that none is for. Compilers write one at the end
/// of the code that it is about, so [`Self::AtOrAbove`] is the one to ask if all code is described
/// (`DebugNonSafepoints`), as HotSpot does. A live test compares it with the one below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookUp {
    #[default]
    AtOrAbove,
    /// Those that [`Places`] says. Between two of them, what both have in common.
    Around,
    /// Only one at the address itself.
    At,
    /// The last one at the address or below.
    LastBelow,
}

/// A method at a bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodAt {
    pub method: u64,
    pub bci: u16,
}

impl Nmethod {
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, blob: Blob) -> Result<Self, Unreadable> {
        let fields = &layout.nmethod;
        let bytes = memory.bytes(blob.start, usize::try_from(fields.size.max(layout.blob.bytes)).unwrap_or(0))?;
        Ok(Self {
            blob,
            compile_id: u32::try_from(field_in(&bytes, layout.blob.compile_id)).unwrap_or(0),
            compile_level: u8::try_from(field_in(&bytes, fields.compile_level)).unwrap_or(0),
            method: field_in(&bytes, fields.method),
            code_end: code_end(layout, &bytes, blob),
            pc_descs: pc_descs(fields, &bytes, blob),
            scopes: scopes(fields, &bytes, blob),
            metadata: metadata(fields, &bytes, blob),
            null_checks: null_checks(fields, &bytes, blob),
        })
    }

    /// The methods at an address of its code, innermost first; none if nothing describes it.
    pub fn methods_at(
        &self,
        memory: &dyn RemoteMemory,
        layout: &Layout,
        pc: u64,
        look_up: LookUp,
    ) -> Result<Vec<MethodAt>, Unreadable> {
        let fields = &layout.nmethod;
        let scope = self.scope_of(memory, fields, pc, look_up)?;
        scope.map_or_else(|| Ok(Vec::new()), |scope| self.chain(memory, layout, scope))
    }

    /// Whether it is still there, as it was read.
    pub fn is_there(&self, memory: &dyn RemoteMemory, layout: &Layout, cache: &CodeCache) -> Result<bool, Unreadable> {
        let found = cache.find_blob(memory, layout, self.blob.code_begin)?;
        Ok(found == Some(self.blob) && Self::read(memory, layout, self.blob)? == *self)
    }

    /// The methods of a scope, innermost first.
    pub fn chain(&self, memory: &dyn RemoteMemory, layout: &Layout, scope: u32) -> Result<Vec<MethodAt>, Unreadable> {
        let fields = &layout.nmethod;
        let place = |offset: u32| {
            let at = self.scopes.start.checked_add(u64::from(offset))?;
            Some((at, usize::try_from(self.scopes.end.checked_sub(at)?).ok()?))
        };
        let read = |offset: u32| {
            let Some((at, left)) = place(offset) else { return Ok(None) };
            Ok(Scope::decode(&memory.bytes(at, left.min(SCOPE_BYTES))?, fields.excludes_zero))
        };
        chain(scope, read)?
            .into_iter()
            .map(|scope| Ok(MethodAt { method: self.metadata_at(memory, scope.method_index)?, bci: scope.bci }))
            .collect()
    }

    /// What is known of its code by some of its descriptors. `is_trap` says whether an address is that of the uncommon trap.
    pub fn places(
        &self,
        memory: &dyn RemoteMemory,
        layout: &Layout,
        descriptors: &[Place],
        is_trap: impl FnMut(u64) -> bool,
    ) -> Result<Places, Unreadable> {
        let length = self.code_end.saturating_sub(self.blob.code_begin);
        // Descriptors are worth something without it.
        PLACES.cut(u64::from(length > MAX_CODE_BYTES as u64));
        let length = usize::try_from(length).ok().filter(|&length| length <= MAX_CODE_BYTES);
        let code = memory.bytes(self.blob.code_begin, length.unwrap_or(0))?;
        let null_checks = self.null_checks(memory);
        let start = self.blob.code_begin;
        Ok(with_arch!(layout.processor, A => {
            Places::new(descriptors, &null_checks, CodeOf::<A>::new(&code, start), is_trap)
        }))
    }

    /// All descriptors, by place; none if there are more than anyone writes.
    pub fn descriptors(&self, memory: &dyn RemoteMemory, layout: &Layout) -> Result<Vec<Place>, Unreadable> {
        let fields = &layout.nmethod;
        let stride = usize::try_from(fields.pc_desc_size.max(1)).unwrap_or(1);
        let bytes = usize::try_from(self.pc_descs.end.saturating_sub(self.pc_descs.start)).unwrap_or(usize::MAX);
        if bytes / stride > MAX_PLACES {
            PLACES.cut(1);
            return Ok(Vec::new());
        }
        let bytes = memory.bytes(self.pc_descs.start, bytes)?;
        let field = |descriptor: &[u8], field| u32::try_from(field_in(descriptor, field)).unwrap_or(0);
        let all = bytes.chunks_exact(stride).map(|descriptor| Place {
            at: field(descriptor, fields.pc_offset),
            scope: field(descriptor, fields.scope_offset),
        });
        let mut places: Vec<Place> = all.skip(1).collect();
        // The first and the last one only mark the ends.
        places.pop();
        Ok(places)
    }

    /// Offsets of instructions that fault on null, and of where the JVM then goes on. If the table
    /// is empty these are other bytes, of which code makes no sense.
    fn null_checks(&self, memory: &dyn RemoteMemory) -> Vec<(u32, u32)> {
        let Extent { start, end } = self.null_checks;
        let count = memory.u32(start).unwrap_or(0) as usize;
        let left = usize::try_from(end.saturating_sub(start)).unwrap_or(0).saturating_sub(4) / 8;
        if count > left.min(MAX_NULL_CHECKS) {
            return Vec::new();
        }
        let bytes = memory.bytes(start.wrapping_add(4), count * 8).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
        bytes.chunks_exact(8).map(|pair| pair.split_at(4)).map(|(at, then)| (number(at), number(then))).collect()
    }

    /// The scope of the descriptor that speaks for an address.
    fn scope_of(
        &self,
        memory: &dyn RemoteMemory,
        fields: &NmethodLayout,
        pc: u64,
        look_up: LookUp,
    ) -> Result<Option<u32>, Unreadable> {
        let is_behind = matches!(look_up, LookUp::LastBelow | LookUp::Around);
        let pc = if is_behind { pc.wrapping_add(1) } else { pc };
        let wanted = i64::try_from(pc.wrapping_sub(self.blob.code_begin)).unwrap_or(-1);
        let stride = u64::from(fields.pc_desc_size);
        let count = self.pc_descs.end.saturating_sub(self.pc_descs.start) / stride.max(1);
        let (mut low, mut high) = (0, count.min(MAX_PC_DESCS));
        let last = high;
        let offset_of = |index: u64| {
            let offset = memory.field(self.pc_descs.start + index * stride, fields.pc_offset)?;
            // The first one has -1, before all code.
            Ok::<_, Unreadable>(i64::from(u32::try_from(offset).unwrap_or(0).cast_signed()))
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if offset_of(middle)? < wanted { low = middle + 1 } else { high = middle }
        }
        if look_up == LookUp::LastBelow {
            // The first one is before all code.
            low = low.saturating_sub(1).max(1);
        }
        if low >= last || look_up == LookUp::At && offset_of(low)? != wanted {
            return Ok(None);
        }
        let scope = memory.field(self.pc_descs.start + low * stride, fields.scope_offset)?;
        Ok(u32::try_from(scope).ok())
    }

    /// 0 for none.
    fn metadata_at(&self, memory: &dyn RemoteMemory, index: u32) -> Result<u64, Unreadable> {
        let Some(index) = u64::from(index).checked_sub(1).filter(|&index| index < MAX_METADATA) else { return Ok(0) };
        let at = self.metadata.start.wrapping_add(index * 8);
        if at < self.metadata.start || at >= self.metadata.end {
            return Ok(0);
        }
        memory.u64(at)
    }

    /// Where descriptors and scopes are, for tests that damage them.
    #[cfg(test)]
    pub const fn debug_information(&self) -> [(u64, u64); 2] {
        [(self.pc_descs.start, self.pc_descs.end), (self.scopes.start, self.scopes.end)]
    }

    /// Pcs of all descriptors, for tests that ask for each.
    #[cfg(test)]
    pub fn described(&self, memory: &dyn RemoteMemory, layout: &Layout) -> Vec<u64> {
        let stride = u64::from(layout.nmethod.pc_desc_size);
        let count = (self.pc_descs.end - self.pc_descs.start) / stride;
        let offset = |index| memory.field(self.pc_descs.start + index * stride, layout.nmethod.pc_offset).unwrap();
        // The first and the last one only mark the ends.
        (1..count.saturating_sub(1)).map(|index| self.blob.code_begin + offset(index)).collect()
    }
}

/// Where the stubs of a method begin: the deoptimisation handler is one of the first.
fn code_end(layout: &Layout, bytes: &[u8], blob: Blob) -> u64 {
    let handler = field_in(bytes, layout.blob.deopt_handler);
    let end = if layout.blob.has_offsets != 0 { blob.start.wrapping_add(handler) } else { handler };
    if blob.contains(end) { end } else { blob.code_begin }
}

/// Where the JDK keeps debug information: up to 22 inside the blob, since then apart.
fn pc_descs(fields: &NmethodLayout, bytes: &[u8], blob: Blob) -> Extent {
    let offset = field_in(bytes, fields.scopes_pcs_offset);
    let (base, end) = if fields.immutable_data.width != 0 {
        (field_in(bytes, fields.immutable_data), field_in(bytes, fields.scopes_data_offset))
    } else {
        (blob.start, field_in(bytes, fields.dependencies_offset))
    };
    Extent { start: base.wrapping_add(offset), end: base.wrapping_add(end) }
}

fn scopes(fields: &NmethodLayout, bytes: &[u8], blob: Blob) -> Extent {
    if fields.immutable_data.width != 0 {
        let base = field_in(bytes, fields.immutable_data);
        let start = base.wrapping_add(field_in(bytes, fields.scopes_data_offset));
        Extent { start, end: base.wrapping_add(field_in(bytes, fields.immutable_data_size)) }
    } else {
        let end = blob.start.wrapping_add(field_in(bytes, fields.scopes_pcs_offset));
        Extent { start: field_in(bytes, fields.scopes_data_begin), end }
    }
}

/// Where null checks are; nowhere if the version does not say.
fn null_checks(fields: &NmethodLayout, bytes: &[u8], blob: Blob) -> Extent {
    let offset = field_in(bytes, fields.null_checks_offset);
    let (base, end) = if fields.immutable_data.width != 0 {
        (field_in(bytes, fields.immutable_data), field_in(bytes, fields.scopes_pcs_offset))
    } else {
        (blob.start, blob.size)
    };
    if fields.null_checks_offset.width == 0 {
        return Extent::default();
    }
    Extent { start: base.wrapping_add(offset), end: base.wrapping_add(end) }
}

/// Where metadata is: since 25 behind relocations in memory of their own. Before, it was in the
/// blob's data, which JDK 23 and 24 count from there.
fn metadata(fields: &NmethodLayout, bytes: &[u8], blob: Blob) -> Extent {
    if fields.mutable_data.width != 0 && fields.metadata_offset.width == 0 {
        let base = field_in(bytes, fields.mutable_data);
        let start = base.wrapping_add(field_in(bytes, fields.relocation_size));
        return Extent { start, end: base.wrapping_add(field_in(bytes, fields.mutable_data_size)) };
    }
    let offset = field_in(bytes, fields.metadata_offset);
    if fields.immutable_data.width != 0 {
        let data = blob.start.wrapping_add(field_in(bytes, fields.data_offset));
        Extent { start: data.wrapping_add(offset), end: blob.start.wrapping_add(blob.size) }
    } else {
        Extent { start: blob.start.wrapping_add(offset), end: field_in(bytes, fields.scopes_data_begin) }
    }
}
