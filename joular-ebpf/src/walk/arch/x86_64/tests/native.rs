//! Tests rows of native code.

use super::{super::X86_64, std::vec};
use crate::{
    abi::{rule, walk_end},
    walk::tests::{STACK, native, native::*},
};

#[test]
fn each_rule_leads_to_the_caller() {
    for (rule, cfa_words, fp_words, return_at, pc) in [
        (rule::SP, 3, 0, 0x10, CALLEE),
        (rule::SP, 3, -2, 0x10, CALLEE),
        (rule::SP, 6, -4, 0x28, CALLEE),
        (rule::FP, 2, -2, 0x48, CALLEE),
        // An entry of the procedure linkage table pushes a word at its eleventh byte.
        (rule::PLT, 0, 0, 0, CALLEE + 10),
        (rule::PLT, 0, 0, 8, CALLEE + 11),
        // By frame pointers, for want of a rule.
        (rule::NONE, 0, 0, 0x48, CALLEE),
    ] {
        let mut process = process::<X86_64>(row(0x100, rule, cfa_words, fp_words));
        process.words(STACK, &[1; 32]).words(STACK + return_at, &[IN_ROOT]);
        // Frames may be missing behind a guess.
        let end = if rule == rule::NONE { walk_end::CHAIN } else { walk_end::ROOT };
        let expected = (vec![native(pc), native(IN_ROOT)], end);
        assert_eq!(process.walk(registers(pc)), expected, "rule {rule}, {cfa_words} words");
    }
}

#[test]
fn the_frame_pointer_is_restored() {
    // The callee saved it; its caller finds its frame by it.
    let mut process = process::<X86_64>(row(0x100, rule::SP, 4, -3));
    process.rows[2] = row(0x200, rule::FP, 2, -2);
    let frame = STACK + 0x100;
    process.words(STACK, &[0, frame, 0, FILE + 0x210]).words(frame, &[0, IN_ROOT]);
    let frames = vec![native(CALLEE), native(FILE + 0x210), native(IN_ROOT)];
    assert_eq!(process.walk(registers(CALLEE)), (frames, walk_end::ROOT));
}
