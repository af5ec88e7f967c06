//! Reads parts of ELF files: code, sections, symbols, and a copy for symbolizers. The crate
//! `object` knows the format; this folder decides which parts are read, and how much.
//!
//! The files are targets'. Nothing is mapped, because a target can cut its file short while it is
//! read. Nothing is trusted: every size is checked against the file's and against a bound before
//! memory is taken for it.

pub mod function_starts;
pub mod image;
pub mod segment;
pub mod static_probes;
#[cfg(test)]
mod tests;

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt as _};

use object::{
    LittleEndian,
    elf::{
        ET_EXEC, FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC,
        STT_NOTYPE, SectionHeader64, Sym64,
    },
    pod::{self, Pod},
    read::{
        StringTable,
        elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _},
    },
};
use segment::Segment;
use thiserror::Error;

use crate::{
    arch::{Arch as _, Native},
    bounds::Bound,
};

const MAX_SECTIONS: u16 = 4096;
const MAX_SEGMENTS: u16 = 1024;
const MAX_SECTION_NAMES_BYTES: u64 = 1 << 20;
pub static SECTION_NAMES: Bound = Bound::new(
    "section_names_not_read",
    MAX_SECTION_NAMES_BYTES,
    "bytes of the names of a file's sections",
    "sections named behind them are not found: the file may have no symbols or unwind tables",
);
/// libjvm has a thousand dynamic symbols with 9 KiB of names.
const MAX_DYNAMIC_BYTES: u64 = 4 << 20;
/// libjvm has 60 000 symbols of its own with 5 MiB of names.
const MAX_STATIC_BYTES: u64 = 32 << 20;
/// Longest name of a section or a symbol, with its zero. Without a bound, each of many
/// symbols could have a table without any zero searched to its end.
const MAX_NAME_BYTES: u64 = 256;
/// Of functions in assembly, at least.
const ALIGNMENT_BYTES: u64 = 16;

const LE: LittleEndian = LittleEndian;

type Header = FileHeader64<LittleEndian>;
type SegmentHeader = ProgramHeader64<LittleEndian>;
type SectionHeader = SectionHeader64<LittleEndian>;
type Symbol = Sym64<LittleEndian>;

#[derive(Debug, Error)]
pub enum ElfError {
    #[error("reading an ELF file: {0}")]
    Read(#[from] io::Error),
    #[error("reading an ELF file: {0}")]
    Malformed(&'static str),
    #[error("reading an ELF file: it has more than the {limit} bytes of {part} that are read")]
    TooLarge { part: &'static str, limit: u64 },
}

/// A file whose headers have been read.
#[derive(Debug)]
pub struct Elf<'f> {
    bytes: FileBytes<'f>,
    header: Header,
    segments: Vec<SegmentHeader>,
    sections: Vec<SectionHeader>,
}

/// A section's bytes.
#[derive(Debug, Default)]
pub struct Section {
    /// In memory, before the file is moved as a whole.
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl<'f> Elf<'f> {
    pub fn read(file: &'f File) -> Result<Self, ElfError> {
        let bytes = FileBytes { file, size: file.metadata()?.len() };
        let header = bytes.part(0, size_of::<Header>() as u64)?;
        let header = *Header::parse(&*header).map_err(|_| ElfError::Malformed("it is not a 64-bit ELF file"))?;
        if !header.is_little_endian() {
            return Err(ElfError::Malformed("it is not little-endian"));
        }
        let (segments, sections) = (header.e_phnum(LE), header.e_shnum(LE));
        if segments > MAX_SEGMENTS || sections > MAX_SECTIONS {
            return Err(ElfError::Malformed("it has too many headers"));
        }
        Ok(Self {
            segments: bytes.headers(header.e_phoff(LE), segments, header.e_phentsize(LE))?,
            sections: bytes.headers(header.e_shoff(LE), sections, header.e_shentsize(LE))?,
            bytes,
            header,
        })
    }

    /// Whether its code is for this machine.
    pub fn is_of_this_machine(&self) -> bool {
        self.is_of(Native::MACHINE)
    }

    /// Whether its code is for the machine with this number.
    pub fn is_of(&self, machine: u16) -> bool {
        self.header.e_machine(LE) == machine
    }

    /// Where a program begins, before the file is moved as a whole.
    pub fn entry(&self) -> u64 {
        self.header.e_entry(LE)
    }

    /// Whether it may be anywhere in memory, and not only where its addresses say.
    pub fn is_movable(&self) -> bool {
        self.header.e_type(LE) != ET_EXEC
    }

    /// Segments with code.
    pub fn code(&self) -> impl Iterator<Item = Segment> {
        let is_code = |segment: &&SegmentHeader| segment.p_type(LE) == PT_LOAD && segment.p_flags(LE) & PF_X != 0;
        self.segments.iter().filter(is_code).map(|segment| {
            let (offset, bytes) = segment.file_range(LE);
            Segment { offset, bytes, address: segment.p_vaddr(LE) }
        })
    }

    /// A section that is loaded, if the file has it. Files of debug info have such sections without
    /// their bytes; those do not count.
    pub fn section(&self, name: &'static str, limit: u64) -> Result<Option<Section>, ElfError> {
        let Some(place) = self.section_place(name)? else { return Ok(None) };
        if place.bytes > limit {
            return Err(ElfError::TooLarge { part: name, limit });
        }
        Ok(Some(Section { address: place.address, bytes: self.bytes.part(place.offset, place.bytes)? }))
    }

    /// Where a section is in memory, before the file is moved as a whole; empty if there is none.
    pub fn section_range(&self, name: &str) -> Result<Range<u64>, ElfError> {
        let place = self.section_place(name)?;
        Ok(place.map_or(0..0, |place| place.address..place.address.saturating_add(place.bytes)))
    }

    /// Where a section that is loaded is, in memory and in the file.
    fn section_place(&self, name: &str) -> Result<Option<Segment>, ElfError> {
        self.place_of(name, |section| section.sh_flags(LE) & u64::from(SHF_ALLOC) != 0)
    }

    /// The bytes of a section that is not loaded.
    fn unloaded_section(&self, name: &'static str, limit: u64) -> Result<Option<Vec<u8>>, ElfError> {
        let Some(place) = self.place_of(name, |_| true)? else { return Ok(None) };
        if place.bytes > limit {
            return Err(ElfError::TooLarge { part: name, limit });
        }
        Ok(Some(self.bytes.part(place.offset, place.bytes)?))
    }

    fn place_of(&self, name: &str, may_be: impl Fn(&SectionHeader) -> bool) -> Result<Option<Segment>, ElfError> {
        let names = self.section_names()?;
        let is_wanted =
            |section: &SectionHeader| may_be(section) && name_at(&names, section.sh_name(LE)) == Some(name.as_bytes());
        let mut wanted = self.sections.iter().filter(|section| is_wanted(section));
        Ok(wanted.find_map(|section| {
            let (offset, bytes) = section.file_range(LE)?;
            Some(Segment { offset, bytes, address: section.sh_addr(LE) })
        }))
    }

    /// Whether it is a program or library that GraalVM compiled. Only those have objects of Java.
    pub fn is_native_image(&self) -> bool {
        self.section_range(".svm_heap").is_ok_and(|heap| !heap.is_empty())
    }

    /// Code by its place in memory, before the file is moved as a whole. The caller bounds its length.
    pub fn code_at(&self, range: &Range<u64>) -> Result<Vec<u8>, ElfError> {
        let is_around = |segment: &Segment| {
            segment.address <= range.start && range.end <= segment.address.saturating_add(segment.bytes)
        };
        let segment = self.code().find(is_around).ok_or(ElfError::Malformed("its code is in no segment"))?;
        self.bytes
            .part(segment.offset.saturating_add(range.start - segment.address), range.end.saturating_sub(range.start))
    }

    fn section_names(&self) -> Result<Vec<u8>, ElfError> {
        let names = self.sections.get(usize::from(self.header.e_shstrndx(LE)));
        let (start, size) = names.and_then(|names| names.file_range(LE)).unwrap_or_default();
        self.bytes.part(start, SECTION_NAMES.within(size))
    }

    /// What it exports and imports by name.
    pub fn dynamic_symbols(&self) -> Result<Symbols, ElfError> {
        self.symbols(SHT_DYNSYM, "dynamic symbols", MAX_DYNAMIC_BYTES)?
            .ok_or(ElfError::Malformed("it has no dynamic symbols"))
    }

    /// All symbols, unless they were stripped.
    pub fn static_symbols(&self) -> Result<Option<Symbols>, ElfError> {
        self.symbols(SHT_SYMTAB, "symbols", MAX_STATIC_BYTES)
    }

    fn symbols(&self, kind: u32, part: &'static str, limit: u64) -> Result<Option<Symbols>, ElfError> {
        let Some(symbols) = self.sections.iter().find(|section| section.sh_type(LE) == kind) else { return Ok(None) };
        let names = self.sections.get(symbols.link(LE).0);
        let names = names.ok_or(ElfError::Malformed("its symbols have no names"))?;
        let read = |section: &SectionHeader| {
            let (start, size) = section.file_range(LE).unwrap_or_default();
            if size > limit {
                return Err(ElfError::TooLarge { part, limit });
            }
            self.bytes.part(start, size)
        };
        Ok(Some(Symbols { symbols: read(symbols)?, names: read(names)? }))
    }
}

#[derive(Debug)]
pub struct Symbols {
    symbols: Vec<u8>,
    names: Vec<u8>,
}

impl Symbols {
    /// Names and addresses. Symbols whose name is longer than [`MAX_NAME_BYTES`] or has no
    /// end are left out.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let symbols = records::<Symbol>(&self.symbols).iter();
        symbols.filter_map(|symbol| Some((name_at(&self.names, symbol.st_name(LE))?, symbol.st_value(LE))))
    }

    /// Addresses of functions.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        let symbols = records::<Symbol>(&self.symbols).iter();
        let is_function = |symbol: &&Symbol| symbol.st_type() == STT_FUNC && symbol.st_shndx(LE) != SHN_UNDEF;
        symbols.filter(is_function).map(|symbol| symbol.st_value(LE))
    }

    /// Addresses of symbols without a type that may be functions in assembly: they are aligned as such are, and not marks.
    pub fn untyped(&self) -> impl Iterator<Item = u64> {
        let symbols = records::<Symbol>(&self.symbols).iter();
        let is_function = |symbol: &&Symbol| {
            symbol.st_type() == STT_NOTYPE && symbol.st_shndx(LE) != SHN_UNDEF && !is_mark(symbol, &self.names)
        };
        let addresses = symbols.filter(is_function).map(|symbol| symbol.st_value(LE));
        addresses.filter(|address| address.is_multiple_of(ALIGNMENT_BYTES))
    }

    /// The address of the first symbol with each of these names.
    pub fn addresses<const N: usize>(&self, wanted: [&[u8]; N]) -> [Option<u64>; N] {
        let mut found = [None; N];
        for symbol in records::<Symbol>(&self.symbols) {
            let start = symbol.st_name(LE) as usize;
            let rest = self.names.get(start..).unwrap_or_default();
            for (name, address) in wanted.iter().zip(&mut found) {
                if address.is_none() && rest.starts_with(name) && rest.get(name.len()) == Some(&0) {
                    *address = Some(symbol.st_value(LE));
                }
            }
        }
        found
    }
}

/// Whether a symbol marks where code or data begins (`$x`, `$d`) and names nothing ("ELF for the Arm 64-bit
/// Architecture", mapping symbols).
fn is_mark(symbol: &Symbol, names: &[u8]) -> bool {
    symbol.st_type() == STT_NOTYPE && names.get(symbol.st_name(LE) as usize) == Some(&b'$')
}

/// A file and its size when it was opened.
#[derive(Clone, Copy, Debug)]
struct FileBytes<'f> {
    file: &'f File,
    size: u64,
}

impl FileBytes<'_> {
    /// The end of a part, if the file has it. Memory is taken only after this check.
    fn end_of(self, start: u64, length: u64) -> Result<u64, ElfError> {
        let end = start.checked_add(length).filter(|&end| end <= self.size);
        end.ok_or(ElfError::Malformed("a part lies beyond its end"))
    }

    /// The caller bounds `length`.
    fn part(self, start: u64, length: u64) -> Result<Vec<u8>, ElfError> {
        self.end_of(start, length)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| ElfError::Malformed("a part is too large"))?];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }

    fn headers<T: Pod>(self, start: u64, count: u16, entry_bytes: u16) -> Result<Vec<T>, ElfError> {
        if count > 0 && usize::from(entry_bytes) != size_of::<T>() {
            return Err(ElfError::Malformed("its headers have an unknown size"));
        }
        let bytes = self.part(start, u64::from(count) * size_of::<T>() as u64)?;
        Ok(records(&bytes).to_vec())
    }
}

/// All whole records in there.
fn records<T: Pod>(bytes: &[u8]) -> &[T] {
    pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(records, _)| records)
}

/// The string that begins there, if it ends.
fn name_at(names: &[u8], at: u32) -> Option<&[u8]> {
    let end = u64::from(at).saturating_add(MAX_NAME_BYTES).min(names.len() as u64);
    StringTable::new(names, 0, end).get(at).ok()
}
