use std::io::Write as _;

use object::{U32, U64, elf::SHT_STRTAB};
use proptest::prelude::*;

use super::*;

pub(super) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn own() -> Vec<u8> {
    std::fs::read("/bin/true").unwrap()
}

/// A section of this kind, which comes `start` bytes after the headers.
pub(super) fn section(kind: u32, start: u64, size: u64, link: u32) -> SectionHeader {
    let mut header = *pod::from_bytes::<SectionHeader>(&[0; size_of::<SectionHeader>()]).unwrap().0;
    header.sh_type = U32::new(LE, kind);
    header.sh_offset = U64::new(LE, start);
    header.sh_size = U64::new(LE, size);
    header.sh_link = U32::new(LE, link);
    header
}

/// A file of these sections and no segments; offsets count from the end of the headers.
fn with_sections(sections: &[SectionHeader], contents: &[u8]) -> Vec<u8> {
    let mut bytes = own()[..size_of::<Header>()].to_vec();
    let (header, _) = pod::from_bytes_mut::<Header>(&mut bytes).unwrap();
    header.e_phnum.set(LE, 0);
    header.e_shoff.set(LE, size_of::<Header>() as u64);
    header.e_shnum.set(LE, u16::try_from(sections.len()).unwrap());
    let headers = (size_of::<Header>() + size_of_val(sections)) as u64;
    for section in sections {
        let mut section = *section;
        section.sh_offset = U64::new(LE, headers + section.sh_offset(LE));
        bytes.extend_from_slice(pod::bytes_of(&section));
    }
    bytes.extend_from_slice(contents);
    bytes
}

/// A file of sections with names, and of one segment with code: its address, offset and size.
pub(super) fn with_section_names(
    sections: &[(&str, SectionHeader)],
    contents: &[u8],
    (address, offset, bytes): (u64, u64, u64),
) -> Vec<u8> {
    let (mut names, mut headers) = (vec![0], Vec::new());
    for (name, header) in sections {
        let mut header = *header;
        header.sh_name = U32::new(LE, u32::try_from(names.len()).unwrap());
        names.extend(name.as_bytes());
        names.push(0);
        headers.push(header);
    }
    headers.push(section(SHT_STRTAB, contents.len() as u64, names.len() as u64, 0));
    let mut file = with_sections(&headers, &[contents, &names].concat());
    let mut segment = *pod::from_bytes::<SegmentHeader>(&[0; size_of::<SegmentHeader>()]).unwrap().0;
    segment.p_type = U32::new(LE, PT_LOAD);
    segment.p_flags = U32::new(LE, PF_X);
    segment.p_vaddr = U64::new(LE, address);
    segment.p_offset = U64::new(LE, offset);
    segment.p_filesz = U64::new(LE, bytes);
    let at = file.len() as u64;
    file.extend_from_slice(pod::bytes_of(&segment));
    let (header, _) = pod::from_bytes_mut::<Header>(&mut file).unwrap();
    header.e_phoff.set(LE, at);
    header.e_phnum.set(LE, 1);
    header.e_shstrndx.set(LE, u16::try_from(sections.len()).unwrap());
    file
}

/// Asks for everything. What there is, is within the bounds.
fn ask(file: &File) {
    const LIMIT: u64 = 1 << 16;
    let Ok(elf) = Elf::read(file) else { return };
    assert!(elf.code().count() <= usize::from(MAX_SEGMENTS));
    for name in ["", ".eh_frame", ".rodata"] {
        if let Ok(Some(section)) = elf.section(name, LIMIT) {
            assert!(section.bytes.len() as u64 <= LIMIT);
        }
    }
    if let Ok(symbols) = elf.dynamic_symbols() {
        assert!(symbols.iter().all(|(name, _)| (name.len() as u64) < MAX_NAME_BYTES));
    }
    if let Ok(Some(symbols)) = elf.static_symbols() {
        symbols.addresses([b"", b"main"]);
        symbols.functions().count();
    }
    let _ = elf.static_probes("hotspot", "gc__begin");
    let _ = elf.function_starts();
}

#[test]
fn a_program_has_code_and_a_table() {
    let file = file(&own());
    let elf = Elf::read(&file).unwrap();
    assert_eq!(elf.code().count(), 1);
    let eh_frame = elf.section(".eh_frame", 1 << 20).unwrap().unwrap();
    assert!(eh_frame.bytes.len() > 100 && eh_frame.address > 0);
    assert!(elf.section(".eh_fram", 1 << 20).unwrap().is_none());
    assert!(matches!(elf.section(".eh_frame", 100), Err(ElfError::TooLarge { part: ".eh_frame", limit: 100 })));
}

#[test]
fn a_program_says_where_its_functions_begin() {
    let own = File::open("/proc/self/exe").unwrap();
    let elf = Elf::read(&own).unwrap();
    let starts = elf.function_starts().unwrap();
    assert!(starts.is_sorted());
    let functions = functions_of(&elf);
    let listed = functions.iter().filter(|function| starts.binary_search(function).is_ok()).count();
    // A few are of assembly without such information.
    assert!(listed * 100 > functions.len() * 95 && functions.len() > 1000, "{listed} of {}", functions.len());
    let without = file(&with_sections(&[section(SHT_STRTAB, 0, 1, 0)], &[0]));
    assert!(Elf::read(&without).unwrap().function_starts().unwrap().is_empty());
}

fn functions_of(elf: &Elf<'_>) -> Vec<u64> {
    let code = elf.section_range(".text").unwrap();
    elf.static_symbols().unwrap().unwrap().functions().filter(|function| code.contains(function)).collect()
}

#[test]
fn a_program_imports_symbols() {
    let file = file(&own());
    let symbols = Elf::read(&file).unwrap().dynamic_symbols().unwrap();
    assert!(symbols.iter().any(|(name, address)| name == b"__libc_start_main" && address == 0));
}

#[test]
fn what_is_no_file_of_this_machine_is_refused() {
    let error = |bytes: &[u8]| Elf::read(&file(bytes)).map(|_| ()).unwrap_err();
    assert!(matches!(error(b"\x7fELF"), ElfError::Malformed(_)));
    assert!(matches!(error(&[0; 100]), ElfError::Malformed(_)));
    assert!(matches!(error(&own()[..1000]), ElfError::Malformed(_)), "sections beyond its end");
    for (at, byte) in [(4, 1), (5, 2)] {
        let mut foreign = own();
        foreign[at] = byte;
        assert!(matches!(error(&foreign), ElfError::Malformed(_)), "narrow, or big-endian");
    }
    let mut foreign = own();
    foreign[18] = 243;
    assert!(!Elf::read(&file(&foreign)).unwrap().is_of_this_machine());
    assert!(Elf::read(&file(&own())).unwrap().is_of_this_machine());
}

#[test]
fn headers_of_another_size_or_too_many_are_refused() {
    for (at, value) in [(54, 57u16), (58, 65), (56, MAX_SEGMENTS + 1), (60, MAX_SECTIONS + 1)] {
        let mut bytes = own();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(Elf::read(&file(&bytes)), Err(ElfError::Malformed(_))), "{at}");
    }
}

#[test]
fn a_section_of_any_size_is_not_read() {
    let mut huge = section(object::elf::SHT_PROGBITS, 0, 1 << 40, 0);
    huge.sh_flags = U64::new(LE, u64::from(SHF_ALLOC));
    let names = section(object::elf::SHT_STRTAB, 0, 1, 0);
    let mut bytes = with_sections(&[names, huge], &[0]);
    // Section names are in the first.
    bytes[62..64].copy_from_slice(&[0, 0]);
    let file = file(&bytes);
    assert!(matches!(Elf::read(&file).unwrap().section("", u64::MAX), Err(ElfError::Malformed(_))));
    file.set_len(1 << 41).unwrap();
    assert!(matches!(Elf::read(&file).unwrap().section("", 1 << 20), Err(ElfError::TooLarge { .. })));
    let symbols = section(SHT_DYNSYM, 0, 1 << 40, 0);
    let bytes = with_sections(&[symbols], &[]);
    file.write_all_at(&bytes, 0).unwrap();
    assert!(matches!(Elf::read(&file).unwrap().dynamic_symbols(), Err(ElfError::TooLarge { .. })));
}

#[test]
fn names_are_bounded() {
    let mut names = vec![b'x'; 1 << 10];
    let at = u32::try_from(names.len()).unwrap() - 4;
    let long = u32::try_from(names.len()).unwrap() - u32::try_from(MAX_NAME_BYTES).unwrap();
    names.extend_from_slice(b"\0end");
    let ends = [0, long, long + 1, at, at + 5, u32::MAX];
    let symbols: Vec<u8> = ends
        .iter()
        .flat_map(|&name| {
            let symbol =
                Symbol { st_name: U32::new(LE, name), st_value: U64::new(LE, name.into()), ..Symbol::default() };
            pod::bytes_of(&symbol).to_vec()
        })
        .collect();
    let sections = [
        section(SHT_DYNSYM, 0, symbols.len() as u64, 1),
        section(object::elf::SHT_STRTAB, symbols.len() as u64, names.len() as u64, 0),
    ];
    let file = file(&with_sections(&sections, &[symbols, names].concat()));
    let symbols = Elf::read(&file).unwrap().dynamic_symbols().unwrap();
    let found: Vec<_> = symbols.iter().map(|(name, address)| (name.len(), address)).collect();
    assert_eq!(found, [(255, u64::from(long) + 1), (4, at.into())]);
}

#[test]
fn many_symbols_of_one_endless_name_are_left_out() {
    let count = MAX_DYNAMIC_BYTES / size_of::<Symbol>() as u64;
    let size = count * size_of::<Symbol>() as u64;
    // Symbols of zeros: all have the name at 0.
    let sections = [section(SHT_DYNSYM, 0, size, 1), section(object::elf::SHT_STRTAB, size, MAX_DYNAMIC_BYTES, 0)];
    let contents = [vec![0; usize::try_from(size).unwrap()], vec![b'x'; usize::try_from(MAX_DYNAMIC_BYTES).unwrap()]];
    let file = file(&with_sections(&sections, &contents.concat()));
    let symbols = Elf::read(&file).unwrap().dynamic_symbols().unwrap();
    assert_eq!(symbols.iter().count(), 0);
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
        ask(&file(&bytes));
    }

    /// Half of the files begin as one of this machine, so that more of them is read.
    #[test]
    fn never_panics_on_any_bytes(begins in any::<bool>(), mut bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let header = &own()[..20];
        if begins && bytes.len() >= header.len() {
            bytes[..header.len()].copy_from_slice(header);
        }
        ask(&file(&bytes));
    }
}
