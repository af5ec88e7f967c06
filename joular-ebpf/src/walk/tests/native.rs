//! Tests native code: every rule, and where walks end.

use std::vec;

use super::*;
use crate::abi::rule;

for_each_arch!(
    a_return_address_belongs_to_the_call_before_it,
    a_signal_interrupted_exactly_there,
    a_walk_says_why_it_ends,
    the_stack_must_be_left_upwards,
    a_stack_that_is_too_deep_keeps_its_leaf_side,
    rows_are_found_among_many,
    identity_is_words_end_and_generation,
);

pub(in crate::walk) const FILE: u64 = 0x5555_0000_0000;
/// Of the one function, and of the one that is the root.
pub(in crate::walk) const CALLEE: u64 = FILE + 0x100;
const ROOT: u64 = FILE + 0x900;
/// Behind a call in it.
pub(in crate::walk) const IN_ROOT: u64 = ROOT + 8;

pub(in crate::walk) fn row(address: u32, rule: u8, cfa_words: i16, fp_words: i8) -> UnwindRow {
    UnwindRow { address, cfa_words, fp_words, rule }
}

/// A file with one function of this rule, and one that nobody called.
pub(in crate::walk) fn process<A: MadeUp>(of_callee: UnwindRow) -> MadeUpProcess<A> {
    let rows = vec![row(0, rule::NONE, 0, 0), of_callee, row(0x200, rule::NONE, 0, 0), row(0x900, rule::ROOT, 0, 0)];
    let mapping = CodeMapping { start: FILE, end: FILE + 0x1000, bias: FILE, first_row: 0, row_count: 4 };
    let mut process = MadeUpProcess { mappings: vec![mapping], rows, ..MadeUpProcess::<A>::default() };
    process.words(ROOT, &[A::FILL; 2]);
    hotspot::call_before(&mut process, IN_ROOT, A::CALL);
    process
}

pub(in crate::walk) fn registers<A: Arch>(pc: u64) -> Registers<A> {
    Registers { pc, sp: STACK, fp: STACK + 0x40, ..Registers::default() }
}

/// A call that never returns may be the last instruction of its function.
fn a_return_address_belongs_to_the_call_before_it<A: MadeUp>() {
    let mut process = process::<A>(row(0x100, rule::SP, 2, -2));
    process.words(STACK, &[0, FILE + 0x200, 0, IN_ROOT]);
    let frames = vec![native(CALLEE), native(FILE + 0x200), native(IN_ROOT)];
    assert_eq!(process.walk(registers(CALLEE)), (frames, walk_end::ROOT));
}

/// The interrupted instruction may be the first of its function, and the handler's
/// stack may be above the interrupted one.
fn a_signal_interrupted_exactly_there<A: MadeUp>() {
    // Below the leaf an address is looked up one byte before. That byte has to be one of the instruction
    // that was interrupted, which may be its function's first.
    let mut process = process::<A>(row(0x100, rule::SIGNAL, 0, 0));
    process.rows[2] = row(0x200, A::NO_FRAME.0, A::NO_FRAME.1, 0);
    let interrupted = Registers { sp: STACK - 0x1000, ..registers(FILE + 0x200) };
    process.words(interrupted.sp, &[IN_ROOT]);
    A::signal_frame(&mut process, STACK, interrupted);
    let frames = vec![native(CALLEE), native(FILE + 0x200 + 1), native(IN_ROOT)];
    assert_eq!(process.walk(registers(CALLEE)), (frames, walk_end::ROOT));
}

fn a_walk_says_why_it_ends<A: MadeUp>() {
    let known = |rule, cfa_words| process::<A>(row(0x100, rule, cfa_words, -2));
    let stack = |mut process: MadeUpProcess<A>, words: &[u64]| {
        process.words(STACK, words);
        process
    };
    let unmapped = FILE + 0x10_0000;
    for (process, registers, depth, end) in [
        (known(rule::UNSUPPORTED, 0), registers(CALLEE), 1, walk_end::NO_RULE),
        (known(rule::NONE, 0), Registers { fp: STACK - 8, ..registers(CALLEE) }, 1, walk_end::NO_RULE),
        (known(rule::NONE, 0), Registers { fp: 0, ..registers(CALLEE) }, 1, walk_end::CHAIN),
        (known(rule::NONE, 0), registers(unmapped), 1, walk_end::NO_MAPPING),
        (known(rule::SP, 2), registers(CALLEE), 1, walk_end::UNREADABLE),
        (stack(known(rule::SP, 2), &[0, 0]), registers(CALLEE), 1, walk_end::ROOT),
        (stack(known(rule::SP, 2), &[0, 1 << 62]), registers(CALLEE), 1, walk_end::IMPLAUSIBLE),
        (stack(known(rule::SP, 1), &[0]), registers(CALLEE), 1, walk_end::UNREADABLE),
        (stack(known(rule::SP, 2), &[1, unmapped]), registers(CALLEE), 2, walk_end::NO_MAPPING),
    ] {
        let (frames, found) = process.walk(registers);
        assert_eq!((frames.len(), found), (depth, end));
    }
}

fn the_stack_must_be_left_upwards<A: MadeUp>() {
    for cfa_words in [0, -1, i16::MIN] {
        let mut process = process::<A>(row(0x100, rule::SP, cfa_words, -2));
        process.words(STACK.wrapping_add((i64::from(cfa_words) * 8) as u64) - 16, &[0, CALLEE]);
        assert_eq!(process.walk(registers(CALLEE)).1, walk_end::IMPLAUSIBLE, "{cfa_words}");
    }
}

fn a_stack_that_is_too_deep_keeps_its_leaf_side<A: MadeUp>() {
    let mut process = process::<A>(row(0x100, rule::SP, 2, -2));
    process.words(STACK, &[CALLEE + 8; 2 * (MAX_USER_FRAMES + 8)]);
    let (frames, end) = process.walk(registers(CALLEE));
    assert_eq!((frames.len(), end), (MAX_USER_FRAMES, walk_end::DEPTH));
    assert_eq!(frames[..2], [native(CALLEE), native(CALLEE + 8)]);
}

/// Each search ends at the right mapping and row, wherever they stand.
fn rows_are_found_among_many<A: MadeUp>() {
    pub(in crate::walk) const FILES: u64 = 300;
    let mut process = MadeUpProcess::<A>::default();
    for file in 0..FILES {
        let start = FILE + file * 0x10_0000;
        let first_row = process.rows.len() as u32;
        // Function n of a file has a frame of one word more than n.
        process.rows.extend((1..100).map(|n| row(n * 16, rule::SP, n as i16 + 1, -2)));
        process.mappings.push(CodeMapping { start, end: start + 0x8_0000, bias: start, first_row, row_count: 99 });
    }
    for (file, function) in [(0, 1), (0, 99), (1, 50), (150, 37), (FILES - 1, 1), (FILES - 1, 99)] {
        let pc = FILE + file * 0x10_0000 + function * 16 + 4;
        process.words(STACK + (function - 1) * 8, &[0, 0]);
        assert_eq!(process.walk(registers(pc)), (vec![native(pc)], walk_end::ROOT), "{file} {function}");
        process.bytes.clear();
    }
}

fn identity_is_words_end_and_generation<A: MadeUp>() {
    let id = |generation, end| {
        let mut walk = Box::new(Walk::<A>::default());
        walk.begin(registers(1), ProcessUnwind { generation, ..ProcessUnwind::default() });
        walk.push(FrameWord::native(1)).unwrap();
        walk.finish(42, End(end))
    };
    let base = id(0, walk_end::ROOT);
    assert_eq!(base, id(0, walk_end::ROOT));
    assert_ne!(base, id(1, walk_end::ROOT));
    assert_ne!(base, id(0, walk_end::DEPTH));
}
