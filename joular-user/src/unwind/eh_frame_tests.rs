use std::{fs::File, io::Write as _, process::Command};

use proptest::prelude::*;

use super::*;
use crate::arch::X86_64;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

fn section(path: &str) -> Section {
    super::section::<X86_64>(&Elf::read(&File::open(path).unwrap()).unwrap()).unwrap()
}

/// As the kernel side looks it up.
fn find(rows: &[UnwindRow], address: u64) -> Option<Rule> {
    let after = rows.partition_point(|row| u64::from(row.address) <= address);
    let row = rows.get(after.checked_sub(1)?)?;
    Some(Rule { rule: row.rule, cfa_words: row.cfa_words, fp_words: row.fp_words })
}

/// One line of readelf's interpretation, e.g.
/// `000000000002724a rsp+16   u     c-16  u     c-8`.
fn of_readelf(columns: &[&str], line: &str) -> Option<(u64, Rule)> {
    // Registers kept in others have their names twice: `r10 (r10)`.
    let line = line.replace(" (", "(");
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = fields.first().filter(|address| address.len() == 16)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let field = |name: &str| columns.iter().position(|column| *column == name).and_then(|at| fields.get(at)).copied();
    let words = |text: &str| text.parse::<i64>().ok().map(|bytes| bytes / 8);
    let (cfa, ra) = (field("CFA")?, field("ra")?);
    let fp = match field("rbp") {
        None | Some("u" | "s") => Some(0),
        Some(text) => text.strip_prefix('c').and_then(words),
    };
    let base = cfa.strip_prefix("rsp").map(|rest| (rule::SP, rest));
    let base = base.or_else(|| cfa.strip_prefix("rbp").map(|rest| (rule::FP, rest)));
    let rule = match (ra, base, fp) {
        ("u", ..) => Rule::only(rule::ROOT),
        ("c-8", Some((rule, offset)), Some(fp)) => {
            Rule { rule, cfa_words: words(offset).unwrap().try_into().unwrap(), fp_words: fp.try_into().unwrap() }
        }
        _ => Rule::only(rule::UNSUPPORTED),
    };
    Some((address, rule))
}

#[test]
fn rows_say_what_readelf_says() {
    for path in [LIBC, "/lib64/ld-linux-x86-64.so.2", "/bin/true"] {
        let Ok(output) = Command::new("readelf").args(["--debug-dump=frames-interp", path]).output() else {
            joular_tests::notes::skipped("there is no readelf");
            return;
        };
        let rows = rows::<X86_64>(&section(path));
        let (mut columns, mut compared, mut is_special) = (Vec::new(), 0, false);
        let (text, mut entries) = (String::from_utf8_lossy(&output.stdout), Vec::new());
        for line in text.lines() {
            if line.contains(" FDE ") {
                let range = line.split("pc=").nth(1).and_then(|range| range.split_once("..")).unwrap();
                let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
                entries.push(number(range.0)..number(range.1));
                is_special = false;
            } else if line.contains(" CIE ") {
                is_special = true;
            } else if line.trim_start().starts_with("LOC") {
                columns = line.split_whitespace().collect();
            } else if !is_special && let Some((address, expected)) = of_readelf(&columns, line) {
                let got = find(&rows, address);
                let is_expression = line.contains("exp");
                let recognised = got.is_some_and(|got| matches!(got.rule, rule::PLT | rule::SIGNAL));
                assert!(got == Some(expected) || is_expression && recognised, "{path} {line}: {got:?} {expected:?}");
                compared += 1;
            }
        }
        assert!(compared > 50, "{path}: {compared}");
        // Between entries there is no rule, unless it is padding.
        entries.sort_by_key(|range| range.start);
        for pair in entries.windows(2).filter(|pair| pair[0].end + 16 <= pair[1].start) {
            assert_eq!(find(&rows, pair[0].end), Some(Rule::only(rule::NONE)), "{path} {pair:x?}");
        }
        assert!(rows.is_sorted_by_key(|row| row.address), "{path}");
    }
}

#[test]
fn the_c_library_has_every_kind_of_rule() {
    let rows = rows::<X86_64>(&section(LIBC));
    for rule in [rule::NONE, rule::SP, rule::FP, rule::ROOT, rule::SIGNAL, rule::PLT] {
        assert!(rows.iter().any(|row| row.rule == rule), "{rule}");
    }
    let unsupported = rows.iter().filter(|row| row.rule == rule::UNSUPPORTED).count();
    assert!(unsupported * 50 < rows.len(), "{unsupported} of {}", rows.len());
}

#[test]
fn a_linkage_table_that_pushes_elsewhere_is_written_out() {
    let mut rows = Rows::of::<X86_64>();
    assert_eq!(push_plt(&mut rows, 0x1010, 0x1030, 9), 2);
    let expected = [(0x1010, 1), (0x1019, 2), (0x1020, 1), (0x1029, 2)];
    rows.end = 0x1030;
    let rows = rows.finish();
    assert_eq!(rows.iter().map(|row| (row.address, row.cfa_words)).take(4).collect::<Vec<_>>(), expected);
}

/// An entry with a common preamble of `preamble` bytes, and `count` entries for
/// one byte of code each.
fn synthetic(preamble: usize, count: u32) -> Section {
    let mut bytes = Vec::new();
    // Version 1, no augmentation, alignments 1 and -8, return address in 16,
    // then `DW_CFA_nop`s.
    let cie_bytes = 4 + 5 + preamble;
    bytes.extend_from_slice(&u32::try_from(cie_bytes).unwrap().to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 1, 0x78, 16]);
    bytes.resize(bytes.len() + preamble, 0);
    for index in 0..u64::from(count) {
        bytes.extend_from_slice(&20_u32.to_le_bytes());
        let back = u32::try_from(bytes.len()).unwrap();
        bytes.extend_from_slice(&back.to_le_bytes());
        bytes.extend_from_slice(&(0x1001 + index * 2).to_le_bytes());
        bytes.extend_from_slice(&1_u64.to_le_bytes());
    }
    bytes.extend_from_slice(&[0; 4]);
    Section { address: 0, bytes }
}

#[test]
fn a_table_for_another_machine_is_refused() {
    let mut foreign = std::fs::read("/bin/true").unwrap();
    foreign[18] = 183;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&foreign).unwrap();
    assert!(super::section::<X86_64>(&Elf::read(&file).unwrap()).is_err());
}

#[test]
fn work_is_bounded_however_often_a_preamble_is_shared() {
    assert_eq!(rows::<X86_64>(&synthetic(10, 1000)).len(), 2000, "a row and a gap each");
    // A megabyte run ten thousand times would take minutes.
    let rows = rows::<X86_64>(&synthetic(1 << 20, 10_000));
    assert!((100..200).contains(&rows.len()), "{}", rows.len());
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), address: u64) {
        let _ = rows::<X86_64>(&Section { address, bytes });
    }

    #[test]
    fn never_panics_on_nearly_right_bytes(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let mut section = section("/bin/true");
        for (at, byte) in changes {
            let at = at.index(section.bytes.len());
            section.bytes[at] = byte;
        }
        let rows = rows::<X86_64>(&section);
        prop_assert!(rows.is_sorted_by_key(|row| row.address));
    }
}
