use joular_ebpf::abi::rule;
use proptest::prelude::*;

use super::{function::Function, *};

const SP: fn(i16, i8) -> Rule = |cfa_words, fp_words| Rule { rule: rule::SP, cfa_words, fp_words };

/// What begins a method: sub rsp, 24; cmp rsp, [r15 + 8].
const MAKES: &[u8] = &[0x48, 0x83, 0xec, 24, 0x49, 0x3b, 0x67, 8];
/// add rsp, 24; ret.
const RETURNS: &[u8] = &[0x48, 0x83, 0xc4, 24, 0xc3];

/// A method with its padding, and behind it the beginning of another.
fn padded(parts: &[&[u8]]) -> Vec<u8> {
    let mut code = parts.concat();
    code.resize(code.len().next_multiple_of(ALIGNMENT), 0xcc);
    code.extend(MAKES);
    code
}

fn followed(code: &[u8]) -> Option<Function> {
    follow(code, &mut usize::MAX.clone(), &mut |_| ())
}

/// Checks the rules from these places on.
fn expect(parts: &[&[u8]], lines: &[(usize, Rule)]) {
    let code = padded(parts);
    let end = code.len() - MAKES.len();
    assert_eq!(followed(&code), Some(Function { end, lines: Some(lines.to_vec()) }), "{code:02x?}");
}

fn expect_refuted(parts: &[&[u8]]) {
    let code = padded(parts);
    let end = code.len() - MAKES.len();
    assert_eq!(followed(&code), Some(Function { end, lines: None }), "{code:02x?}");
}

#[test]
fn a_method_has_one_frame_from_its_beginning_to_each_return() {
    // jbe to the first return; call; two returns; a call that is rare, and does not return
    let parts =
        |ahead: u8| [MAKES, &[0x76, ahead], &[0xff, 0xd0, 0x90], RETURNS, RETURNS, &[0xe8, 0, 1, 0, 0, 0x90]].concat();
    let behind = MAKES.len() + 5;
    let lines = [
        (0, SP(1, 0)),
        (4, SP(4, 0)),
        (behind + 4, SP(1, 0)),
        (behind + 5, SP(4, 0)),
        (behind + 9, SP(1, 0)),
        (behind + 10, SP(4, 0)),
    ];
    expect(&[&parts(3)], &lines);
    // Into an instruction.
    expect_refuted(&[&parts(4)]);
}

#[test]
fn a_frame_may_be_computed_first_and_a_poll_stand_before_the_return() {
    // lea rbx, [rsp - 56]; cmp rbx, [r15 + 8]; jbe far; mov rsp, rbx; add rsp, 56; cmp [r15 + 16], 0; jle far; ret
    let begin = [0x48, 0x8d, 0x5c, 0x24, 0xc8, 0x49, 0x3b, 0x5f, 8, 0x0f, 0x86, 0, 0, 0x10, 0, 0x48, 0x8b, 0xe3];
    let end = [0x48, 0x83, 0xc4, 56, 0x41, 0x83, 0x7f, 16, 0, 0x0f, 0x8e, 0, 0, 0x20, 0, 0xc3];
    expect(&[&begin, &end], &[(0, SP(1, 0)), (18, SP(8, 0)), (22, SP(1, 0))]);
}

#[test]
fn words_are_moved_over_the_top_of_the_stack() {
    // push [rsp + 8]; pop [rsp + 16]
    expect(
        &[MAKES, &[0xff, 0x74, 0x24, 8, 0x8f, 0x44, 0x24, 16], RETURNS],
        &[(0, SP(1, 0)), (4, SP(4, 0)), (12, SP(5, 0)), (16, SP(4, 0)), (20, SP(1, 0))],
    );
}

#[test]
fn what_c_code_calls_keeps_its_frame_pointer() {
    // push rbp; sub rsp, 32; mov ebp, edi; add rsp, 32; pop rbp; ret
    let pushes = [0x55, 0x48, 0x83, 0xec, 32, 0x89, 0xfd, 0x48, 0x83, 0xc4, 32, 0x5d, 0xc3];
    expect(&[&pushes], &[(0, SP(1, 0)), (1, SP(2, -2)), (5, SP(6, -2)), (11, SP(2, -2)), (12, SP(1, 0))]);
    // mov [rsp + 8], rbp
    let stores = [0x48, 0x89, 0x6c, 0x24, 8];
    expect(&[MAKES, &stores, RETURNS], &[(0, SP(1, 0)), (4, SP(4, 0)), (13, SP(4, -3)), (17, SP(1, 0))]);
    // mov ebp, edi first: it is a value of the method
    expect(&[MAKES, &[0x89, 0xfd], &stores, RETURNS], &[(0, SP(1, 0)), (4, SP(4, 0)), (19, SP(1, 0))]);
}

#[test]
fn a_frame_may_be_counted_from_the_frame_pointer() {
    // push rbp; mov rbp, rsp; sub rsp, 16; leave; ret; mov rsp, rbp; pop rbp; ret
    let code = [0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 16, 0xc9, 0xc3, 0x48, 0x8b, 0xe5, 0x5d, 0xc3];
    let lines = [
        (0, SP(1, 0)),
        (1, SP(2, -2)),
        (8, SP(4, -2)),
        (9, SP(1, 0)),
        (10, SP(4, -2)),
        (13, SP(2, -2)),
        (14, SP(1, 0)),
    ];
    expect(&[&code], &lines);
}

#[test]
fn a_frame_may_be_made_in_steps() {
    // sub rsp, 8; mov rbp, rsp; sub rsp, 24; jmp over; and back; add rsp, 24; lea rsp, [rbp + 8]; ret
    let code = [
        0x48, 0x83, 0xec, 8, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 24, 0xeb, 2, 0xeb, 0, 0x48, 0x83, 0xc4, 24, 0x48,
        0x8d, 0x65, 8, 0xc3,
    ];
    expect(&[&code], &[(0, SP(1, 0)), (4, SP(2, 0)), (11, SP(5, 0)), (19, SP(2, 0)), (23, SP(1, 0))]);
}

/// lea rcx, [table]; movsxd rax, dword ptr [rcx + 4 × rax]; add rcx, rax; jmp rcx; the table is `behind` bytes behind.
fn switch(behind: u8) -> [u8; 16] {
    [0x48, 0x8d, 0x0d, 9 + behind, 0, 0, 0, 0x48, 0x63, 0x04, 0x81, 0x48, 0x03, 0xc8, 0xff, 0xe1]
}

#[test]
fn jump_tables_are_no_code() {
    let offsets = |offsets: [i32; 2]| offsets.map(i32::to_le_bytes).concat();
    // cmp eax, 1; ja to the return behind
    let check = |ahead| [0x83, 0xf8, 1, 0x77, ahead];
    let begin = MAKES.len() + 5;
    // Between the branch and what it leads to.
    let lines = [(0, SP(1, 0)), (4, SP(4, 0)), (begin + 28, SP(1, 0)), (begin + 29, SP(4, 0)), (begin + 33, SP(1, 0))];
    expect(&[MAKES, &check(24), &switch(0), &offsets([8, 13]), RETURNS, RETURNS], &lines);
    // At the end.
    let lines = [(0, SP(1, 0)), (4, SP(4, 0)), (begin + 20, SP(1, 0))];
    expect(&[MAKES, &check(16), &switch(5), RETURNS, &offsets([-5, -5])], &lines[..]);
    // One that leads into itself is none.
    expect_refuted(&[MAKES, &check(24), &switch(0), &offsets([4, 13]), RETURNS, RETURNS]);
}

#[test]
fn what_does_not_fit_has_no_rules() {
    // A return that leaves a frame.
    expect_refuted(&[MAKES, &[0xc3]]);
    // add rsp, 32; ret: more than there is
    expect_refuted(&[MAKES, &[0x48, 0x83, 0xc4, 32, 0xc3]]);
    // je over: push rax
    expect_refuted(&[MAKES, &[0x74, 1, 0x50], RETURNS]);
    // je into what follows
    expect_refuted(&[MAKES, &[0x74, 2], RETURNS]);
    // je to its beginning, with a frame
    expect_refuted(&[MAKES, &[0x74, 0xf6], RETURNS]);
    // jmp far, with a frame
    expect_refuted(&[MAKES, &[0xe9, 0, 0, 0x10, 0]]);
    // mov rsp, rdi; ret: not known, but not wrong
    let unknown = [(0, SP(1, 0)), (4, SP(4, 0)), (11, Rule::UNSUPPORTED)];
    expect(&[MAKES, &[0x48, 0x8b, 0xe7, 0xc3]], &unknown);
}

/// Methods between functions of C, which are left alone.
#[test]
fn methods_are_found_among_other_code() {
    // push rbx; pop rbx; ret
    let function: &[u8] = &[0x53, 0x5b, 0xc3];
    let aligned = |code: &[u8], fill| {
        let mut code = code.to_vec();
        code.resize(code.len().next_multiple_of(ALIGNMENT), fill);
        code
    };
    let method = [MAKES, &[0xe8, 0x00, 0x10, 0, 0, 0x90], RETURNS].concat();
    let code = [
        aligned(function, 0x90),
        aligned(&method, 0xcc),
        // xor eax, eax; ret: without a frame
        aligned(&[0x31, 0xc0, 0xc3], 0xcc),
        aligned(&method, 0xcc),
        aligned(function, 0x90),
    ]
    .concat();
    let base = 0x1000_u64;
    let read = |range: Range<u64>| {
        let place = |address: u64| usize::try_from(address - base).unwrap();
        Ok(code[place(range.start)..place(range.end)].to_vec())
    };
    let gap = base..base + code.len() as u64;
    let begins = begins(&gap, read).unwrap().unwrap();
    assert_eq!(begins, 0x1010..=0x1040);
    let mut found = Found { rows: Rows::of::<X86_64>(), called: BTreeSet::new(), at: *begins.start() };
    found.follow(&begins, gap.end, read).unwrap();
    let row = |address, cfa_words| UnwindRow { address, cfa_words, fp_words: 0, rule: rule::SP };
    let rows = [
        row(0x1010, 1),
        row(0x1014, 4),
        row(0x1022, 1),
        // Padding, and what has no frame either.
        row(0x1044, 4),
        row(0x1052, 1),
        UnwindRow { address: 0x1060, ..UnwindRow::default() },
    ];
    assert_eq!(found.rows.finish(), rows);
    assert_eq!(found.called, BTreeSet::from([0x101d + 0x1000, 0x104d + 0x1000]));
}

#[test]
fn what_has_no_methods_has_no_rows() {
    let read = |range: Range<u64>| Ok(vec![0x90; usize::try_from(range.end - range.start).unwrap()]);
    assert_eq!(begins(&(0..3 * PART_BYTES), read).unwrap(), None);
}

/// Pieces of methods and of nothing, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        MAKES.to_vec(),
        RETURNS.to_vec(),
        switch(0).to_vec(),
        vec![0x83, 0xf8, 100, 0x77, 3],
        vec![0xcc; 7],
        vec![0x0f, 0x84, 3, 0, 0, 0],
        vec![0x55, 0x48, 0x8b, 0xec],
    ]);
    let any = proptest::collection::vec(any::<u8>(), 0..9);
    proptest::collection::vec(prop_oneof![known, any], 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_code_is_survived(code in pieces(), work in 0_usize..500) {
        let mut left = work;
        if let Some(Function { end, lines }) = follow(&code, &mut left, &mut |_| ()) {
            prop_assert!(end > 0 && end <= code.len() && left <= work);
            let lines = lines.unwrap_or_default();
            prop_assert!(lines.is_sorted_by(|one, other| one.0 < other.0), "{lines:?}");
            prop_assert!(lines.iter().all(|(place, _)| *place < end), "{lines:?}");
        }
        let read = |range: Range<u64>| Ok(code[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec());
        let gap = 0..code.len() as u64;
        if let Some(begins) = begins(&gap, read).unwrap() {
            let mut found = Found { rows: Rows::of::<X86_64>(), called: BTreeSet::new(), at: *begins.start() };
            found.follow(&begins, gap.end, read).unwrap();
            let rows = found.rows.finish();
            prop_assert!(rows.is_sorted_by(|one, other| one.address < other.address), "{rows:?}");
        }
    }
}
