//! A private copy of what a symbolizer needs of an ELF file.
//!
//! Symbolizers map the file into memory. A target can cut its own file short
//! while we read it, and the next access would end the profiler with SIGBUS;
//! and it can claim tables of any size. So the headers, the symbol tables and
//! their strings are copied, with bounds, into a memory file that nobody else
//! can reach; everything between stays a hole that costs nothing.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::PathBuf,
};

use rustix::fs::{MemfdFlags, memfd_create};
use thiserror::Error;

/// Copied of one file: libjvm has 8 MiB of symbols and their names.
const MAX_COPY_BYTES: u64 = 64 << 20;
const MAX_SECTIONS: u16 = 4096;
const MAX_SEGMENTS: u16 = 1024;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: u16 = 64;
const SEGMENT_BYTES: u16 = 56;

const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_DYNSYM: u32 = 11;
const SHF_COMPRESSED: u64 = 1 << 11;

#[derive(Debug, Error)]
pub enum ElfImageError {
    #[error("reading an ELF file: {0}")]
    Read(#[from] io::Error),
    #[error("reading an ELF file: {0}")]
    Malformed(&'static str),
    #[error("reading an ELF file: its symbols exceed the {MAX_COPY_BYTES} bytes that are read")]
    TooLarge,
}

/// The copy, in a memory file.
#[derive(Debug)]
pub struct ElfImage {
    file: File,
    /// Whether it has any symbol table.
    pub has_symbols: bool,
}

impl ElfImage {
    pub fn copy(source: &File) -> Result<Self, ElfImageError> {
        let size = source.metadata()?.len();
        let file = File::from(memfd_create("elf symbols", MemfdFlags::CLOEXEC).map_err(io::Error::from)?);
        file.set_len(size)?;
        let mut copy = Copy { source, target: &file, size, left: MAX_COPY_BYTES };
        let has_symbols = copy.all()?;
        Ok(Self { file, has_symbols })
    }

    /// Path by which this process, and no other, can open the copy.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

struct Copy<'a> {
    source: &'a File,
    target: &'a File,
    size: u64,
    left: u64,
}

impl Copy<'_> {
    fn all(&mut self) -> Result<bool, ElfImageError> {
        let mut header = [0; HEADER_BYTES];
        self.source.read_exact_at(&mut header, 0)?;
        self.range(0, HEADER_BYTES as u64)?;
        if !header.starts_with(b"\x7fELF") {
            return Err(ElfImageError::Malformed("it does not begin as one"));
        }
        if header[4..6] != [2, 1] {
            return Err(ElfImageError::Malformed("it is not 64-bit little-endian"));
        }
        let (segments_at, sections_at) = (u64_at(&header, 32), u64_at(&header, 40));
        let (segment_size, segments) = (u16_at(&header, 54), u16_at(&header, 56));
        let (section_size, sections) = (u16_at(&header, 58), u16_at(&header, 60));
        if segments > MAX_SEGMENTS || sections > MAX_SECTIONS {
            return Err(ElfImageError::Malformed("it has too many headers"));
        }
        if segments > 0 && segment_size != SEGMENT_BYTES || sections > 0 && section_size != SECTION_BYTES {
            return Err(ElfImageError::Malformed("its headers have an unknown size"));
        }
        self.range(segments_at, u64::from(segments) * u64::from(SEGMENT_BYTES))?;
        self.range(sections_at, u64::from(sections) * u64::from(SECTION_BYTES))?;
        let mut has_symbols = false;
        for index in 0..u64::from(sections) {
            let mut section = [0; SECTION_BYTES as usize];
            // From the copy: the source may have changed since.
            self.target.read_exact_at(&mut section, sections_at + index * u64::from(SECTION_BYTES))?;
            let kind = u32_at(&section, 4);
            let is_plain = u64_at(&section, 8) & SHF_COMPRESSED == 0;
            if is_plain && matches!(kind, SHT_SYMTAB | SHT_STRTAB | SHT_DYNSYM) {
                self.range(u64_at(&section, 24), u64_at(&section, 32))?;
                has_symbols |= kind != SHT_STRTAB;
            }
        }
        Ok(has_symbols)
    }

    fn range(&mut self, start: u64, length: u64) -> Result<(), ElfImageError> {
        let end = start.checked_add(length).filter(|&end| end <= self.size);
        let end = end.ok_or(ElfImageError::Malformed("a table lies beyond its end"))?;
        self.left = self.left.checked_sub(length).ok_or(ElfImageError::TooLarge)?;
        let mut buffer = vec![0; 64 << 10];
        let mut at = start;
        while at < end {
            let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            self.source.read_exact_at(&mut buffer[..step], at)?;
            self.target.write_all_at(&buffer[..step], at)?;
            at += step as u64;
        }
        Ok(())
    }
}

/// Little-endian; 0 beyond the end.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |part| u16::from_le_bytes([part[0], part[1]]))
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn copy(bytes: &[u8]) -> Result<ElfImage, ElfImageError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        ElfImage::copy(&file)
    }

    fn own_header() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()[..HEADER_BYTES].to_vec()
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
    fn what_is_no_elf_file_is_refused() {
        assert!(matches!(copy(b""), Err(ElfImageError::Read(_))));
        assert!(matches!(copy(&[0; 100]), Err(ElfImageError::Malformed(_))));
        // Headers that point beyond the end.
        assert!(matches!(copy(&own_header()), Err(ElfImageError::Malformed(_))));
        let mut narrow = own_header();
        narrow[4] = 1;
        assert!(matches!(copy(&narrow), Err(ElfImageError::Malformed(_))));
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
        assert!(matches!(ElfImage::copy(&file), Err(ElfImageError::Malformed(_))));
        file.set_len(1 << 41).unwrap();
        assert!(matches!(ElfImage::copy(&file), Err(ElfImageError::TooLarge | ElfImageError::Read(_))));
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
