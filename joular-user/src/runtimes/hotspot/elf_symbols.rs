//! What is needed of libjvm's file: where its tables begin, and where some names of
//! code blobs stand. Only headers, dynamic symbols and `.rodata` are read, with
//! bounds: the file may be anyone's.

use std::{collections::HashMap, fs::File, io, os::unix::fs::FileExt as _};

use serde::{Deserialize, Serialize};
use thiserror::Error;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: usize = 24;
const MAX_HEADERS: u16 = 1024;
/// libjvm has a thousand dynamic symbols with 9 KiB of names, and 1 MiB of constants.
const MAX_SYMBOL_BYTES: u64 = 4 << 20;
const MAX_RODATA_BYTES: u64 = 16 << 20;

const SHT_PROGBITS: u32 = 1;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;

/// All tables of HotSpot begin so.
const TABLE_PREFIX: &[u8] = b"gHotSpotVM";

#[derive(Debug, Error)]
pub enum LibjvmError {
    #[error("reading libjvm.so: {0}")]
    Read(#[from] io::Error),
    #[error("reading libjvm.so: {0}")]
    Malformed(&'static str),
}

/// Addresses as the file counts them: add the load bias for those of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Libjvm {
    /// `gHotSpotVM…` by name.
    pub tables: HashMap<String, u64>,
    /// Address minus file offset in the executable segment.
    pub code_shift: u64,
    /// Where "nmethod" may begin: the linker shares the ends of strings.
    pub nmethod_names: Vec<u64>,
    pub native_names: Vec<u64>,
    pub vtable_names: Vec<u64>,
}

impl Libjvm {
    pub fn read(file: &File) -> Result<Self, LibjvmError> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(LibjvmError::Malformed("not a 64-bit little-endian ELF file"));
        }
        let segments = records(file, number(&header, 32, 8), number(&header, 56, 2), SEGMENT_BYTES)?;
        let sections = records(file, number(&header, 40, 8), number(&header, 60, 2), SECTION_BYTES)?;
        let mut libjvm = Self { code_shift: code_shift(&segments)?, ..Self::default() };
        libjvm.tables = tables(file, &sections)?;
        let names_index = usize::try_from(number(&header, 62, 2)).unwrap_or(0);
        libjvm.find_names(file, &sections, names_index)?;
        Ok(libjvm)
    }

    /// The load bias, from an executable mapping of the file.
    pub const fn bias(&self, mapping_start: u64, mapping_offset: u64) -> u64 {
        mapping_start.wrapping_sub(mapping_offset).wrapping_sub(self.code_shift)
    }

    fn find_names(&mut self, file: &File, sections: &[Vec<u8>], names: usize) -> Result<(), LibjvmError> {
        let Some(names) = sections.get(names) else { return Ok(()) };
        let names = section_bytes(file, names, MAX_SYMBOL_BYTES)?;
        let rodata = sections.iter().find(|section| {
            let name = usize::try_from(number(section, 0, 4)).ok().and_then(|at| names.get(at..));
            let is_constant = number(section, 8, 8) & SHF_ALLOC != 0;
            is_constant
                && number(section, 4, 4) == u64::from(SHT_PROGBITS)
                && name.is_some_and(|name| name.starts_with(b".rodata\0"))
        });
        let Some(rodata) = rodata else { return Ok(()) };
        let base = number(rodata, 16, 8);
        let bytes = section_bytes(file, rodata, MAX_RODATA_BYTES)?;
        let find = |text: &[u8]| addresses(&bytes, base, text);
        self.native_names = find(b"\0native nmethod\0");
        self.vtable_names = find(b"\0vtable chunks\0");
        self.nmethod_names = find(b"\0nmethod\0");
        if self.nmethod_names.is_empty() {
            // It is the end of another string then; of which one, the linker knows.
            let tail = "native ".len() as u64;
            self.nmethod_names = self.native_names.iter().map(|name| name + tail).collect();
        }
        Ok(())
    }
}

/// Where a string begins that stands there with a zero on both sides.
fn addresses(bytes: &[u8], base: u64, text: &[u8]) -> Vec<u64> {
    let places = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    places.map(|(at, _)| base.wrapping_add(at as u64 + 1)).take(2).collect()
}

fn code_shift(segments: &[Vec<u8>]) -> Result<u64, LibjvmError> {
    let is_code = |segment: &&Vec<u8>| {
        number(segment, 0, 4) == u64::from(PT_LOAD) && number(segment, 4, 4) & u64::from(PF_X) != 0
    };
    let code = segments.iter().find(is_code).ok_or(LibjvmError::Malformed("it has no code"))?;
    Ok(number(code, 16, 8).wrapping_sub(number(code, 8, 8)))
}

fn tables(file: &File, sections: &[Vec<u8>]) -> Result<HashMap<String, u64>, LibjvmError> {
    let is_dynamic = |section: &&Vec<u8>| number(section, 4, 4) == u64::from(SHT_DYNSYM);
    let symbols = sections.iter().find(is_dynamic).ok_or(LibjvmError::Malformed("it has no dynamic symbols"))?;
    let link = usize::try_from(number(symbols, 40, 4)).unwrap_or(usize::MAX);
    let names = sections.get(link).ok_or(LibjvmError::Malformed("its dynamic symbols have no names"))?;
    let names = section_bytes(file, names, MAX_SYMBOL_BYTES)?;
    let mut tables = HashMap::new();
    for symbol in section_bytes(file, symbols, MAX_SYMBOL_BYTES)?.chunks_exact(SYMBOL_BYTES) {
        let name = usize::try_from(number(symbol, 0, 4)).ok().and_then(|at| names.get(at..)).unwrap_or_default();
        if !name.starts_with(TABLE_PREFIX) {
            continue;
        }
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if let Ok(name) = std::str::from_utf8(name) {
            tables.insert(name.to_owned(), number(symbol, 8, 8));
        }
    }
    Ok(tables)
}

fn records(file: &File, at: u64, count: u64, size: usize) -> Result<Vec<Vec<u8>>, LibjvmError> {
    if count > u64::from(MAX_HEADERS) {
        return Err(LibjvmError::Malformed("it has too many headers"));
    }
    (0..count)
        .map(|index| {
            let mut record = vec![0; size];
            file.read_exact_at(&mut record, at.saturating_add(index * size as u64))?;
            Ok(record)
        })
        .collect()
}

fn section_bytes(file: &File, section: &[u8], limit: u64) -> Result<Vec<u8>, LibjvmError> {
    let size = number(section, 32, 8);
    // A claim of any size costs nothing before it is known to be there.
    if size > limit || number(section, 24, 8).saturating_add(size) > file.metadata()?.len() {
        return Err(LibjvmError::Malformed("a section is too large"));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact_at(&mut bytes, number(section, 24, 8))?;
    Ok(bytes)
}

/// A number of `width` ≤ 8 bytes; 0 if it is not within.
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let part = bytes.get(at..at + width).unwrap_or_default();
    part.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
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
    fn strings_are_found_whole() {
        let bytes = b"\0xnmethod\0nmethod\0native nmethod\0";
        assert_eq!(addresses(bytes, 0x100, b"\0nmethod\0"), [0x10a]);
        assert_eq!(addresses(bytes, 0x100, b"\0native nmethod\0"), [0x112]);
        assert_eq!(addresses(bytes, 0x100, b"\0vtable chunks\0"), [0; 0]);
    }

    proptest! {
        #[test]
        fn never_panics(changes in proptest::collection::vec((0usize..64, any::<u8>()), 0..8), tail in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = vec![0; HEADER_BYTES];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            for at in [32, 40] { bytes[at] = 64; }
            for at in [56, 60] { bytes[at] = 2; }
            for (at, byte) in changes { bytes[at] = byte; }
            bytes.extend_from_slice(&tail);
            let _ = Libjvm::read(&file(&bytes));
        }
    }
}
