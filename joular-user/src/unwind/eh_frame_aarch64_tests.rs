//! Compares rows of programs for aarch64 with readelf's interpretation of their tables.

use std::process::Command;

use super::*;
use crate::{
    arch::{Aarch64, aarch64_fixture},
    elf::Elf,
};

fn rows_of(name: &str) -> Vec<UnwindRow> {
    rows::<Aarch64>(&section::<Aarch64>(&Elf::read(&aarch64_fixture(name)).unwrap()).unwrap())
}

fn rule_at(rows: &[UnwindRow], address: u64) -> Option<Rule> {
    let after = rows.partition_point(|row| u64::from(row.address) <= address);
    rows.get(after.checked_sub(1)?).map(Rule::of)
}

/// One line of readelf's interpretation, e.g. `000000000000048c sp+32    c-16  c-32  c-24`.
fn of_readelf(columns: &[&str], line: &str) -> Option<(u64, Rule)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = fields.first().filter(|address| address.len() == 16)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let field = |name: &str| columns.iter().position(|column| *column == name).and_then(|at| fields.get(at)).copied();
    let words = |bytes: &str| bytes.parse::<i64>().unwrap() / 8;
    let (rule, bytes) = match field("CFA")?.split_once('+')? {
        ("sp", bytes) => (rule::SP, bytes),
        ("x29", bytes) => (rule::FP, bytes),
        _ => return None,
    };
    // Nothing is said of a register that still has its value.
    let saved = |name| field(name).and_then(|text| text.strip_prefix('c')).map(words);
    let (rule, words_below) = match (saved("ra"), saved("x29")) {
        (None, None) => (rule, 0),
        (Some(_), Some(pair)) => (rule, pair),
        (Some(return_at), None) if rule == rule::SP => (rule::SP_RETURN_ONLY, return_at),
        _ => return Some((address, Rule::UNSUPPORTED)),
    };
    let cfa_words = i16::try_from(words(bytes)).unwrap();
    let expected = match (i8::try_from(words_below), rule) {
        (Ok(fp_words), _) => Rule { rule, cfa_words, fp_words },
        (_, rule::SP) => {
            let fp_words = i8::try_from(i64::from(cfa_words) + words_below).unwrap();
            Rule { rule: rule::SP_PAIR, cfa_words, fp_words }
        }
        _ => Rule::UNSUPPORTED,
    };
    Some((address, expected))
}

#[test]
fn rows_say_what_readelf_says() {
    for name in ["plain.so", "signed.so", "without_frame_pointer.so"] {
        let path = format!("{}/../tests/fixtures/aarch64/{name}", env!("CARGO_MANIFEST_DIR"));
        let Ok(output) = Command::new("readelf").args(["--debug-dump=frames-interp", &path]).output() else {
            joular_tests::notes::skipped("there is no readelf");
            return;
        };
        let rows = rows_of(name);
        let text = String::from_utf8_lossy(&output.stdout);
        let (mut columns, mut compared, mut is_entry) = (Vec::new(), 0, false);
        for line in text.lines() {
            if line.contains(" FDE ") || line.contains(" CIE ") {
                is_entry = line.contains(" FDE ");
            } else if line.trim_start().starts_with("LOC") {
                columns = line.split_whitespace().collect();
            } else if is_entry && let Some((address, expected)) = of_readelf(&columns, line) {
                assert_eq!(rule_at(&rows, address), Some(expected), "{name} {line}");
                compared += 1;
            }
        }
        assert!(compared > 40, "{name}: {compared}");
    }
}

#[test]
fn each_shape_of_a_frame_is_there() {
    let has = |name: &str, is_it: fn(&UnwindRow) -> bool| rows_of(name).iter().any(is_it);
    for name in ["plain.so", "signed.so"] {
        assert!(has(name, |row| row.rule == rule::SP && row.fp_words == 0 && row.cfa_words > 0), "{name}: a leaf");
        assert!(has(name, |row| row.rule == rule::SP && row.fp_words < 0), "{name}: a pair");
        assert!(has(name, |row| row.rule == rule::FP && row.fp_words < 0), "{name}: of any size");
        assert!(has(name, |row| row.rule == rule::SP_PAIR && row.cfa_words > 8000), "{name}: 70000 bytes");
    }
    assert!(has("without_frame_pointer.so", |row| row.rule == rule::SP_RETURN_ONLY && row.fp_words < 0));
}

/// A table that says that return addresses are signed must be understood as one that does not.
#[test]
fn signed_return_addresses_change_no_rule() {
    // The signing instructions move functions, so that padding is elsewhere.
    let is_of_code = |row: &&UnwindRow| row.rule != rule::NONE;
    let rules = |name| {
        let mut rules: Vec<Rule> = rows_of(name).iter().filter(is_of_code).map(Rule::of).collect();
        rules.dedup();
        rules
    };
    assert_eq!(rules("plain.so"), rules("signed.so"));
}

/// An entry for two instructions, whose common part names this register as the return address's, with these instructions.
fn synthetic(return_address: u8, instructions: [u8; 7]) -> Section {
    let mut bytes = Vec::new();
    // Version 1, no augmentation, alignments 4 and -8; the frame address is `sp`.
    bytes.extend_from_slice(&12_u32.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 4, 0x78, return_address, 0x0c, 31, 0]);
    bytes.extend_from_slice(&27_u32.to_le_bytes());
    bytes.extend_from_slice(&20_u32.to_le_bytes());
    bytes.extend_from_slice(&0x1000_u64.to_le_bytes());
    bytes.extend_from_slice(&8_u64.to_le_bytes());
    bytes.extend_from_slice(&instructions);
    bytes.extend_from_slice(&[0; 4]);
    Section { address: 0, bytes }
}

#[test]
fn a_table_says_which_register_has_the_return_address() {
    let first = |section| rows::<Aarch64>(&section).first().map(Rule::of);
    // DW_CFA_undefined x30
    let outermost = [7, 30, 0, 0, 0, 0, 0];
    assert_eq!(first(synthetic(30, outermost)), Some(Rule::only(rule::ROOT)));
    assert_eq!(first(synthetic(15, outermost)), Some(Rule::sp(0)));
    // DW_CFA_AARCH64_negate_ra_state, DW_CFA_def_cfa_offset 16, DW_CFA_offset x30 -16
    let signed = [0x2d, 0x0e, 16, 0x9e, 2, 0, 0];
    let alone = Rule { rule: rule::SP_RETURN_ONLY, cfa_words: 2, fp_words: -2 };
    assert_eq!(first(synthetic(30, signed)), Some(alone));
}
