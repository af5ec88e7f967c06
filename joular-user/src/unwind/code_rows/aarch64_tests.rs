//! The same for aarch64. Each comment has the assembler's text of the words below it.

#![allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

use std::{collections::BTreeSet, io::Read as _};

use joular_ebpf::abi::{UnwindRow, rule};
use proptest::prelude::*;

use super::*;
use crate::{
    arch::{Aarch64, Flow},
    elf::Elf,
    unwind::eh_frame,
};

const SP: fn(i16, i8) -> Rule = |cfa_words, fp_words| Rule { rule: rule::SP, cfa_words, fp_words };
const FP: fn(i16, i8) -> Rule = |cfa_words, fp_words| Rule { rule: rule::FP, cfa_words, fp_words };

fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn rule_at(rows: &[UnwindRow], place: u32) -> Rule {
    Rule::of(&rows[rows.partition_point(|row| row.address <= place) - 1])
}

/// Checks the rules before each instruction of one function.
fn expect(words: &[u32], expected: &[Rule]) {
    let bytes = code(words);
    let called = vec![0..u32::try_from(bytes.len()).unwrap()];
    let rows = rows::<Aarch64>(&OwnCode { bytes, called, ..OwnCode::default() });
    let places = (0..u32::try_from(words.len()).unwrap()).map(|index| index * 4);
    let rules: Vec<Rule> = places.map(|place| rule_at(&rows, place)).collect();
    assert_eq!(rules, expected, "{words:08x?}");
}

#[test]
fn a_frame_with_the_pair_at_its_bottom_or_top() {
    // stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]; bl; ldp x29, x30, [sp], #32; ret
    let bottom = [0xa9be_7bfd, 0x9100_03fd, 0xf900_0bf3, 0x9400_0040, 0xa8c2_7bfd, 0xd65f_03c0];
    let frame = SP(4, -4);
    expect(&bottom, &[SP(0, 0), frame, frame, frame, frame, SP(0, 0)]);
    // sub sp, sp, #48; stp x29, x30, [sp, #32]; add x29, sp, #32; blr x8; ldp x29, x30, [sp, #32]; add sp, sp, #48; ret
    let top = [0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd, 0xd63f_0100, 0xa942_7bfd, 0x9100_c3ff, 0xd65f_03c0];
    let frame = SP(6, -2);
    expect(&top, &[SP(0, 0), SP(6, 0), frame, frame, frame, frame, SP(0, 0)]);
}

#[test]
fn a_leaf_that_moves_the_stack_pointer_keeps_the_return_address_in_its_register() {
    // sub sp, sp, #64; stp x19, x20, [sp]; eor w0, w1, w2; ldp x19, x20, [sp]; add sp, sp, #64; ret
    let leaf = [0xd101_03ff, 0xa900_53f3, 0x4a02_0020, 0xa940_53f3, 0x9101_03ff, 0xd65f_03c0];
    expect(&leaf, &[SP(0, 0), SP(8, 0), SP(8, 0), SP(8, 0), SP(8, 0), SP(0, 0)]);
    // mov x9, #0x2230; sub sp, sp, x9; stp x29, x30, [sp, #-16]!; ret
    let far = [0xd284_4609, 0xcb29_63ff, 0xa9bf_7bfd, 0xd65f_03c0];
    let pair = Rule { rule: rule::SP_PAIR, cfa_words: 0x448, fp_words: 0 };
    expect(&far, &[SP(0, 0), SP(0, 0), SP(0x446, 0), pair]);
}

#[test]
fn a_return_address_that_is_saved_alone() {
    // str x30, [sp, #-16]!; bl; ldr x30, [sp], #16; ret
    let alone = Rule { rule: rule::SP_RETURN_ONLY, cfa_words: 2, fp_words: -2 };
    expect(&[0xf81f_0ffe, 0x9400_0040, 0xf841_07fe, 0xd65f_03c0], &[SP(0, 0), alone, alone, SP(0, 0)]);
    // C1's unwind_exception: mov x3, x30; stp x30, x0, [sp, #-16]!; mov x0, x28; mov x1, x3; stp x8, x12, [sp, #-16]!; blr x8;
    // ldp x8, x12, [sp], #16; mov x1, x0; ldp x30, x0, [sp], #16; br x1
    let save = [0xaa1e_03e3, 0xa9bf_03fe, 0xaa1c_03e0, 0xaa03_03e1, 0xa9bf_33e8, 0xd63f_0100];
    let restore = [0xa8c1_33e8, 0xaa00_03e1, 0xa8c1_03fe, 0xd61f_0020];
    let calling = Rule { rule: rule::SP_RETURN_ONLY, cfa_words: 4, fp_words: -2 };
    expect(
        &[save.as_slice(), &restore].concat(),
        &[SP(0, 0), SP(0, 0), alone, alone, alone, calling, calling, alone, alone, SP(0, 0)],
    );
}

#[test]
fn a_lost_stack_pointer_is_counted_from_the_frame_pointer() {
    // paciasp; stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, x0; and sp, x9, #-16; mov sp, x29;
    // ldp x29, x30, [sp], #16; retaa
    let sized =
        [0xd503_233f, 0xa9bf_7bfd, 0x9100_03fd, 0xcb20_63ff, 0x927c_ed3f, 0x9100_03bf, 0xa8c1_7bfd, 0xd65f_0bff];
    let (by_sp, by_fp) = (SP(2, -2), FP(2, -2));
    expect(&sized, &[SP(0, 0), SP(0, 0), by_sp, by_sp, by_fp, by_fp, by_sp, SP(0, 0)]);
    // stp x29, x30, [sp, #-16]!; mov x29, sp; mov x9, sp; and sp, x9, #-64; ret
    let aligned = [0xa9bf_7bfd, 0x9100_03fd, 0x9100_03e9, 0x927a_e53f, 0xd65f_03c0];
    expect(&aligned, &[SP(0, 0), by_sp, by_sp, by_sp, by_fp]);
}

#[test]
fn a_lost_return_address_or_frame_pointer_gives_no_rule() {
    let lost = Rule::UNSUPPORTED;
    // mov x30, x1; ret
    expect(&[0xaa01_03fe, 0xd65f_03c0], &[SP(0, 0), lost]);
    // mov x29, x1; ret
    expect(&[0xaa01_03fd, 0xd65f_03c0], &[SP(0, 0), lost]);
    // mov x16, x30; bl; mov x30, x16; ret: a call may change x16
    expect(&[0xaa1e_03f0, 0x9400_0040, 0xaa10_03fe, 0xd65f_03c0], &[SP(0, 0), SP(0, 0), lost, lost]);
    // mov x19, x30; bl; mov x30, x19; ret: a row has no other registers
    expect(&[0xaa1e_03f3, 0x9400_0040, 0xaa13_03fe, 0xd65f_03c0], &[SP(0, 0), SP(0, 0), lost, SP(0, 0)]);
    // stp x29, x30, [sp, #-16]!; str xzr, [sp, #8]; ret: the saved one is overwritten
    expect(&[0xa9bf_7bfd, 0xf900_07ff, 0xd65f_03c0], &[SP(0, 0), SP(2, -2), SP(2, 0)]);
}

#[test]
fn vectors_on_the_stack_move_it_only() {
    // stp x29, x30, [sp, #-16]!; mov x29, sp; str q0, [sp, #-16]!; ldr q0, [sp], #16; ldp x29, x30, [sp], #16; ret
    let words = [0xa9bf_7bfd, 0x9100_03fd, 0x3c9f_0fe0, 0x3cc1_07e0, 0xa8c1_7bfd, 0xd65f_03c0];
    expect(&words, &[SP(0, 0), SP(2, -2), SP(2, -2), SP(4, -2), SP(2, -2), SP(0, 0)]);
}

#[test]
fn what_throws_the_frame_pointer_away_was_called_by_nobody() {
    // svc #0; cbz x0, 12; ret; mov x29, #0; ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0: the `clone` of musl
    let clone =
        [0xd400_0001, 0xb400_0040, 0xd65f_03c0, 0xd280_001d, 0xa8c1_03e1, 0xd63f_0020, 0xd280_0ba8, 0xd400_0001];
    let (called, root) = (SP(0, 0), Rule::only(rule::ROOT));
    expect(&clone, &[called, called, called, called, root, root, root, root]);
    // The same without mov x29, #0: it takes words from above its frame.
    let clone = [0xd400_0001, 0xb400_0040, 0xd65f_03c0, 0xa8c1_03e1, 0xd63f_0020, 0xd280_0ba8, 0xd400_0001];
    expect(&clone, &[called, called, called, called, root, root, root]);
}

#[test]
fn ways_that_meet_keep_what_they_have_in_common() {
    // cbz x0, 8; sub sp, sp, #16; ret: not the same depth
    expect(&[0xb400_0040, 0xd100_43ff, 0xd65f_03c0], &[SP(0, 0), SP(0, 0), Rule::UNSUPPORTED]);
    // cbz x0, 16; stp x29, x30, [sp, #-16]!; mov x29, sp; b 24; stp x29, x30, [sp, #-16]!; mov x29, sp;
    // ldp x29, x30, [sp], #16; ret
    let words =
        [0xb400_0080, 0xa9bf_7bfd, 0x9100_03fd, 0x1400_0003, 0xa9bf_7bfd, 0x9100_03fd, 0xa8c1_7bfd, 0xd65f_03c0];
    let frame = SP(2, -2);
    expect(&words, &[SP(0, 0), SP(0, 0), frame, frame, SP(0, 0), frame, frame, SP(0, 0)]);
}

/// Rules that code tells are those of the compiler's table, wherever both count from the same register.
#[test]
fn code_says_what_its_compiler_says() {
    for name in ["plain.so", "signed.so", "without_frame_pointer.so"] {
        let file = crate::arch::aarch64_fixture(name);
        let elf = Elf::read(&file).unwrap();
        let text = elf.section(".text", 1 << 20).unwrap().unwrap();
        let section = eh_frame::section::<Aarch64>(&elf).unwrap();
        let described = eh_frame::rows::<Aarch64>(&section);
        let (mut told, mut alike) = (0, 0);
        for function in eh_frame::functions::<Aarch64>(&section) {
            let place = |address: u32| usize::try_from(u64::from(address) - text.address).unwrap();
            for line in flow::lines::<Aarch64>(&text.bytes[place(function.start)..place(function.end)]) {
                for address in (function.start + line.start..function.start + line.end).step_by(4) {
                    let expected = rule_at(&described, address);
                    told += 1;
                    if line.rule.rule == expected.rule {
                        assert_eq!(line.rule, expected, "{name} {address:x}");
                        alike += 1;
                    }
                }
            }
        }
        assert!(told > 80 && alike * 10 > told * 8, "{name}: {alike} of {told}");
    }
}

/// Stubs of a JVM. Some keep a return address in its register while they have a frame.
#[test]
fn stubs_of_a_jvm_leave_the_stack_as_it_was() {
    let mut text = String::new();
    crate::arch::aarch64_fixture("stubs.txt").read_to_string(&mut text).unwrap();
    let mut stubs: Vec<(&str, Vec<u32>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("  "), stubs.last_mut()) {
            (Some(words), Some((_, stub))) => {
                stub.extend(words.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()));
            }
            _ => stubs.push((line, Vec::new())),
        }
    }
    let mut with_a_moved_stack_pointer = BTreeSet::new();
    for (name, words) in &stubs {
        let (bytes, mut returns) = (code(words), 0);
        for line in flow::lines::<Aarch64>(&bytes) {
            assert_ne!(line.rule, Rule::UNSUPPORTED, "{name}: {line:x?}");
            if line.rule.fp_words == 0 && line.rule.cfa_words > 0 {
                with_a_moved_stack_pointer.insert(*name);
            }
            let places = line.start as usize..line.end as usize;
            for instruction in Aarch64::instructions(&bytes[places], 0) {
                if Aarch64::step(&instruction).flow == Flow::Return {
                    assert_eq!(line.rule, Aarch64::AS_CALLED, "{name}: {line:x?}");
                    returns += 1;
                }
            }
        }
        assert!(returns > 0, "{name}");
    }
    assert!(stubs.len() > 5);
    let expected = ["sha256_implCompress", "sha512_implCompress", "string_indexof_linear_ll"];
    assert_eq!(with_a_moved_stack_pointer, BTreeSet::from(expected));
}

proptest! {
    #[test]
    fn any_code_is_survived(words: Vec<u32>) {
        let bytes = code(&words);
        let called = vec![0..u32::try_from(bytes.len()).unwrap()];
        let rows = rows::<Aarch64>(&OwnCode { bytes, called, ..OwnCode::default() });
        prop_assert!(rows.is_sorted_by(|one, other| one.address < other.address), "{rows:?}");
    }
}
