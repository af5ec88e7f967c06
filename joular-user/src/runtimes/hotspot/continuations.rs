//! Finds where a JVM keeps the frames of virtual threads that are not on a stack: the offsets of fields of
//! `jdk.internal.vm.Continuation` and `jdk.internal.vm.StackChunk`, and how references to such objects are written.
//!
//! The JVM's tables do not have these fields. But they lead to the classes that the JVM itself uses (`vmClasses`), and
//! each class has a list of its fields (`FieldInfoStream`, from JDK 21 on): numbers in UNSIGNED5, first how many fields
//! there are. For each field follow the indices of its name and its type in the constant pool, its offset, its access
//! flags and flags that tell which further numbers it has. Fields that the JVM adds come last and are not needed.

use joular_ebpf::abi::{ContinuationLayout, Field, references};

use super::{
    fields::{LayoutError, Names},
    flags,
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
    method::{pool_symbol, symbol},
    unsigned5::Unsigned5,
};

/// JDK 25 has 94 classes in its array.
const MAX_CLASSES: u64 = 256;
/// `Continuation` has 15 fields.
const MAX_FIELD_BYTES: u64 = 4096;
const MAX_FIELDS: u32 = 256;
const MAX_POOL_LENGTH: u64 = 1 << 16;
const CONTINUATION: &str = "jdk/internal/vm/Continuation";
const STACK_CHUNK: &str = "jdk/internal/vm/StackChunk";
/// Flags of a field that add a number to its description: an initial value, a generic type, a contention group
/// (`FieldInfo::FieldFlags`). Bit 1 says that the JVM has added the field.
const MORE_NUMBERS: [u32; 3] = [1 << 0, 1 << 2, 1 << 4];
/// Bits of `Klass::_layout_helper` of an instance's class, beside its size.
const LAYOUT_BITS: u64 = 7;
/// From this release on, ZGC has generations, and colours with them, whatever the flag says.
const ONLY_GENERATIONAL: u32 = 24;

/// Where the JVM's tables say how to find these classes and read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassLayout {
    /// Address of the first of the JVM's own classes, without the load bias.
    classes: u64,
    field_info: Field,
    constants: Field,
    layout_helper: Field,
    array_length: Field,
    array_data: u16,
    /// Addresses, without the load bias.
    narrow_base: u64,
    narrow_shift: u64,
}

impl ClassLayout {
    /// Fails before JDK 21.
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        // The names have changed with JDK 24 or so.
        let narrow = |new, old| names.fixed("CompressedOops", new).or_else(|_| names.fixed("CompressedOops", old));
        Ok(Self {
            classes: names.fixed("vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]")?,
            field_info: names.one(&[("InstanceKlass", "_fieldinfo_stream")])?,
            constants: names.one(&[("InstanceKlass", "_constants")])?,
            layout_helper: names.one(&[("Klass", "_layout_helper")])?,
            array_length: names.one(&[("Array<int>", "_length")])?,
            array_data: names.start("Array<u1>", "_data")?,
            narrow_base: narrow("_base", "_narrow_oop._base")?,
            narrow_shift: narrow("_shift", "_narrow_oop._shift")?,
        })
    }
}

/// All 0 if it is not known (yet): then stacks end where they go on in the heap.
pub fn continuation_layout(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> ContinuationLayout {
    let found = layout.classes.map(|classes| read(memory, layout, &classes, bias));
    found.and_then(Result::ok).flatten().unwrap_or_default()
}

fn read(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    classes: &ClassLayout,
    bias: u64,
) -> Result<Option<ContinuationLayout>, Unreadable> {
    let [continuation, chunk] = find_classes(memory, layout, bias.wrapping_add(classes.classes))?;
    let (Some(continuation), Some(chunk)) = (continuation, chunk) else { return Ok(None) };
    let [tail] = offsets(memory, layout, classes, continuation, ["tail"])?;
    let [parent, size, sp, bottom] = offsets(memory, layout, classes, chunk, ["parent", "size", "sp", "bottom"])?;
    let instance = memory.field(chunk, classes.layout_helper)? & !LAYOUT_BITS;
    let (Some(tail), Some(parent), Some(size), Some(sp), Some(bottom), Ok(words)) =
        (tail, parent, size, sp, bottom, u16::try_from(instance))
    else {
        return Ok(None);
    };
    let found = ContinuationLayout { tail, parent, size, sp, bottom, words, ..ContinuationLayout::default() };
    with_references(memory, layout, classes, bias, found).map(Some)
}

/// Of `Continuation` and of `StackChunk`, if they are loaded.
fn find_classes(memory: &dyn RemoteMemory, layout: &Layout, first: u64) -> Result<[Option<u64>; 2], Unreadable> {
    let mut found = [None; 2];
    for index in 0..MAX_CLASSES {
        let class = memory.u64(first.wrapping_add(index * 8))?;
        // Behind the last one is something else.
        let name = memory.field(class, layout.method.klass_name).and_then(|name| symbol(memory, &layout.method, name));
        if let Ok(name) = name
            && let Some(place) = [CONTINUATION, STACK_CHUNK].iter().position(|wanted| *wanted == name)
        {
            found[place] = Some(class);
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(found)
}

/// Offsets of fields by their names.
fn offsets<const N: usize>(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    classes: &ClassLayout,
    class: u64,
    names: [&str; N],
) -> Result<[Option<u16>; N], Unreadable> {
    let mut found = [None; N];
    let array = memory.field(class, classes.field_info)?;
    let length = memory.field(array, classes.array_length)?.min(MAX_FIELD_BYTES);
    let bytes = memory.bytes(array.wrapping_add(classes.array_data.into()), usize::try_from(length).unwrap_or(0))?;
    let pool = memory.field(class, classes.constants)?;
    let pool_length = memory.field(pool, layout.method.pool_length)?.min(MAX_POOL_LENGTH);
    for (name_index, offset) in java_fields(&bytes, layout.nmethod.excludes_zero) {
        let name = pool_symbol(memory, &layout.method, pool, pool_length, name_index.into())?;
        if let Some(place) = names.iter().position(|wanted| *wanted == name) {
            found[place] = u16::try_from(offset).ok();
        }
    }
    Ok(found)
}

/// The fields that are in the class's file: the index of the name, and the offset.
fn java_fields(bytes: &[u8], excludes_zero: bool) -> Vec<(u32, u32)> {
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

fn with_references(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    classes: &ClassLayout,
    bias: u64,
    found: ContinuationLayout,
) -> Result<ContinuationLayout, Unreadable> {
    let [is_narrow, is_z, is_generational] =
        flags::are_set(memory, layout, bias, ["UseCompressedOops", "UseZGC", "ZGenerational"])?;
    if is_z == Some(true) {
        let is_coloured = layout.feature >= ONLY_GENERATIONAL || is_generational == Some(true);
        // Without generations the colours are bits that memory is mapped with.
        let references = if is_coloured { references::COLOURED } else { references::PLAIN };
        return Ok(ContinuationLayout { references, ..found });
    }
    if is_narrow != Some(true) {
        return Ok(ContinuationLayout { references: references::PLAIN, ..found });
    }
    let narrow_base = memory.u64(bias.wrapping_add(classes.narrow_base))?;
    let narrow_shift = memory.u32(bias.wrapping_add(classes.narrow_shift))?;
    let narrow_shift = u16::try_from(narrow_shift).unwrap_or(0);
    Ok(ContinuationLayout { references: references::NARROW, narrow_base, narrow_shift, ..found })
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
        assert_eq!(java_fields(&bytes, true), expected);
        assert_eq!(java_fields(&bytes[..12], true), expected[..1], "cut");
        assert_eq!(java_fields(&[], true), []);
    }

    proptest! {
        #[test]
        fn fields_never_panic(bytes: Vec<u8>) {
            let _ = java_fields(&bytes, true);
        }
    }
}
