//! Reads what is needed of libjvm's file: where its tables begin, and where some names of code
//! blobs stand. Only headers, symbols and `.rodata` are read.

use std::{collections::HashMap, fs::File};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    arch::Processor,
    elf::{Elf, ElfError, Section},
};

/// libjvm has 1 MiB of constants.
const MAX_RODATA_BYTES: u64 = 16 << 20;
/// libjvm has 24.
const MAX_TABLES: usize = 1024;

/// All names of HotSpot's tables begin with this.
const TABLE_PREFIX: &[u8] = b"gHotSpotVM";

#[derive(Debug, Error)]
#[error("libjvm.so: {0}")]
pub struct LibjvmError(#[from] ElfError);

/// Addresses as the file counts them: add the load bias for those of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libjvm {
    /// That its code is for.
    pub processor: Processor,
    /// `gHotSpotVM…` by name.
    pub tables: HashMap<String, u64>,
    /// Address minus file offset in the executable segment.
    pub code_shift: u64,
    /// Places where the string "nmethod" may begin: the linker shares the ends of strings.
    pub nmethod_names: Vec<u64>,
    pub native_names: Vec<u64>,
    pub vtable_names: Vec<u64>,
    /// `StubCodeDesc::_list` and `VtableStubs::_table`, unless the symbols were stripped.
    pub stub_list: Option<u64>,
    pub vtable_stubs: Option<u64>,
    /// `Runtime1::_blobs`: the stubs of C1.
    pub c1_blobs: Option<u64>,
}

/// Names of [`Libjvm::stub_list`], [`Libjvm::vtable_stubs`] and [`Libjvm::c1_blobs`], as C++ writes them.
const STUB_SYMBOLS: [&[u8]; 3] = [b"_ZN12StubCodeDesc5_listE", b"_ZN11VtableStubs6_tableE", b"_ZN8Runtime16_blobsE"];

impl Libjvm {
    pub fn read(file: &File) -> Result<Self, LibjvmError> {
        let elf = Elf::read(file)?;
        let code = elf.code().next().ok_or(ElfError::Malformed("it has no code"))?;
        let code_shift = code.address.wrapping_sub(code.offset);
        let tables = tables(elf.dynamic_symbols()?.iter());
        let mut libjvm = Self { tables, code_shift, ..Self::default() };
        if let Some(constants) = elf.section(".rodata", MAX_RODATA_BYTES)? {
            libjvm.find_names(&constants);
        }
        // Without them stubs have the names of their blobs.
        if let Ok(Some(symbols)) = elf.static_symbols() {
            [libjvm.stub_list, libjvm.vtable_stubs, libjvm.c1_blobs] = symbols.addresses(STUB_SYMBOLS);
        }
        Ok(libjvm)
    }

    /// The load bias, from an executable mapping of the file.
    pub const fn bias(&self, mapping_start: u64, mapping_offset: u64) -> u64 {
        mapping_start.wrapping_sub(mapping_offset).wrapping_sub(self.code_shift)
    }

    fn find_names(&mut self, constants: &Section) {
        let find = |text: &[u8]| addresses(&constants.bytes, constants.address, text);
        self.native_names = find(b"\0native nmethod\0");
        self.vtable_names = find(b"\0vtable chunks\0");
        self.nmethod_names = find(b"\0nmethod\0");
        if self.nmethod_names.is_empty() {
            // It is the end of another string then; of which one, the linker knows.
            let tail = "native ".len() as u64;
            self.nmethod_names = self.native_names.iter().map(|name| name + tail).collect();
        }
    }
}

/// Addresses where a string stands with a zero on both sides.
fn addresses(bytes: &[u8], base: u64, text: &[u8]) -> Vec<u64> {
    let places = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    places.map(|(at, _)| base.wrapping_add(at as u64 + 1)).take(2).collect()
}

fn tables<'s>(symbols: impl Iterator<Item = (&'s [u8], u64)>) -> HashMap<String, u64> {
    let tables = symbols.filter(|(name, _)| name.starts_with(TABLE_PREFIX));
    let named = tables.filter_map(|(name, address)| Some((str::from_utf8(name).ok()?.to_owned(), address)));
    named.take(MAX_TABLES).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_program_that_is_no_jvm_has_no_tables() {
        let own = Libjvm::read(&File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(own.tables.is_empty());
        assert!(Libjvm::read(&file(b"\x7fELF")).is_err());
    }

    #[test]
    fn tables_are_told_by_their_names_and_bounded() {
        let symbols = [(&b"gHotSpotVMTypes"[..], 1), (b"JNI_CreateJavaVM", 2), (b"gHotSpotVM\xff", 3)];
        assert_eq!(tables(symbols.into_iter()), HashMap::from([("gHotSpotVMTypes".to_owned(), 1)]));
        let many: Vec<String> = (0..2 * MAX_TABLES).map(|number| format!("gHotSpotVM{number}")).collect();
        assert_eq!(tables(many.iter().map(|name| (name.as_bytes(), 0))).len(), MAX_TABLES);
    }

    #[test]
    fn strings_are_found_whole() {
        let bytes = b"\0xnmethod\0nmethod\0native nmethod\0";
        assert_eq!(addresses(bytes, 0x100, b"\0nmethod\0"), [0x10a]);
        assert_eq!(addresses(bytes, 0x100, b"\0native nmethod\0"), [0x112]);
        assert_eq!(addresses(bytes, 0x100, b"\0vtable chunks\0"), [0; 0]);
    }

    proptest! {
        #[test]
        fn never_panics(changes in proptest::collection::vec((0usize..64, any::<u8>()), 0..8), tail in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = vec![0; 64];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            for at in [32, 40] { bytes[at] = 64; }
            for at in [56, 60] { bytes[at] = 2; }
            for (at, byte) in changes { bytes[at] = byte; }
            bytes.extend_from_slice(&tail);
            let _ = Libjvm::read(&file(&bytes));
        }
    }
}
