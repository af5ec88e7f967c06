//! Finds where the fields of Java classes stand in objects, and how objects refer to others.
//!
//! The JVM's tables do not have these fields. But they lead to the classes that the JVM itself uses (`vmClasses`), and
//! each class has a list of its fields. From JDK 21 on (`FieldInfoStream`) that is numbers in UNSIGNED5: first how many
//! fields there are. For each field follow the indices of its name and its type in the constant pool, its offset, its
//! access flags and flags that say which further numbers it has. Before, a field has six numbers of 16 bits
//! (`FieldInfo`): flags, the indices of name and type and initial value, and its offset in two of them, above two bits
//! that say what it is. Fields that the JVM adds come last and are not needed.

use joular_ebpf::{
    abi::{Field, references},
    walk::arch::Arch as _,
};

use super::{
    fields::{LayoutError, Names},
    flags,
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
    method::pool_symbol,
    unsigned5::Unsigned5,
};
use crate::arch::{Processor, WalkOf, with_arch};

/// `Continuation` has 15 fields, `Thread` 30.
const MAX_FIELD_BYTES: u64 = 4096;
const MAX_FIELDS: u32 = 256;
const MAX_POOL_LENGTH: u64 = 1 << 16;
/// Flags of a field that add a number to its description: an initial value, a generic type, a contention group
/// (`FieldInfo::FieldFlags`). Bit 1 says that the JVM has added the field.
const MORE_NUMBERS: [u32; 3] = [1 << 0, 1 << 2, 1 << 4];
/// Bytes of a field's description before JDK 21.
const SHORTS_BYTES: usize = 12;
/// Lowest bits of an offset there, which are 1 for one that is known (`FIELDINFO_TAG_OFFSET`).
const TAG_BITS: u32 = 2;
const TAG_OFFSET: u32 = 1;
/// From this release on, ZGC has generations, and colours with them, whatever the flag says.
const ONLY_GENERATIONAL: u32 = 24;

/// Where a class has the list of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldList {
    /// From JDK 21 on.
    Stream {
        list: Field,
        data: u16,
    },
    Shorts {
        list: Field,
        count: Field,
        data: u16,
    },
}

/// Where the JVM's tables say how to read classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassLayout {
    fields: FieldList,
    constants: Field,
    array_length: Field,
    /// Addresses, without the load bias.
    narrow_base: u64,
    narrow_shift: u64,
}

impl ClassLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        // The names have changed with JDK 13, and with JDK 24 or so.
        let narrow = |new, old| {
            let compressed = |name| names.fixed("CompressedOops", name);
            compressed(new).or_else(|_| compressed(old)).or_else(|_| names.fixed("Universe", old))
        };
        let fields = match names.one(&[("InstanceKlass", "_fieldinfo_stream")]) {
            Ok(list) => FieldList::Stream { list, data: names.start("Array<u1>", "_data")? },
            Err(_) => FieldList::Shorts {
                list: names.one(&[("InstanceKlass", "_fields")])?,
                count: names.one(&[("InstanceKlass", "_java_fields_count")])?,
                data: names.start("Array<u2>", "_data")?,
            },
        };
        Ok(Self {
            fields,
            constants: names.one(&[("InstanceKlass", "_constants")])?,
            array_length: names.one(&[("Array<int>", "_length")])?,
            narrow_base: narrow("_base", "_narrow_oop._base")?,
            narrow_shift: narrow("_shift", "_narrow_oop._shift")?,
        })
    }

    /// Offsets of a class's fields by their names.
    pub fn offsets<const N: usize>(
        &self,
        memory: &dyn RemoteMemory,
        layout: &Layout,
        class: u64,
        names: [&str; N],
    ) -> Result<[Option<u16>; N], Unreadable> {
        let mut found = [None; N];
        let pool = memory.field(class, self.constants)?;
        let pool_length = memory.field(pool, layout.method.pool_length)?.min(MAX_POOL_LENGTH);
        for (name_index, offset) in self.fields(memory, layout, class)? {
            let name = pool_symbol(memory, &layout.method, pool, pool_length, name_index.into())?;
            if let Some(place) = names.iter().position(|wanted| *wanted == name) {
                found[place] = u16::try_from(offset).ok();
            }
        }
        Ok(found)
    }

    /// The fields that are in the class's file: the index of the name, and the offset.
    fn fields(&self, memory: &dyn RemoteMemory, layout: &Layout, class: u64) -> Result<Vec<(u32, u32)>, Unreadable> {
        let bytes = |list, data: u16, most: u64, unit| {
            let array = memory.field(class, list)?;
            let length = memory.field(array, self.array_length)?.saturating_mul(unit).min(most);
            memory.bytes(array.wrapping_add(data.into()), usize::try_from(length).unwrap_or(0))
        };
        Ok(match self.fields {
            FieldList::Stream { list, data } => {
                of_stream(&bytes(list, data, MAX_FIELD_BYTES, 1)?, layout.nmethod.excludes_zero)
            }
            FieldList::Shorts { list, count, data } => {
                let most = memory.field(class, count)?.min(MAX_FIELDS.into()) * SHORTS_BYTES as u64;
                of_shorts(&bytes(list, data, most, 2)?)
            }
        })
    }
}

fn of_stream(bytes: &[u8], excludes_zero: bool) -> Vec<(u32, u32)> {
    let mut numbers = Unsigned5::new(bytes, excludes_zero);
    let mut next = || numbers.unsigned();
    let mut fields = Vec::new();
    let mut read = || {
        let count = next()?.min(MAX_FIELDS);
        let _of_the_jvm = next()?;
        for _ in 0..count {
            let (name, _type, offset, _access, flags) = (next()?, next()?, next()?, next()?, next()?);
            for _ in MORE_NUMBERS.iter().filter(|bit| flags & **bit != 0) {
                next()?;
            }
            fields.push((name, offset));
        }
        Some(())
    };
    // What was read before the bytes made no sense may be right.
    let _ = read();
    fields
}

fn of_shorts(bytes: &[u8]) -> Vec<(u32, u32)> {
    let short = |bytes: &[u8], index: usize| {
        let pair = bytes.get(2 * index..2 * index + 2).and_then(|pair| pair.try_into().ok());
        u32::from(pair.map_or(0, u16::from_le_bytes))
    };
    let field = |bytes: &[u8]| {
        let packed = short(bytes, 5) << 16 | short(bytes, 4);
        (packed & ((1 << TAG_BITS) - 1) == TAG_OFFSET).then(|| (short(bytes, 1), packed >> TAG_BITS))
    };
    bytes.chunks_exact(SHORTS_BYTES).filter_map(field).collect()
}

/// How objects of a JVM refer to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    processor: Processor,
    /// One of [`references`]'s.
    pub kind: u16,
    pub narrow_base: u64,
    pub narrow_shift: u16,
}

impl References {
    pub fn read(
        memory: &dyn RemoteMemory,
        layout: &Layout,
        classes: &ClassLayout,
        bias: u64,
    ) -> Result<Self, Unreadable> {
        let [is_narrow, is_z, is_generational] =
            flags::are_set(memory, layout, bias, ["UseCompressedOops", "UseZGC", "ZGenerational"])?;
        if is_z == Some(true) {
            let is_coloured = layout.feature >= ONLY_GENERATIONAL || is_generational == Some(true);
            // Without generations the colours are bits that memory is mapped with.
            let kind = if is_coloured { references::COLOURED } else { references::PLAIN };
            return Ok(Self { processor: layout.processor, kind, ..Self::default() });
        }
        if is_narrow != Some(true) {
            return Ok(Self { kind: references::PLAIN, ..Self::default() });
        }
        let narrow_base = memory.u64(bias.wrapping_add(classes.narrow_base))?;
        let narrow_shift = memory.u32(bias.wrapping_add(classes.narrow_shift))?;
        let narrow_shift = u16::try_from(narrow_shift).unwrap_or(0);
        Ok(Self { kind: references::NARROW, narrow_base, narrow_shift, ..Self::default() })
    }

    /// The object that a field refers to; 0: none.
    pub fn at(&self, memory: &dyn RemoteMemory, place: u64) -> Result<u64, Unreadable> {
        if self.kind != references::NARROW {
            return Ok(self.of_jvm(memory.u64(place)?));
        }
        Ok(match u64::from(memory.u32(place)?) {
            0 => 0,
            narrow => self.narrow_base.wrapping_add(narrow << (self.narrow_shift & 31)),
        })
    }

    /// The object that a reference of the JVM itself leads to, which is never narrow.
    pub fn of_jvm(&self, reference: u64) -> u64 {
        if self.kind == references::COLOURED {
            with_arch!(self.processor, A => WalkOf::<A>::uncoloured(reference))
        } else {
            reference
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_listed_with_what_belongs_to_them() {
        // JDK 21's `StackChunk`, and before its fields a constant with an initial value and a generic type.
        let numbers = [
            &[5, 4][..],
            &[9, 9, 112, 26, 0b101, 7, 8],
            &[10, 20, 40, 2, 0],
            &[11, 21, 12, 2, 0],
            &[12, 21, 24, 2, 0],
            &[13, 21, 28, 2, 0],
            &[180, 1, 44, 0, 2],
        ]
        .concat();
        let bytes: Vec<u8> = numbers.iter().map(|number| number + 1).collect();
        let expected = [(9, 112), (10, 40), (11, 12), (12, 24), (13, 28)];
        assert_eq!(of_stream(&bytes, true), expected);
        assert_eq!(of_stream(&bytes[..12], true), expected[..1], "cut");
        assert_eq!(of_stream(&[], true), []);
    }

    #[test]
    fn fields_of_older_releases_have_their_offset_above_a_tag() {
        let shorts: [u16; 18] = [2, 10, 20, 0, 40 << 2 | 1, 0, 2, 11, 21, 0, 3, 0, 2, 12, 22, 0, 1, 1];
        let bytes: Vec<u8> = shorts.iter().flat_map(|short| short.to_le_bytes()).collect();
        assert_eq!(of_shorts(&bytes), [(10, 40), (12, 1 << 14)], "the second has no offset yet");
        assert_eq!(of_shorts(&bytes[..23]), [(10, 40)], "cut");
    }

    proptest! {
        #[test]
        fn fields_never_panic(bytes: Vec<u8>) {
            let _ = (of_stream(&bytes, true), of_shorts(&bytes));
        }
    }
}
