//! Compares rows with what plain code does, and with what compilers say of theirs.

#![allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

use std::{fs::File, ops::Range};

use joular_ebpf::abi::{UnwindRow, rule};
use proptest::prelude::*;

use super::*;
use crate::{arch::X86_64, elf::Elf, unwind::eh_frame};

const SP: fn(i16, i8) -> Rule = |cfa_words, fp_words| Rule { rule: rule::SP, cfa_words, fp_words };

fn rows_of(bytes: &[u8], called: &[Range<u32>]) -> Vec<UnwindRow> {
    rows::<X86_64>(&OwnCode { bytes: bytes.to_vec(), called: called.to_vec(), ..OwnCode::default() })
}

fn rule_at(rows: &[UnwindRow], place: u32) -> Rule {
    let row = rows[rows.partition_point(|row| row.address <= place) - 1];
    Rule { rule: row.rule, cfa_words: row.cfa_words, fp_words: row.fp_words }
}

/// Checks the rules at these places of one function.
fn expect(bytes: &[u8], expected: &[(u32, Rule)]) {
    let rows = rows_of(bytes, &[0..u32::try_from(bytes.len()).unwrap()]);
    for (place, rule) in expected {
        assert_eq!(rule_at(&rows, *place), *rule, "at {place} of {bytes:02x?}: {rows:?}");
    }
}

#[test]
fn a_frame_with_a_frame_pointer() {
    // push rbp; mov rbp, rsp; sub rsp, 16; leave; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc9, 0xc3];
    expect(&code, &[(0, SP(1, 0)), (1, SP(2, -2)), (4, SP(2, -2)), (8, SP(4, -2)), (9, SP(1, 0))]);
}

#[test]
fn what_throws_the_frame_pointer_away_was_called_by_nobody() {
    // syscall; test eax, eax; jne ret; xor ebp, ebp; pop rdi; call r9; hlt; ret: the `clone` of musl
    let code = [0x0f, 0x05, 0x85, 0xc0, 0x75, 0x07, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0xf4, 0xc3];
    let root = Rule::only(rule::ROOT);
    expect(&code, &[(0, SP(1, 0)), (6, SP(1, 0)), (8, root), (9, root), (13, SP(1, 0))]);
    // push rbp; xor ebp, ebp; pop rbp; ret: it comes back
    expect(&[0x55, 0x31, 0xed, 0x5d, 0xc3], &[(1, SP(2, -2)), (3, SP(2, -2)), (4, SP(1, 0))]);
}

#[test]
fn what_callers_push_is_not_of_their_frames() {
    // push rdi; push rbp; pop rbp; pop rdi; ret
    let code = OwnCode { bytes: vec![0x57, 0x55, 0x5d, 0x5f, 0xc3], called: vec![0..5], pushed_words: 2 };
    let rows = rows::<X86_64>(&code);
    let pushed = |cfa_words| Rule { rule: rule::SP_PUSHED, cfa_words, fp_words: 2 };
    assert_eq!([0, 1, 4].map(|place| rule_at(&rows, place)), [pushed(1), pushed(2), pushed(1)]);
    assert_eq!(rule_at(&rows, 2).rule, rule::NONE, "a row cannot say where the frame pointer is as well");
}

#[test]
fn a_frame_pointer_that_is_used_for_something_else() {
    // push rbp; push rbx; mov rbp, rdi; pop rbx; pop rbp; ret
    let code = [0x55, 0x53, 0x48, 0x89, 0xfd, 0x5b, 0x5d, 0xc3];
    expect(&code, &[(1, SP(2, -2)), (2, SP(3, -2)), (5, SP(3, -2)), (6, SP(2, -2)), (7, SP(1, 0))]);
}

#[test]
fn a_frame_pointer_that_is_stored_without_a_push() {
    // sub rsp, 24; mov [rsp + 16], rbp; mov ebp, edi; mov rbp, [rsp + 16]; add rsp, 24; ret
    let code = [
        0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x89, 0xfd, 0x48, 0x8b, 0x6c, 0x24, 0x10, 0x48, 0x83,
        0xc4, 0x18, 0xc3,
    ];
    expect(&code, &[(4, SP(4, 0)), (9, SP(4, -2)), (11, SP(4, -2)), (16, SP(4, -2)), (20, SP(1, 0))]);
}

#[test]
fn a_stack_pointer_that_is_aligned_and_kept() {
    // push rbp; mov rax, rsp; sub rsp, 64; and rsp, -32; mov [rsp + 32], rax; xor ebp, ebp;
    // mov rsp, [rsp + 32]; pop rbp; ret
    let code = [
        0x55, 0x48, 0x89, 0xe0, 0x48, 0x83, 0xec, 0x40, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x89, 0x44, 0x24, 0x20, 0x31,
        0xed, 0x48, 0x8b, 0x64, 0x24, 0x20, 0x5d, 0xc3,
    ];
    let kept = Rule { rule: rule::KEPT_SP + 2, cfa_words: 4, fp_words: -2 };
    let rules = [(8, SP(10, -2)), (12, Rule::UNSUPPORTED), (17, kept), (19, kept), (24, SP(2, -2)), (25, SP(1, 0))];
    expect(&code, &rules);
}

#[test]
fn a_stack_pointer_that_is_aligned_below_a_frame_pointer() {
    // push rbp; mov rbp, rsp; and rsp, -64; push rax; leave; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0, 0x50, 0xc9, 0xc3];
    let by_fp = Rule { rule: rule::FP, cfa_words: 2, fp_words: -2 };
    expect(&code, &[(8, by_fp), (9, by_fp), (10, SP(1, 0))]);
}

#[test]
fn ways_that_meet_keep_what_they_have_in_common() {
    // test edi, edi; je 5; push rax; ret: not the same depth
    expect(&[0x85, 0xff, 0x74, 0x01, 0x50, 0xc3], &[(4, SP(1, 0)), (5, Rule::UNSUPPORTED)]);
    // push rbx; dec edi; jne 1; pop rbx; ret: a loop
    expect(&[0x53, 0xff, 0xcf, 0x75, 0xfc, 0x5b, 0xc3], &[(1, SP(2, 0)), (5, SP(2, 0)), (6, SP(1, 0))]);
    // push rbp; jmp 5; nop; nop; pop rbp; ret: what nothing leads to has no rule
    let jumps = [0x55, 0xeb, 0x02, 0x90, 0x90, 0x5d, 0xc3];
    expect(&jumps, &[(1, SP(2, -2)), (3, Rule::only(rule::NONE)), (5, SP(2, -2)), (6, SP(1, 0))]);
}

#[test]
fn a_lost_stack_or_frame_pointer_gives_no_rule() {
    // mov rsp, rdi; ret
    expect(&[0x48, 0x89, 0xfc, 0xc3], &[(0, SP(1, 0)), (3, Rule::UNSUPPORTED)]);
    // mov rbp, rdi; ret
    expect(&[0x48, 0x89, 0xfd, 0xc3], &[(3, Rule::UNSUPPORTED)]);
    // push rbp; mov rbp, rdi; mov qword [rsp], 0; pop rbp; ret: the saved one is overwritten
    expect(
        &[0x55, 0x48, 0x89, 0xfd, 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0, 0x5d, 0xc3],
        &[(4, SP(2, -2)), (12, Rule::UNSUPPORTED)],
    );
    // pop rax; jmp rax: behind the return address there is no frame
    expect(&[0x58, 0xff, 0xe0], &[(1, Rule::UNSUPPORTED)]);
}

#[test]
fn functions_have_rows_of_their_own_and_the_rest_has_none() {
    // nop × 16; push rbx; pop rbx; ret; nop × 13; ret
    let code = [&[0x90; 16][..], &[0x53, 0x5b, 0xc3], &[0x90; 13], &[0xc3]].concat();
    let rows = rows_of(&code, &[16..19, 32..33]);
    assert_eq!(rows[0].address, 16);
    let rules = [17, 18, 25, 32, 33].map(|place| rule_at(&rows, place));
    assert_eq!(rules, [SP(2, 0), SP(1, 0), SP(1, 0), SP(1, 0), Rule::only(rule::NONE)], "padding never runs");
    assert!(rows_of(&code, &[]).is_empty());
}

/// How many places of a file's functions code tells the rule of, and those where it is another than
/// the compiler's.
fn compare(path: &str) -> (usize, Vec<(u32, Rule, Rule)>) {
    let file = File::open(path).unwrap();
    let elf = Elf::read(&file).unwrap();
    let code = elf.section(".text", 64 << 20).unwrap().unwrap();
    let section = eh_frame::section::<X86_64>(&elf).unwrap();
    let rows = eh_frame::rows::<X86_64>(&section);
    let begin = u32::try_from(code.address).unwrap();
    let (mut told, mut differing) = (0, Vec::new());
    for function in eh_frame::functions::<X86_64>(&section) {
        let offset = |address: u32| address.checked_sub(begin).map(|offset| offset as usize);
        let bytes =
            offset(function.start).zip(offset(function.end)).and_then(|(start, end)| code.bytes.get(start..end));
        // Parts that are only jumped to begin with a frame.
        let Some(bytes) = bytes.filter(|_| rule_at(&rows, function.start) == SP(1, 0)) else { continue };
        for line in flow::lines::<X86_64>(bytes) {
            let expected = rule_at(&rows, function.start + line.start);
            // The same frame may be counted from either register.
            if line.rule != Rule::UNSUPPORTED && line.rule.rule == expected.rule {
                told += 1;
                // Behind its pop, the compiler's still finds the frame pointer below the stack pointer.
                let is_popped = line.rule.fp_words == 0 && i16::from(-expected.fp_words) > line.rule.cfa_words;
                let fp_words = if is_popped { 0 } else { expected.fp_words };
                let is_same = line.rule == Rule { fp_words, ..expected };
                differing.extend((!is_same).then_some((function.start + line.start, line.rule, expected)));
            }
        }
    }
    (told, differing)
}

/// Not with libc: it has functions in assembly whose pushes nobody described.
#[test]
fn code_says_what_its_compiler_says() {
    for path in ["/lib/x86_64-linux-gnu/libm.so.6", "/bin/bash"] {
        let (told, differing) = compare(path);
        assert!(told > 500, "{path}: {told} places");
        assert!(
            differing.is_empty(),
            "{path}: {} of {told}: {:x?}",
            differing.len(),
            differing.iter().take(9).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #[test]
    fn any_code_is_survived(bytes: Vec<u8>, called in proptest::collection::vec((0u32..300, 0u32..300), 0..5)) {
        let called: Vec<_> = called.into_iter().map(|(start, end)| start..end).collect();
        let rows = rows_of(&bytes, &called);
        prop_assert!(rows.is_sorted_by(|one, other| one.address < other.address), "{rows:?}");
        prop_assert!(rows.len() <= 2 * bytes.len() + 2);
    }
}
