//! Tests rows of native code.

use super::{
    super::{Aarch64, Live, Registers},
    std::{boxed::Box, format, vec},
};
use crate::{
    abi::{FrameWord, ProcessUnwind, rule, walk_end},
    walk::{
        Walk,
        native::step,
        tests::{MadeUp as _, STACK, hotspot::call_before, native, native::*},
    },
};

/// What is in the upper bits of a signed return address.
const SIGNATURE: u64 = 0x2a5 << 54 | 0x31 << 48;

#[test]
fn each_rule_leads_to_the_caller() {
    const SAVED: u64 = 0x5000;
    let fp = registers::<Aarch64>(0).fp;
    // Where the pair stands, or the return address alone, and the caller's registers.
    for (rule, cfa_words, fp_words, saved_at, sp, caller_fp) in [
        (rule::SP, 0, 0, None, STACK, fp),
        (rule::SP, 4, 0, None, STACK + 0x20, fp),
        (rule::FP, 0, 0, None, fp, fp),
        (rule::SP, 4, -4, Some(STACK), STACK + 0x20, SAVED),
        (rule::SP, 32, -30, Some(STACK + 0x10), STACK + 0x100, SAVED),
        (rule::SP, 32, -2, Some(STACK + 0xf0), STACK + 0x100, SAVED),
        (rule::FP, 2, -2, Some(fp), fp + 0x10, SAVED),
        (rule::FP, 6, -4, Some(fp + 0x10), fp + 0x30, SAVED),
        (rule::SP_RETURN_ONLY, 2, -2, Some(STACK), STACK + 0x10, fp),
        (rule::SP_RETURN_ONLY, 4, -1, Some(STACK + 0x18), STACK + 0x20, fp),
        (rule::FP_RETURN_ONLY, 4, -4, Some(fp), fp + 0x20, fp),
        (rule::SP_PAIR, 256, 0, Some(STACK), STACK + 0x800, SAVED),
        (rule::SP_PAIR, 256, 2, Some(STACK + 0x10), STACK + 0x800, SAVED),
        (rule::FP_PAIR, 256, 2, Some(fp + 0x10), fp + 0x800, SAVED),
        (rule::FP_PAIR, 256, -1, Some(fp - 8), fp + 0x800, SAVED),
        // By frame pointers, for want of a rule: the stack pointer is not known.
        (rule::NONE, 0, 0, Some(fp), fp + 0x11, SAVED),
    ] {
        for signature in [0, SIGNATURE] {
            let mut process = process::<Aarch64>(row(0x100, rule, cfa_words, fp_words));
            let lr = if saved_at.is_none() { IN_ROOT | signature } else { CALLEE };
            let pair = [SAVED, IN_ROOT | signature];
            let is_alone = matches!(rule, rule::SP_RETURN_ONLY | rule::FP_RETURN_ONLY);
            if let Some(place) = saved_at {
                process.words(place, if is_alone { &pair[1..] } else { &pair });
            }
            let mut walk = Box::new(Walk::<Aarch64>::default());
            let of = ProcessUnwind { mapping_count: 1, ..ProcessUnwind::default() };
            walk.begin(Registers { live: Live { lr, ..Live::default() }, ..registers(CALLEE) }, of);
            let what = format!("rule {rule}, {cfa_words}, {fp_words}");
            assert_eq!(step(&process, &process, &mut walk), Ok(()), "{what}");
            let Registers { pc, sp: caller_sp, fp, .. } = walk.registers;
            assert_eq!((pc, caller_sp, fp), (IN_ROOT, sp, caller_fp), "{what}");
        }
    }
}

/// A function of which a probe tells that it is entered has done nothing yet.
#[test]
fn the_caller_of_a_function_that_is_entered_is_in_the_link_register() {
    let mut process = process::<Aarch64>(row(0x100, rule::SP, 4, -4));
    process.words(STACK, &[0, IN_ROOT]);
    let mut walk = Box::new(Walk::<Aarch64>::default());
    let lr = (CALLEE + 8) | SIGNATURE;
    let leaf = FrameWord::native(5);
    let of = ProcessUnwind { mapping_count: 1, ..ProcessUnwind::default() };
    assert_eq!(
        walk.begin_in_caller(&process, Registers { live: Live { lr, ..Live::default() }, ..registers(7) }, of, leaf),
        Ok(())
    );
    assert_eq!((walk.registers.pc, walk.registers.sp), (CALLEE + 8, STACK));
    let _ = step(&process, &process, &mut walk);
    assert_eq!(walk.registers.pc, IN_ROOT);
}

#[test]
fn the_frame_pointer_is_restored() {
    // The callee saved it; its caller finds its frame by it.
    let mut process = process::<Aarch64>(row(0x100, rule::SP, 4, -4));
    process.rows[2] = row(0x200, rule::FP, 2, -2);
    let frame = STACK + 0x100;
    process.words(STACK, &[frame, FILE + 0x210, 0, 0]).words(frame, &[0, IN_ROOT]);
    let frames = vec![native(CALLEE), native(FILE + 0x210), native(IN_ROOT)];
    assert_eq!(process.walk(registers(CALLEE)), (frames, walk_end::ROOT));
}

#[test]
fn the_link_register_is_of_interrupted_code_only_and_behind_a_call() {
    let in_next = FILE + 0x210;
    for (what, lr, depth, end) in [
        ("no call is there", in_next, 1, walk_end::IMPLAUSIBLE),
        ("no instruction", IN_ROOT + 2, 1, walk_end::IMPLAUSIBLE),
        ("it cannot be read", 0x1_0000, 1, walk_end::IMPLAUSIBLE),
        ("a thread's first function", 0, 1, walk_end::ROOT),
        ("a handler of a signal", FILE + 0x300, 2, walk_end::NO_RULE),
        // Only the first function may have it in the register.
        ("a caller that called nobody", FILE + 0x220, 2, walk_end::IMPLAUSIBLE),
    ] {
        let mut process = process::<Aarch64>(row(0x100, rule::SP, 0, 0));
        process.rows.splice(2..3, [row(0x200, rule::SP, 0, 0), row(0x2f8, rule::UNSUPPORTED, 0, 0)]);
        process.mappings[0].row_count += 1;
        process.words(in_next - 8, &[0; 4]);
        call_before(&mut process, FILE + 0x220, Aarch64::CALL);
        // mov x8, #139; svc #0
        process.words(FILE + 0x2f8, &[0, 0xd400_0001_d280_1168]);
        let (frames, found) = process.walk(Registers { live: Live { lr, ..Live::default() }, ..registers(CALLEE) });
        assert_eq!((frames.len(), found), (depth, end), "{what}");
    }
}

/// It leads to the caller's pair, which may be anywhere in its frame. What the caller's row says of that place leads to
/// the stack pointer again.
#[test]
fn behind_a_frame_pointer_the_stack_pointer_is_found_by_the_next_row() {
    let fp = registers::<Aarch64>(0).fp;
    let caller_fp = STACK + 0x100;
    for (rule, cfa_words, fp_words, depth, end) in [
        (rule::SP, 8, -8, 4, walk_end::CHAIN),
        (rule::SP, 8, -6, 4, walk_end::CHAIN),
        (rule::FP, 8, -8, 4, walk_end::CHAIN),
        (rule::SP_PAIR, 8, 0, 4, walk_end::CHAIN),
        (rule::SP_PAIR, 8, 2, 4, walk_end::CHAIN),
        (rule::SP, 8, 0, 2, walk_end::NO_RULE),
        (rule::SP_RETURN_ONLY, 8, -8, 2, walk_end::NO_RULE),
    ] {
        let mut process = process::<Aarch64>(row(0x100, rule::NONE, 0, 0));
        process.rows.splice(2..3, [row(0x200, rule, cfa_words, fp_words), row(0x300, rule::SP, 2, -2)]);
        process.mappings[0].row_count += 1;
        process.words(fp, &[caller_fp, FILE + 0x210]).words(caller_fp, &[0x5000, FILE + 0x310]);
        // Above the frame that was found by the frame pointer.
        let cfa = match rule {
            rule::FP => caller_fp + 64,
            rule::SP_PAIR => caller_fp + 64 - fp_words as u64 * 8,
            _ => caller_fp.wrapping_sub((i64::from(fp_words) * 8) as u64),
        };
        process.words(cfa, &[0, IN_ROOT]);
        let (frames, found) = process.walk(registers(CALLEE));
        assert_eq!((frames.len(), found), (depth, end), "rule {rule}, {cfa_words}, {fp_words}");
    }
}
