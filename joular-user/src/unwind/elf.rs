//! What unwinding needs of an ELF file: where its code goes in memory, and the
//! bytes of `.eh_frame`. Nothing is mapped (a target can cut its file short while
//! we look) and nothing is believed: every size is checked against the file's and
//! a bound.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use thiserror::Error;

use crate::symbols::elf_image::{u16_at, u32_at, u64_at};

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const MAX_SECTIONS: u16 = 4096;
const MAX_SEGMENTS: u16 = 256;
const MAX_NAMES_BYTES: u64 = 1 << 20;
/// libjvm has 2 MiB of it, a compiler or browser 10.
const MAX_EH_FRAME_BYTES: u64 = 12 << 20;

const X86_64: u16 = 62;
const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;
/// `SHT_NOBITS`: a section that has no bytes in the file, as in files of debug info.
const WITHOUT_BYTES: u32 = 8;
const PAGE_BYTES: u64 = 4096;

#[derive(Debug, Error)]
pub enum ElfError {
    #[error("reading an ELF file: {0}")]
    Read(#[from] io::Error),
    #[error("reading an ELF file: {0}")]
    Malformed(&'static str),
}

/// Code as the program headers place it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where in the file.
    pub offset: u64,
    pub bytes: u64,
    /// Where in memory, before the file is moved as a whole.
    pub address: u64,
}

impl Segment {
    /// What a mapping that shows the file from `offset` on at `start` adds to all
    /// addresses; `None` if it shows something else.
    fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // Mappings are of whole pages.
        let first = self.offset - self.offset % PAGE_BYTES;
        let end = self.offset.saturating_add(self.bytes);
        (first..end)
            .contains(&offset)
            .then(|| start.wrapping_sub(self.address.wrapping_add(offset).wrapping_sub(self.offset)))
    }
}

/// The bias of a mapping of a file with these segments.
pub fn bias(segments: &[Segment], start: u64, offset: u64) -> Option<u64> {
    segments.iter().find_map(|segment| segment.bias(start, offset))
}

/// `.eh_frame`, if the file has one.
#[derive(Debug, Default)]
pub struct Section {
    /// In memory, as [`Segment::address`].
    pub address: u64,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Elf {
    /// Those with code.
    pub segments: Vec<Segment>,
    pub eh_frame: Section,
}

impl Elf {
    pub fn read(file: &File) -> Result<Self, ElfError> {
        let size = file.metadata()?.len();
        let header = part(file, size, 0, HEADER_BYTES as u64)?;
        if !header.starts_with(b"\x7fELF\x02\x01") || u16_at(&header, 18) != X86_64 {
            return Err(ElfError::Malformed("it is not of this machine's architecture"));
        }
        let (segment_bytes, segments) = (u16_at(&header, 54), u16_at(&header, 56));
        let (section_bytes, sections) = (u16_at(&header, 58), u16_at(&header, 60));
        if segments > MAX_SEGMENTS || sections > MAX_SECTIONS {
            return Err(ElfError::Malformed("it has too many headers"));
        }
        if segments > 0 && usize::from(segment_bytes) != SEGMENT_BYTES
            || sections > 0 && usize::from(section_bytes) != SECTION_BYTES
        {
            return Err(ElfError::Malformed("its headers have an unknown size"));
        }
        let segments = part(file, size, u64_at(&header, 32), u64::from(segments) * SEGMENT_BYTES as u64)?;
        let sections = part(file, size, u64_at(&header, 40), u64::from(sections) * SECTION_BYTES as u64)?;
        let names = sections.chunks_exact(SECTION_BYTES).nth(usize::from(u16_at(&header, 62)));
        let names = names.map_or(Ok(Vec::new()), |names| {
            part(file, size, u64_at(names, 24), u64_at(names, 32).min(MAX_NAMES_BYTES))
        })?;
        let eh_frame = sections.chunks_exact(SECTION_BYTES).find(|section| {
            let name = usize::try_from(u32_at(section, 0)).ok().and_then(|at| names.get(at..));
            name.is_some_and(|name| name.starts_with(b".eh_frame\0")) && u32_at(section, 4) != WITHOUT_BYTES
        });
        let eh_frame = match eh_frame {
            Some(section) if u64_at(section, 32) > MAX_EH_FRAME_BYTES => {
                return Err(ElfError::Malformed("its .eh_frame is larger than what is read"));
            }
            Some(section) => Section {
                address: u64_at(section, 16),
                bytes: part(file, size, u64_at(section, 24), u64_at(section, 32))?,
            },
            None => Section::default(),
        };
        Ok(Self { segments: segments.chunks_exact(SEGMENT_BYTES).filter_map(code_segment).collect(), eh_frame })
    }
}

fn code_segment(header: &[u8]) -> Option<Segment> {
    let is_code = u32_at(header, 0) == LOADED && u32_at(header, 4) & EXECUTABLE != 0;
    is_code.then(|| Segment { offset: u64_at(header, 8), bytes: u64_at(header, 32), address: u64_at(header, 16) })
}

/// `length` is bounded by the caller.
fn part(file: &File, size: u64, start: u64, length: u64) -> Result<Vec<u8>, ElfError> {
    let beyond = ElfError::Malformed("a table lies beyond its end");
    if start.checked_add(length).is_none_or(|end| end > size) {
        return Err(beyond);
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| beyond)?];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Elf, ElfError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Elf::read(&file)
    }

    fn own() -> Vec<u8> {
        std::fs::read("/bin/true").unwrap()
    }

    #[test]
    fn a_program_has_code_and_a_table() {
        let elf = read(&own()).unwrap();
        assert_eq!(elf.segments.len(), 1);
        assert!(elf.eh_frame.bytes.len() > 100 && elf.eh_frame.address > 0);
    }

    #[test]
    fn a_mapping_of_whole_pages_has_the_bias_of_its_segment() {
        let segments = [
            Segment { offset: 0x1234, bytes: 0x2000, address: 0x40_1234 },
            Segment { offset: 0x5010, bytes: 0x1000, address: 0x6010 },
        ];
        for (start, offset, expected) in [
            (0x40_1000, 0x1000, Some(0)),
            // Its second page, mapped apart since its protection was changed.
            (0x7f00_0000_3000, 0x3000, Some(0x7eff_ffc0_0000)),
            (0x7f00_0000_6000, 0x5000, Some(0x7f00_0000_0000)),
            (0x7f00_0000_0000, 0x4000, None),
        ] {
            assert_eq!(bias(&segments, start, offset), expected, "{start:#x} {offset:#x}");
        }
    }

    #[test]
    fn what_is_no_file_of_this_machine_is_refused() {
        assert!(matches!(read(b"\x7fELF"), Err(ElfError::Malformed(_))));
        assert!(matches!(read(&[0; 100]), Err(ElfError::Malformed(_))));
        assert!(matches!(read(&own()[..1000]), Err(ElfError::Malformed(_))), "sections beyond its end");
        let mut foreign = own();
        foreign[18] = 183;
        assert!(matches!(read(&foreign), Err(ElfError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn never_panics(changes in proptest::collection::vec((0usize..64, any::<u8>()), 0..6), headers in proptest::collection::vec((0usize..1792, any::<u8>()), 0..9)) {
            let mut bytes = own();
            let end = bytes.len();
            for (at, byte) in headers {
                // Section headers stand at the end.
                bytes[end - 1 - at] = byte;
            }
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let _ = read(&bytes);
        }
    }
}
