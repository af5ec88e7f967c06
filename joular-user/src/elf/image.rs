//! Copies the parts of an ELF file that a symbolizer needs.
//!
//! Symbolizers map the file into memory. A target can cut its own file short while we read it, and
//! the next access would end the profiler with SIGBUS. It can also claim tables of any size. So the
//! headers, the symbol tables and their strings are copied, with bounds, into a memory file that
//! nobody else can reach. Everything between them is a hole that costs nothing.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::PathBuf,
};

use object::{
    elf::{SHF_COMPRESSED, SHN_UNDEF, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB},
    pod::{bytes_of, bytes_of_slice, slice_from_bytes_mut},
    read::elf::SectionHeader as _,
};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Elf, ElfError, FileBytes, LE, SectionHeader, Symbol, is_mark};
use crate::arch::{Aarch64, Arch as _};

/// Bytes copied of one file: libjvm has 8 MiB of symbols and their names.
const MAX_COPY_BYTES: u64 = 64 << 20;
const TOO_LARGE: ElfError = ElfError::TooLarge { part: "symbols", limit: MAX_COPY_BYTES };
/// Whole symbols.
const STEP_BYTES: usize = 2730 * size_of::<Symbol>();

/// The copy, in a memory file.
#[derive(Debug)]
pub struct ElfImage {
    file: File,
    /// Whether it has any symbol table.
    pub has_symbols: bool,
    /// Whether it has Java methods and no symbols for them: what it exports has symbols, if anything.
    pub is_native_image_without_symbols: bool,
}

impl ElfImage {
    pub fn copy(source: &File) -> Result<Self, ElfError> {
        let elf = Elf::read(source)?;
        let file = File::from(memfd_create("elf symbols", MemfdFlags::CLOEXEC).map_err(io::Error::from)?);
        file.set_len(elf.bytes.size)?;
        let has_marks = elf.is_of(Aarch64::MACHINE);
        let mut copy = Copy { source: elf.bytes, target: &file, left: MAX_COPY_BYTES, has_marks };
        let has_symbols = copy.symbols(&elf.sections)?;
        // Last, and as they were checked: a table may claim the headers' place, and the
        // source may have changed since.
        file.write_all_at(bytes_of_slice(&elf.sections), elf.header.e_shoff.get(LE))?;
        file.write_all_at(bytes_of_slice(&elf.segments), elf.header.e_phoff.get(LE))?;
        file.write_all_at(bytes_of(&elf.header), 0)?;
        let has_own = elf.sections.iter().any(|section| section.sh_type(LE) == SHT_SYMTAB);
        let is_native_image_without_symbols = !has_own && elf.is_native_image();
        Ok(Self { file, has_symbols, is_native_image_without_symbols })
    }

    /// Path by which this process, and no other, can open the copy.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

struct Copy<'a> {
    source: FileBytes<'a>,
    target: &'a File,
    left: u64,
    /// Whether some symbols may be marks.
    has_marks: bool,
}

impl Copy<'_> {
    /// Copies symbol tables and strings. Returns whether there is any symbol table.
    fn symbols(&mut self, sections: &[SectionHeader]) -> Result<bool, ElfError> {
        let mut has_symbols = false;
        for section in sections {
            let kind = section.sh_type(LE);
            let is_plain = section.sh_flags(LE) & u64::from(SHF_COMPRESSED) == 0;
            if is_plain && matches!(kind, SHT_SYMTAB | SHT_STRTAB | SHT_DYNSYM) {
                let names = sections.get(section.link(LE).0).filter(|_| self.has_marks && kind == SHT_SYMTAB);
                let names = names.map_or(Ok(Vec::new()), |names| self.names(names))?;
                self.range(section.sh_offset(LE), section.sh_size(LE), &names)?;
                has_symbols |= kind != SHT_STRTAB;
            }
        }
        Ok(has_symbols)
    }

    /// They count as what is copied: a file may have many tables that share large names.
    fn names(&mut self, section: &SectionHeader) -> Result<Vec<u8>, ElfError> {
        let bytes = section.sh_size(LE);
        self.left = self.left.checked_sub(bytes).ok_or(TOO_LARGE)?;
        self.source.part(section.sh_offset(LE), bytes)
    }

    /// Hides marks among symbols whose names these are.
    fn range(&mut self, start: u64, length: u64, names: &[u8]) -> Result<(), ElfError> {
        let end = self.source.end_of(start, length)?;
        self.left = self.left.checked_sub(length).ok_or(TOO_LARGE)?;
        let mut buffer = vec![0; STEP_BYTES];
        let mut at = start;
        while at < end {
            let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            self.source.file.read_exact_at(&mut buffer[..step], at)?;
            if !names.is_empty() {
                hide_marks(&mut buffer[..step], names);
            }
            self.target.write_all_at(&buffer[..step], at)?;
            at += step as u64;
        }
        Ok(())
    }
}

/// Makes marks undefined. A symbolizer would take them for functions that are as long as there is no other symbol.
fn hide_marks(symbols: &mut [u8], names: &[u8]) {
    let count = symbols.len() / size_of::<Symbol>();
    let Ok((symbols, _)) = slice_from_bytes_mut::<Symbol>(symbols, count) else { return };
    let marks = symbols.iter_mut().filter(|symbol| is_mark(symbol, names));
    marks.for_each(|symbol| symbol.st_shndx.set(LE, SHN_UNDEF));
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use object::elf::{STT_FUNC, STT_NOTYPE};
    use proptest::prelude::*;

    use super::*;
    use crate::elf::Header;

    fn copy(bytes: &[u8]) -> Result<ElfImage, ElfError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        ElfImage::copy(&file)
    }

    fn own_header() -> Vec<u8> {
        let mut header = vec![0; size_of::<Header>()];
        File::open("/proc/self/exe").unwrap().read_exact(&mut header).unwrap();
        header
    }

    #[test]
    fn our_own_program_is_copied_without_its_code() {
        use std::os::unix::fs::MetadataExt as _;
        let source = File::open("/proc/self/exe").unwrap();
        let image = ElfImage::copy(&source).unwrap();
        assert!(image.has_symbols);
        let (copy, original) = (image.file.metadata().unwrap(), source.metadata().unwrap());
        assert_eq!(copy.len(), original.len());
        assert!(copy.blocks() < original.len() / 512);
    }

    #[test]
    fn marks_of_code_and_data_are_hidden_and_no_other_symbols() {
        let names = b"\0$x\0$d.7\0copy\0";
        let symbol = |name: u8, kind: u8| {
            let mut symbol = [0; size_of::<Symbol>()];
            (symbol[0], symbol[4], symbol[6]) = (name, kind, 13);
            symbol
        };
        let all = [symbol(1, STT_NOTYPE), symbol(4, STT_NOTYPE), symbol(9, STT_NOTYPE), symbol(1, STT_FUNC)];
        let mut symbols = all.concat();
        hide_marks(&mut symbols, names);
        let sections: Vec<u8> = symbols.chunks(size_of::<Symbol>()).map(|symbol| symbol[6]).collect();
        assert_eq!(sections, [0, 0, 13, 13]);
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(matches!(copy(b""), Err(ElfError::Malformed(_))));
        assert!(matches!(copy(&[0; 100]), Err(ElfError::Malformed(_))));
        // Headers that point beyond the end.
        assert!(matches!(copy(&own_header()), Err(ElfError::Malformed(_))));
        let mut narrow = own_header();
        narrow[4] = 1;
        assert!(matches!(copy(&narrow), Err(ElfError::Malformed(_))));
    }

    #[test]
    fn a_table_of_any_size_is_not_copied() {
        let mut bytes = own_header();
        bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
        bytes[56..58].copy_from_slice(&0u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&1u16.to_le_bytes());
        let mut section = [0; 64];
        section[4] = 2;
        section[32..40].copy_from_slice(&(1u64 << 40).to_le_bytes());
        bytes.extend_from_slice(&section);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        assert!(matches!(ElfImage::copy(&file), Err(ElfError::Malformed(_))));
        file.set_len(1 << 41).unwrap();
        assert!(matches!(ElfImage::copy(&file), Err(ElfError::TooLarge { .. } | ElfError::Read(_))));
    }

    proptest! {
        #[test]
        fn never_panics(changes in proptest::collection::vec((0usize..64, any::<u8>()), 0..8), tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = own_header();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes.extend_from_slice(&tail);
            let _ = copy(&bytes);
        }
    }
}
