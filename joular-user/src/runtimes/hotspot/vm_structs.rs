//! Reads the tables in which HotSpot describes its own structures: fields by type and name, sizes
//! of types, constants.
//!
//! libjvm exports, for each table, a pointer to it, the size of its entries and where in an entry
//! things stand. All of that is read from the process, so all of it is bounded. Addresses of static
//! fields are kept relative to the load bias, so they hold for every process that runs the same
//! file.

use std::collections::HashMap;

use thiserror::Error;

use super::memory::{RemoteMemory, Unreadable};

/// JDK 11 has 56 bytes at most.
const MAX_STRIDE: u64 = 256;
/// JDK 21 has 1300 entries in its largest table.
const MAX_ENTRIES: usize = 20_000;
const MAX_NAME_BYTES: usize = 256;

#[derive(Debug, Error)]
pub enum VmStructsError {
    #[error("libjvm.so does not export {0}: it is not a HotSpot JVM, or its tables were stripped")]
    NoTable(String),
    #[error("the table {0} of the JVM is implausible: its entries have {1} bytes")]
    Stride(&'static str, u64),
    #[error("the table {0} of the JVM has no end within {MAX_ENTRIES} entries")]
    TooLong(&'static str),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// The place of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPlace {
    /// In bytes from the start of the structure.
    Offset(u64),
    /// For a static field: its address minus the load bias.
    Static(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmField {
    pub place: FieldPlace,
    /// The C++ type, e.g. `u2` or `Method*`; some have none.
    pub type_name: String,
}

/// All tables of one libjvm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmStructs {
    fields: HashMap<String, HashMap<String, VmField>>,
    sizes: HashMap<String, u64>,
    constants: HashMap<String, u64>,
}

impl VmStructs {
    /// `tables` are addresses of libjvm's exported variables without the load bias.
    pub fn read(memory: &dyn RemoteMemory, tables: &HashMap<String, u64>, bias: u64) -> Result<Self, VmStructsError> {
        let variable = |name: String| -> Result<u64, VmStructsError> {
            let address = tables.get(&name).ok_or(VmStructsError::NoTable(name))?;
            Ok(memory.u64(bias.wrapping_add(*address))?)
        };
        let table = |name: &'static str, entry: &str| -> Result<ExportedTable<'_>, VmStructsError> {
            let stride = variable(format!("gHotSpotVM{entry}EntryArrayStride"))?;
            if stride == 0 || stride > MAX_STRIDE {
                return Err(VmStructsError::Stride(name, stride));
            }
            Ok(ExportedTable { memory, name, first: variable(name.to_owned())?, stride })
        };
        let column = |entry: &str, name: &str| variable(format!("gHotSpotVM{entry}Entry{name}Offset"));
        let mut structs = Self::default();
        let columns = Columns {
            type_name: column("Struct", "TypeName")?,
            field_name: column("Struct", "FieldName")?,
            type_string: column("Struct", "TypeString")?,
            is_static: column("Struct", "IsStatic")?,
            offset: column("Struct", "Offset")?,
            address: column("Struct", "Address")?,
        };
        table("gHotSpotVMStructs", "Struct")?
            .each(columns.type_name, |entry, name| structs.add_field(memory, entry, name, &columns, bias))?;
        let size = column("Type", "Size")?;
        table("gHotSpotVMTypes", "Type")?.each(column("Type", "TypeName")?, |entry, name| {
            structs.sizes.insert(name, memory.u64(entry.wrapping_add(size))?);
            Ok(())
        })?;
        let value = column("IntConstant", "Value")?;
        table("gHotSpotVMIntConstants", "IntConstant")?.each(column("IntConstant", "Name")?, |entry, name| {
            structs.constants.insert(name, u64::from(memory.u32(entry.wrapping_add(value))?));
            Ok(())
        })?;
        let value = column("LongConstant", "Value")?;
        table("gHotSpotVMLongConstants", "LongConstant")?.each(column("LongConstant", "Name")?, |entry, name| {
            structs.constants.insert(name, memory.u64(entry.wrapping_add(value))?);
            Ok(())
        })?;
        Ok(structs)
    }

    pub fn field(&self, type_name: &str, name: &str) -> Option<&VmField> {
        self.fields.get(type_name)?.get(name)
    }

    /// In bytes.
    pub fn size(&self, type_name: &str) -> Option<u64> {
        self.sizes.get(type_name).copied()
    }

    pub fn constant(&self, name: &str) -> Option<u64> {
        self.constants.get(name).copied()
    }

    /// For tests of versions that cannot be run: static fields only.
    #[cfg(test)]
    pub fn of_static_fields(fields: &[(&str, &str, u64)]) -> Self {
        let mut structs = Self::default();
        for &(owner, name, address) in fields {
            let field = VmField { place: FieldPlace::Static(address), type_name: String::new() };
            structs.fields.entry(owner.to_owned()).or_default().insert(name.to_owned(), field);
        }
        structs
    }

    fn add_field(
        &mut self,
        memory: &dyn RemoteMemory,
        entry: u64,
        owner: String,
        columns: &Columns,
        bias: u64,
    ) -> Result<(), VmStructsError> {
        let Some(name) = text(memory, entry.wrapping_add(columns.field_name))? else { return Ok(()) };
        let place = match memory.u32(entry.wrapping_add(columns.is_static))? {
            0 => FieldPlace::Offset(memory.u64(entry.wrapping_add(columns.offset))?),
            _ => FieldPlace::Static(memory.u64(entry.wrapping_add(columns.address))?.wrapping_sub(bias)),
        };
        let type_name = text(memory, entry.wrapping_add(columns.type_string))?.unwrap_or_default();
        self.fields.entry(owner).or_default().insert(name, VmField { place, type_name });
        Ok(())
    }
}

/// Where the parts of an entry stand in the table of fields.
struct Columns {
    type_name: u64,
    field_name: u64,
    type_string: u64,
    is_static: u64,
    offset: u64,
    address: u64,
}

struct ExportedTable<'a> {
    memory: &'a dyn RemoteMemory,
    name: &'static str,
    first: u64,
    stride: u64,
}

impl ExportedTable<'_> {
    /// Calls a function with each entry's address and name, up to the entry without a name.
    fn each(
        &self,
        name_offset: u64,
        mut visit: impl FnMut(u64, String) -> Result<(), VmStructsError>,
    ) -> Result<(), VmStructsError> {
        let mut entry = self.first;
        for _ in 0..MAX_ENTRIES {
            let Some(name) = text(self.memory, entry.wrapping_add(name_offset))? else { return Ok(()) };
            visit(entry, name)?;
            entry = entry.wrapping_add(self.stride);
        }
        Err(VmStructsError::TooLong(self.name))
    }
}

/// The text that a pointer in memory points at.
fn text(memory: &dyn RemoteMemory, pointer: u64) -> Result<Option<String>, Unreadable> {
    match memory.u64(pointer)? {
        0 => Ok(None),
        address => Ok(Some(String::from_utf8_lossy(&memory.c_string(address, MAX_NAME_BYTES)?).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::runtimes::hotspot::memory::MemoryImage;

    const BIAS: u64 = 0x7000_0000;
    const STRIDE: u64 = 56;

    /// A process with one table of each kind, as libjvm has them.
    fn process(strides: u64) -> (MemoryImage, HashMap<String, u64>) {
        let (mut image, mut tables) = (MemoryImage::default(), HashMap::new());
        let mut next = 0x100;
        let mut variable = |image: &mut MemoryImage, name: &str, value: u64| {
            image.insert(BIAS + next, &value.to_le_bytes());
            tables.insert(format!("gHotSpotVM{name}"), next);
            next += 8;
        };
        for (name, at) in [("Structs", 0x1000), ("Types", 0x2000), ("IntConstants", 0x3000), ("LongConstants", 0x4000)]
        {
            variable(&mut image, name, BIAS + at);
        }
        for (entry, columns) in [
            ("Struct", &["TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"][..]),
            ("Type", &["TypeName", "Size"]),
            ("IntConstant", &["Name", "Value"]),
            ("LongConstant", &["Name", "Value"]),
        ] {
            variable(&mut image, &format!("{entry}EntryArrayStride"), strides);
            for (index, column) in columns.iter().enumerate() {
                variable(&mut image, &format!("{entry}Entry{column}Offset"), index as u64 * 8);
            }
        }
        for (at, text) in [(0x8000, "Method"), (0x8100, "_constMethod"), (0x8200, "ConstMethod*"), (0x8300, "flags")] {
            image.insert(BIAS + at, &[text.as_bytes(), &[0; 64]].concat());
        }
        let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let name = |at: u64| BIAS + at;
        image.insert(
            BIAS + 0x1000,
            &words(&[
                name(0x8000),
                name(0x8100),
                name(0x8200),
                0,
                8,
                0,
                0,
                name(0x8000),
                name(0x8300),
                0,
                1,
                0,
                BIAS + 0x77,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ]),
        );
        for (at, value) in [(0x2000, 88), (0x3000, 1), (0x4000, u64::MAX)] {
            image.insert(BIAS + at, &words(&[name(0x8000), value, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        }
        (image, tables)
    }

    #[test]
    fn tables_are_read() {
        let (image, tables) = process(STRIDE);
        let structs = VmStructs::read(&image, &tables, BIAS).unwrap();
        let field = structs.field("Method", "_constMethod").unwrap();
        assert_eq!((field.place, &*field.type_name), (FieldPlace::Offset(8), "ConstMethod*"));
        assert_eq!(structs.field("Method", "flags").unwrap().place, FieldPlace::Static(0x77));
        assert_eq!((structs.field("Method", "x"), structs.field("X", "flags")), (None, None));
        assert_eq!((structs.size("Method"), structs.size("X")), (Some(88), None));
        assert_eq!(structs.constant("Method"), Some(u64::MAX), "the last table wins");
    }

    #[test]
    fn nonsense_is_an_error() {
        let (image, mut tables) = process(STRIDE);
        for stride in [0, MAX_STRIDE + 1, u64::MAX] {
            let (image, tables) = process(stride);
            assert!(matches!(VmStructs::read(&image, &tables, BIAS), Err(VmStructsError::Stride(..))));
        }
        assert!(matches!(VmStructs::read(&image, &tables, 0), Err(VmStructsError::Unreadable(_))));
        tables.remove("gHotSpotVMTypes");
        assert!(matches!(VmStructs::read(&image, &tables, BIAS), Err(VmStructsError::NoTable(_))));
    }

    #[test]
    fn a_table_without_end_is_an_error() {
        let (mut image, tables) = process(STRIDE);
        let entry: Vec<u8> = (0..7).flat_map(|_| (BIAS + 0x8000).to_le_bytes()).collect();
        image.insert(BIAS + 0x10_0000, &entry.repeat(MAX_ENTRIES + 1));
        image = MemoryImage::from_ranges(image.ranges().map(|(at, bytes)| {
            let mut bytes = bytes.to_vec();
            if at == BIAS + 0x100 {
                bytes[..8].copy_from_slice(&(BIAS + 0x10_0000).to_le_bytes());
            }
            (at, bytes)
        }));
        assert!(matches!(VmStructs::read(&image, &tables, BIAS), Err(VmStructsError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn never_panics(changes in proptest::collection::vec((0usize..400, any::<u64>()), 0..8)) {
            let (image, tables) = process(STRIDE);
            let changed = MemoryImage::from_ranges(image.ranges().map(|(at, bytes)| {
                let mut bytes = bytes.to_vec();
                for (index, value) in &changes {
                    if let Some(word) = bytes.get_mut(index * 8..index * 8 + 8) {
                        word.copy_from_slice(&value.to_le_bytes());
                    }
                }
                (at, bytes)
            }));
            let _ = VmStructs::read(&changed, &tables, BIAS);
        }
    }
}
