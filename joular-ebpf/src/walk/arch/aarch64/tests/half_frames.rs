//! Tests code of a JVM that is making its frame or removing it, or has pushed something beside it.

use super::{
    super::{Aarch64, Live, Registers},
    std::{format, vec, vec::Vec},
};
use crate::{
    abi::{CodeMapping, UnwindRow, rule, walk_end},
    walk::tests::{
        MadeUp as _, MadeUpProcess, STACK,
        hotspot::{
            BODY, CALLEE, CALLER, Code, ENTRIES, IN_LIBJVM, RETURN, RUNTIME_STUB, WRAPPER, blob, caller_frame, expect,
            leaf, process,
        },
        interpreted_frame, native,
    },
};

const NOP: u32 = Aarch64::FILL as u32;
const PUSH_PAIR: u32 = 0xa9bf_7bfd;
const POP_PAIR: u32 = 0xa8c1_7bfd;
/// mov fp, sp; mov sp, fp
const SET_FP: u32 = 0x9100_03fd;
const LEAVE: u32 = 0x9100_03bf;
const RET: u32 = 0xd65f_03c0;
/// sub x9, sp, #0x14000; str xzr, [x9]
const BANG: [u32; 2] = [0xd140_53e9, 0xf900_013f];
/// b far out of the block; adrp x8, add x8, x8, #0x40, br x8
const JUMP: u32 = 0x1400_8000;
const FAR_JUMP: [u32; 3] = [0xb000_0008, 0x9101_0108, 0xd61f_0100];
/// ldr x8, [x28, #1104]; cmp sp, x8; b.hi
const POLL: [u32; 3] = [0xf942_2b88, 0xeb28_63ff, 0x5400_0148];
/// As JDK 11 has it: ldr x8, [x28, #n]; ldr wzr, [x8]
const PAGE_POLL: [u32; 2] = [0xf940_8388, 0xb940_011f];
/// adr x8, poll; str x8, [x28, #n]
const NOTE: [u32; 2] = [0x10ff_ff08, 0xf902_3388];
/// pacia lr, fp; autia lr, fp
const SIGN: u32 = 0xdac1_03be;
const CHECK: u32 = 0xdac1_13be;
/// sub sp, sp, #n; add sp, sp, #n
const fn lower(bytes: u32) -> u32 {
    0xd100_03ff | bytes << 10
}
const fn raise(bytes: u32) -> u32 {
    0x9100_03ff | bytes << 10
}
/// stp fp, lr, [sp, #n]; ldp fp, lr, [sp, #n]
const fn save(bytes: u32) -> u32 {
    0xa900_7bfd | (bytes / 8) << 15
}
const fn restore(bytes: u32) -> u32 {
    0xa940_7bfd | (bytes / 8) << 15
}

/// Puts instructions so that the one after `before` stands at the address.
fn instructions(process: &mut MadeUpProcess<Aarch64>, at: u64, before: &[u32], next: &[u32]) {
    let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    process.code(at - 4 * before.len() as u64, &bytes(before)).code(at, &bytes(next));
}

/// Where the return address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the link register, with no frame, or with all of it left.
    Link,
    LinkAbove,
    /// On top of the stack.
    Pair,
    /// At the end of the frame.
    End,
}

/// Walks from there. Wherever the return address is not, an older one stands.
fn check(what: &str, mut process: MadeUpProcess<Aarch64>, code: Code, offset: u64, at: At) {
    let old = CALLEE.begin() + BODY;
    let bytes = code.frame_words * 8;
    let end = match at {
        At::Link => STACK,
        At::Pair => STACK + 16,
        At::LinkAbove | At::End => STACK + bytes,
    };
    process.words(STACK, &[old; 200]);
    if matches!(at, At::Pair | At::End) {
        process.words(end - 16, &[0, RETURN]);
    }
    process.words(end, &[old, old, 0, IN_LIBJVM]);
    let lr = if matches!(at, At::Link | At::LinkAbove) { RETURN } else { old };
    let pc = code.begin() + offset;
    let first = if code.name == RUNTIME_STUB.name { code.stub(offset) } else { code.at(offset) };
    assert_eq!(process.walk(Registers { live: Live { lr, ..Live::default() }, ..leaf(pc) }), expect(first), "{what}");
}

#[test]
fn prologues_and_epilogues_are_recognised() {
    let (small, pair) = (48, 32);
    let [bang, store] = BANG;
    let [load, compare, higher] = POLL;
    for (what, offset, before, next, at) in [
        ("class check", 4, &[][..], &[NOP][..], At::Link),
        ("entry", 0x10, &[], &[NOP, bang, store, lower(small), save(pair)], At::Link),
        ("check of a class's initialisation", 0x20, &[NOP], &[0xf940_0100, 0x5400_0140], At::Link),
        ("stack bang", 0x14, &[NOP], &[bang, store, lower(small), save(pair)], At::Link),
        ("stack bang's store", 0x18, &[NOP, bang], &[store, lower(small), save(pair)], At::Link),
        ("sub sp", 0x1c, &[NOP, bang, store], &[lower(small), save(pair)], At::Link),
        ("signing", 0x1c, &[NOP, bang, store], &[SIGN, lower(small), save(pair)], At::Link),
        ("stp", 0x20, &[bang, store, lower(small)], &[save(pair), NOP], At::LinkAbove),
        ("behind stp", 0x24, &[store, lower(small), save(pair)], &[NOP], At::End),
        ("entry barrier", 0x30, &[lower(small), save(pair), 0x1800_0448, 0xd503_39bf], &[0xb940_2389], At::End),
        ("ldp", BODY, &[], &[restore(pair), raise(small), RET], At::End),
        ("add sp", BODY, &[restore(pair)], &[raise(small), load, compare, higher, RET], At::LinkAbove),
        ("poll", BODY, &[restore(pair), raise(small)], &[load, compare, higher, RET], At::Link),
        ("poll, compare", BODY, &[restore(pair), raise(small), load], &[compare, higher, RET], At::Link),
        ("poll, branch", BODY, &[raise(small), load, compare], &[higher, RET], At::Link),
        ("page poll", BODY, &[restore(pair), raise(small)], &[PAGE_POLL[0], PAGE_POLL[1], RET], At::Link),
        ("page poll, trap", BODY, &[raise(small), PAGE_POLL[0]], &[PAGE_POLL[1], RET], At::Link),
        ("checking", BODY, &[restore(pair), raise(small)], &[CHECK, load, compare, higher, RET], At::Link),
        ("ret", BODY, &[load, compare, higher], &[RET, NOP], At::Link),
        ("a poll in a loop", BODY, &[], &[load, compare, higher, NOP], At::End),
        ("jump to a stub", BODY, &[restore(pair), raise(small)], &[JUMP], At::Link),
        ("far jump to a stub", BODY, &[restore(pair), raise(small)], &FAR_JUMP, At::Link),
        ("far jump, add", BODY, &[restore(pair), raise(small), FAR_JUMP[0]], &FAR_JUMP[1..], At::Link),
        ("far jump, br", BODY, &[restore(pair), raise(small), FAR_JUMP[0], FAR_JUMP[1]], &FAR_JUMP[2..], At::Link),
        ("behind the end", BODY, &[restore(pair), raise(small), RET], &[NOP], At::End),
        ("behind a jump", BODY, &[restore(pair), raise(small), JUMP], &[NOP], At::End),
        ("poll stub", BODY, &[RET], &[NOTE[0], NOTE[1], JUMP], At::Link),
        ("poll stub's store", BODY, &[RET, NOTE[0]], &[NOTE[1], JUMP], At::Link),
        ("poll stub's jump", BODY, &[RET, NOTE[0], NOTE[1]], &[JUMP], At::Link),
        ("poll stub's far jump", BODY, &[NOTE[0], NOTE[1]], &FAR_JUMP, At::Link),
        ("poll stub's far jump, add", BODY, &[NOTE[0], NOTE[1], FAR_JUMP[0]], &FAR_JUMP[1..], At::Link),
        ("poll stub's far jump, br", BODY, &[NOTE[0], NOTE[1], FAR_JUMP[0], FAR_JUMP[1]], &FAR_JUMP[2..], At::Link),
        ("the next poll stub", BODY, &[NOTE[0], NOTE[1], JUMP], &[NOTE[0], NOTE[1], JUMP], At::Link),
        ("behind a poll stub", BODY, &[NOTE[0], NOTE[1], JUMP], &[NOP], At::End),
        ("second entry", BODY, &[RET], &[bang, store, lower(small), save(pair)], At::Link),
        ("second entry's stp", BODY, &[bang, store, lower(small)], &[save(pair)], At::LinkAbove),
    ] {
        let mut process = process::<Aarch64>();
        instructions(&mut process, CALLEE.begin() + offset, before, next);
        check(what, process, CALLEE, offset, at);
    }
}

#[test]
fn large_frames_are_made_in_two_steps() {
    for (words, size) in
        [(66, &[lower(512)][..]), (130, &[0xd280_8008, 0xcb28_63ff]), (130, &[0xd280_8008, 0xf2a0_0008, 0xcb28_63ff])]
    {
        let code = Code { frame_words: words, ..CALLEE };
        let made = [&BANG[..], &[PUSH_PAIR], size, &[NOP, NOP]].concat();
        let with_pointer = [&BANG[..], &[PUSH_PAIR, SET_FP], size, &[NOP, NOP]].concat();
        for made in [made, with_pointer] {
            let pushed = made.iter().position(|word| *word == PUSH_PAIR).unwrap();
            let whole = made.len() - 2;
            for step in 0..made.len() {
                let mut process = process::<Aarch64>();
                blob(&mut process, code, false);
                let offset = 0x14 + 4 * step as u64;
                instructions(&mut process, code.begin() + 0x14, &[], &made);
                let at = match step {
                    _ if step <= pushed => At::Link,
                    _ if step < whole => At::Pair,
                    _ => At::End,
                };
                check(&format!("{made:x?} {step}"), process, code, offset, at);
            }
        }
        let removed = [&[NOP, raise(512)][..], &[POP_PAIR, RET]].concat();
        for (step, at) in [At::End, At::End, At::Pair, At::Link].into_iter().enumerate() {
            let mut process = process::<Aarch64>();
            blob(&mut process, code, false);
            instructions(&mut process, code.begin() + BODY, &[], &removed);
            check("removed", process, code, BODY + 4 * step as u64, at);
        }
    }
}

/// Its pair is at the frame's end, and the frame pointer leads there.
#[test]
fn wrappers_and_stubs_push_the_pair_first() {
    let [bang, store] = BANG;
    // ldr x8, [x28, #8]; cbnz x8
    let exception = [0xf940_0788, 0xb500_0148];
    for (what, code, offset, before, next, at) in [
        ("class check", WRAPPER, 8, &[][..], &[NOP][..], At::Link),
        ("bang", WRAPPER, 0x14, &[NOP], &[bang, store, PUSH_PAIR], At::Link),
        ("the pair", WRAPPER, 0x1c, &[NOP, bang, store], &[PUSH_PAIR, SET_FP], At::Link),
        ("mov fp, sp", WRAPPER, 0x20, &[bang, store, PUSH_PAIR], &[SET_FP, lower(48)], At::Pair),
        ("sub sp", WRAPPER, 0x24, &[store, PUSH_PAIR, SET_FP], &[lower(48)], At::Pair),
        ("barrier", WRAPPER, 0x28, &[PUSH_PAIR, SET_FP, lower(48)], &[NOP], At::End),
        ("body", WRAPPER, BODY, &[], &[NOP], At::End),
        ("mov sp, fp", WRAPPER, BODY, &[], &[LEAVE, POP_PAIR], At::End),
        ("ldp", WRAPPER, BODY, &[LEAVE], &[POP_PAIR, RET], At::Pair),
        ("check of an exception", WRAPPER, BODY, &[LEAVE, POP_PAIR], &[exception[0], exception[1], RET], At::Link),
        ("cbnz", WRAPPER, BODY, &[LEAVE, POP_PAIR, exception[0]], &[exception[1], RET], At::Link),
        ("ret", WRAPPER, BODY, &[exception[0], exception[1]], &[RET], At::Link),
        ("jump to the exception's handler", WRAPPER, BODY, &[exception[1], RET], &FAR_JUMP, At::Link),
        ("far jump, br", WRAPPER, BODY, &[RET, FAR_JUMP[0], FAR_JUMP[1]], &FAR_JUMP[2..], At::Link),
        ("slow path", WRAPPER, BODY, &[RET, FAR_JUMP[0], FAR_JUMP[1], FAR_JUMP[2]], &[NOP], At::End),
        ("a stub's first", RUNTIME_STUB, 0, &[], &[NOP], At::Link),
        ("a stub's pair", RUNTIME_STUB, 4, &[PUSH_PAIR], &[SET_FP, lower(32)], At::Pair),
        ("a stub's body", RUNTIME_STUB, BODY, &[], &[NOP], At::End),
        ("a stub that jumps on", RUNTIME_STUB, BODY, &[LEAVE, POP_PAIR], &[0xd61f_0100], At::Link),
    ] {
        let mut process = process::<Aarch64>();
        instructions(&mut process, code.begin() + offset, before, next);
        check(what, process, code, offset, at);
    }
}

/// C++ was called, and keeps registers. What the code does next takes them off again.
#[test]
fn what_is_kept_on_the_stack_while_native_code_works_is_stepped_over() {
    const FUNCTION: u64 = 0x5666_0000;
    // ldp x2, x3, [sp, #16]; ldp x0, x1, [sp], #48
    let pop: &[u32] = &[0xa941_0fe2, 0xa8c3_07e0];
    // ld1 {v0.1d-v3.1d}, [sp], #32; ldp q4, q5, [sp], #32; ldr x8, [sp], #16
    let vectors: &[u32] = &[0x0cdf_2fe0, 0xacc1_17e4, 0xf841_07e8];
    for (what, code, kept) in [
        ("for a call of a leaf", [&[raise(16)], &[JUMP][..]].concat(), 2),
        ("for a call from a stub of a barrier", [pop, &[JUMP]].concat(), 6),
        ("with vectors", [vectors, pop, &[JUMP]].concat(), 16),
        ("room was made", [&[NOP, raise(0x120)], pop, &[JUMP]].concat(), 42),
        ("up to a branch", [pop, &[0x5400_0140, raise(16)]].concat(), 6),
        ("up to a test", [pop, &[0x3700_0140, raise(16)]].concat(), 6),
        ("behind another call", [pop, &[lower(32), 0xd63f_0100, raise(32), JUMP]].concat(), 6),
        ("up to the method's own end", [&[restore(32), raise(48), RET][..]].concat(), 0),
        ("nothing", vec![NOP; 80], 0),
        ("too much", [&[0x9140_07ff], &[JUMP][..]].concat(), 0),
    ] {
        let mut process = process::<Aarch64>();
        process.mappings.push(CodeMapping {
            start: FUNCTION,
            end: FUNCTION + 0x1000,
            bias: FUNCTION,
            first_row: 1,
            row_count: 1,
        });
        process.mappings.sort_by_key(|mapping| mapping.start);
        process.rows.push(UnwindRow { address: 0, cfa_words: 0, fp_words: 0, rule: rule::SP });
        let place = CALLEE.begin() + BODY;
        process.words(place, &[Aarch64::FILL; 80]);
        instructions(&mut process, place, &[], &code);
        // What is kept may look like a return address.
        let stack = [vec![RETURN; kept], vec![1, 2, 3, 4, 5, RETURN]].concat();
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let frames = vec![native(FUNCTION + 0x20), CALLEE.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
        let registers = Registers { live: Live { lr: place, ..Live::default() }, ..leaf(FUNCTION + 0x20) };
        assert_eq!(process.walk(registers), (frames, walk_end::ROOT), "{what}");
    }
}

/// Code that was interrupted between, too.
#[test]
fn what_is_being_kept_is_stepped_over() {
    // stp xzr, x9, [sp, #-16]!; blr x8
    let call: &[u32] = &[0xa9bf_27ff, 0xd63f_0100, raise(16), JUMP];
    // stp x0, x1, [sp, #-48]!; str x2, [sp, #-16]!; bl; ldr x2, [sp], #16; ldp x0, x1, [sp], #48
    let barrier: &[u32] = &[0xa9bd_07e0, 0xf81f_0fe2, 0x9400_1000, 0xf841_07e2, 0xa8c3_07e0, JUMP];
    for (code, kept) in [(call, &[0, 2, 2, 0][..]), (barrier, &[0, 6, 8, 8, 6, 0])] {
        for (step, kept) in (0..).zip(kept) {
            let mut process = process::<Aarch64>();
            process.words(CALLEE.begin() + BODY, &[Aarch64::FILL; 80]);
            instructions(&mut process, CALLEE.begin() + BODY, &[], code);
            let stack = [vec![7; *kept], vec![1, 2, 3, 4, 5, RETURN]].concat();
            process.words(STACK, &stack);
            caller_frame(&mut process, STACK + 8 * stack.len() as u64);
            let offset = BODY + 4 * step;
            assert_eq!(process.walk(leaf(CALLEE.begin() + offset)), expect(CALLEE.at(offset)), "{code:x?} {step}");
        }
    }
}

/// A plausible frame is not enough where the caller is not certain.
#[test]
fn a_frame_that_ends_at_no_return_address_ends_the_walk() {
    for (name, last) in [("data", 5), ("no call is there", RETURN + 4), ("no instruction", RETURN + 2)] {
        for code in [CALLEE, WRAPPER, RUNTIME_STUB] {
            // A stub may return to any place of a method, which has polled there.
            if code.name == RUNTIME_STUB.name && last == RETURN + 4 {
                continue;
            }
            let mut process = process::<Aarch64>();
            process.words(STACK, &[0; 40]).words(STACK + 8 * code.frame_words - 8, &[last]);
            let (frames, end) =
                process.walk(Registers { live: Live { lr: RETURN, ..Live::default() }, ..leaf(code.begin() + BODY) });
            assert_eq!((frames.len(), end), (1, walk_end::IMPLAUSIBLE), "{name}, {}", code.name);
        }
    }
}

/// The stub that handles it has a place in the method as its return address, which is no return address.
#[test]
fn a_method_that_polls_for_a_safepoint_is_the_caller_of_its_handler() {
    const FUNCTION: u64 = 0x5666_0000;
    let poll = BODY + 8;
    for fp in [0, STACK + 0x20] {
        let mut process = process::<Aarch64>();
        let mapping =
            CodeMapping { start: FUNCTION, end: FUNCTION + 0x1000, bias: FUNCTION, first_row: 1, row_count: 1 };
        process.mappings.push(mapping);
        process.mappings.sort_by_key(|mapping| mapping.start);
        process.rows.push(UnwindRow { address: 0, cfa_words: 0, fp_words: 0, rule: rule::SP });
        process.words(CALLEE.begin() + poll, &[Aarch64::FILL; 80]);
        let stack = [1, 2, 3, 4, 0, CALLEE.begin() + poll, 1, 2, 3, 4, 5, RETURN];
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let handler = RUNTIME_STUB.begin() + BODY;
        let (frames, end) =
            process.walk(Registers { fp, live: Live { lr: handler, ..Live::default() }, ..leaf(FUNCTION + 0x20) });
        let called = [native(FUNCTION + 0x20), RUNTIME_STUB.stub(BODY), CALLEE.call(poll)];
        assert_eq!((&frames[..3], end), (&called[..], walk_end::ROOT));
        assert_eq!(frames[3..], [CALLER.call(BODY), native(IN_LIBJVM)]);
    }
}

/// No call is in front of the handler that a deoptimised caller is returned to.
#[test]
fn a_caller_that_was_deoptimised_is_found_whatever_the_callee_does() {
    for handler in [CALLER.deopt_handler(), CALLER.deopt_handler() + 0x10] {
        for (what, next, lr, stack) in
            [("body", NOP, RETURN, &[1, 2, 3, 4, 5, handler][..]), ("ret", RET, handler, &[])]
        {
            let mut process = process::<Aarch64>();
            instructions(&mut process, CALLEE.begin() + BODY, &[], &[next]);
            process.words(STACK, stack).words(STACK + 8 * stack.len() as u64, &[0, 0, RETURN, IN_LIBJVM]);
            let registers = Registers { live: Live { lr, ..Live::default() }, ..leaf(CALLEE.begin() + BODY) };
            assert_eq!(process.walk(registers), expect(CALLEE.at(BODY)), "{what}");
        }
    }
}

/// Behind a step by the frame pointer, compiled code cannot be left: its frame is found by the stack pointer. The
/// interpreter's can.
#[test]
fn without_a_stack_pointer_only_frame_pointers_lead_on() {
    let fp = STACK + 0x100;
    for (to, is_known) in [(RETURN, false), (ENTRIES - 8, true), (WRAPPER.begin() + BODY, true)] {
        let mut process = process::<Aarch64>();
        process.rows[0].rule = rule::NONE;
        process.words(STACK, &[0; 64]).words(STACK + 0x20, &[fp, to]);
        let frame = if to == ENTRIES - 8 { RETURN } else { IN_LIBJVM };
        interpreted_frame(&mut process, fp, 0, fp + 16, STACK + 0x200, frame);
        let (frames, end) = process.walk(Registers { fp: STACK + 0x20, ..leaf(IN_LIBJVM) });
        assert_eq!(frames.len() > 2, is_known, "{to:#x}: {frames:?} {end}");
        assert!(is_known || end == walk_end::IMPLAUSIBLE, "{to:#x}: {end}");
    }
}
