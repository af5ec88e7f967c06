//! An ELF file of a target → rows: sorted, bounded, and nothing else.
//!
//! Half of the input is a file; the other half is the section itself.

use std::{fs::File, io::Write as _};

use joular_user::{
    arch::{Aarch64, Arch, X86_64},
    elf::{Elf, Section},
    unwind::eh_frame::{self, MAX_ROWS},
};

pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let section = if kind % 2 == 0 {
        Section { address: u64::from(*kind) << 12, bytes: bytes.to_vec() }
    } else {
        let file = rustix::fs::memfd_create("elf", rustix::fs::MemfdFlags::CLOEXEC).expect("a file in memory");
        let mut file = File::from(file);
        file.write_all(bytes).expect("writing to memory");
        match Elf::read(&file).and_then(|elf| eh_frame::section::<X86_64>(&elf)) {
            Ok(section) => section,
            Err(_) => return,
        }
    };
    check::<X86_64>(&section);
    check::<Aarch64>(&section);
}

fn check<A: Arch>(section: &Section) {
    let rows = eh_frame::rows::<A>(section);
    assert!(rows.len() <= MAX_ROWS);
    assert!(rows.is_sorted_by_key(|row| row.address), "a binary search finds them");
}
