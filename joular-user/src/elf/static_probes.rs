//! Reads the notes of static probes (USDT): where a program can be probed, and where its arguments are there.
//!
//! Each is a note of type 3 by `stapsdt`: the address of an instruction without effect, the address that the section
//! `.stapsdt.base` had when the note was made, the address of a counter, and three texts (provider, name, arguments).
//! The format is of SystemTap: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>.

use object::read::elf::NoteIterator;

use super::{Elf, ElfError, Header, LE};

const NOTES: &str = ".note.stapsdt";
const BASE: &str = ".stapsdt.base";
const OWNER: &[u8] = b"stapsdt";
const NOTE_TYPE: u32 = 3;
/// libjvm has 530 probes with 60 KiB of notes.
const MAX_NOTES_BYTES: u64 = 4 << 20;

/// One place of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticProbe {
    /// Offset of the instruction in the file.
    pub offset: u64,
    /// As the assembler writes operands, each after its size: `8@%rax -4@$3`.
    pub arguments: String,
}

impl Elf<'_> {
    /// All places of a probe. Those that a program uses a counter for are left out: without one who counts there, they
    /// are not reached.
    pub fn static_probes(&self, provider: &str, name: &str) -> Result<Vec<StaticProbe>, ElfError> {
        let Some(notes) = self.unloaded_section(NOTES, MAX_NOTES_BYTES)? else { return Ok(Vec::new()) };
        let base = self.section_range(BASE)?.start;
        let malformed = |_| ElfError::Malformed("its notes cannot be read");
        let mut notes = NoteIterator::<Header>::new(LE, 4_u64, &notes).map_err(malformed)?;
        let mut probes = Vec::new();
        while let Some(note) = notes.next().map_err(malformed)? {
            if note.name() != OWNER || note.n_type(LE) != NOTE_TYPE {
                continue;
            }
            let Some(described) = Described::parse(note.desc()) else { continue };
            if described.provider != provider || described.name != name || described.counter != 0 {
                continue;
            }
            // The file may have been moved as a whole since the note was made.
            let moved = if base == 0 { 0 } else { base.wrapping_sub(described.base) };
            if let Some(offset) = self.offset_of(described.address.wrapping_add(moved)) {
                probes.push(StaticProbe { offset, arguments: described.arguments.to_owned() });
            }
        }
        Ok(probes)
    }

    /// Where code is in the file.
    fn offset_of(&self, address: u64) -> Option<u64> {
        self.code().find_map(|segment| {
            let from_start = address.checked_sub(segment.address).filter(|from_start| *from_start < segment.bytes)?;
            segment.offset.checked_add(from_start)
        })
    }
}

/// What a note says.
struct Described<'a> {
    address: u64,
    base: u64,
    counter: u64,
    provider: &'a str,
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Described<'a> {
    fn parse(note: &'a [u8]) -> Option<Self> {
        let (words, texts) = note.split_at_checked(24)?;
        let word = |index: usize| {
            let bytes = words.get(8 * index..8 * index + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let mut texts = texts.split(|byte| *byte == 0).map(std::str::from_utf8);
        let mut text = || texts.next()?.ok();
        Some(Self {
            address: word(0)?,
            base: word(1)?,
            counter: word(2)?,
            provider: text()?,
            name: text()?,
            arguments: text()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::{file, section, with_section_names};
    use object::elf::SHT_NOTE;

    fn note(provider: &str, name: &str, counter: u64, arguments: &str) -> Vec<u8> {
        let mut desc = Vec::new();
        for word in [0x1234_u64, 0, counter] {
            desc.extend(word.to_le_bytes());
        }
        for text in [provider, name, arguments] {
            desc.extend(text.as_bytes());
            desc.push(0);
        }
        let mut note = Vec::new();
        for word in [8, u32::try_from(desc.len()).unwrap(), NOTE_TYPE] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"stapsdt\0");
        note.extend(&desc);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    /// A file with these notes, whose code is at 0x1000 and has its bytes at offset 0x400.
    fn probes(notes: &[Vec<u8>]) -> Vec<StaticProbe> {
        let contents = notes.concat();
        let header = section(SHT_NOTE, 0, contents.len() as u64, 0);
        let file = file(&with_section_names(&[(NOTES, header)], &contents, (0x1000, 0x400, 0x1000)));
        Elf::read(&file).unwrap().static_probes("hotspot", "gc__begin").unwrap()
    }

    #[test]
    fn probes_are_found_by_provider_and_name() {
        let notes = [
            note("hotspot", "gc__end", 0, ""),
            note("hotspot", "gc__begin", 0, "1@$1"),
            note("other", "gc__begin", 0, ""),
            note("hotspot", "gc__begin", 0x99, "needs a counter"),
            note("hotspot", "gc__begin", 0, "8@%r13 8@-88(%rbp)"),
        ];
        let found = probes(&notes);
        let expected = ["1@$1", "8@%r13 8@-88(%rbp)"];
        assert_eq!(found, expected.map(|text| StaticProbe { offset: 0x634, arguments: text.to_owned() }));
    }

    #[test]
    fn damaged_notes_are_passed_over() {
        let mut short = note("hotspot", "gc__begin", 0, "1@$1");
        short[4] = 10;
        short.truncate(12 + 8 + 12);
        assert_eq!(probes(&[short, note("hotspot", "gc__begin", 0, "")]).len(), 1);
    }
}
