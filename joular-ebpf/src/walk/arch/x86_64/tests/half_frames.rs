//! Tests code of a JVM that is making its frame or removing it, or has pushed something beside it.

use super::{
    super::{Registers, X86_64},
    std::{vec, vec::Vec},
};
use crate::{
    abi::{CodeMapping, UnwindRow, rule, walk_end},
    walk::tests::{
        STACK,
        hotspot::{
            BODY, CALLEE, CALLER, Code, IN_LIBJVM, METHOD, NATIVE, RETURN, RUNTIME_STUB, WRAPPER, blob, caller_frame,
            expect, leaf, process,
        },
        native,
    },
};

/// The byte before the program counter is the last one of `before`; the words are
/// on the stack from the top on.
#[test]
fn prologues_and_epilogues_are_recognised() {
    let whole: &[u64] = &[1, 2, 3, 4, 5, RETURN];
    let none: &[u64] = &[RETURN];
    let pushed: &[u64] = &[0, RETURN];
    for (what, offset, before, next, stack) in [
        ("class check", 4, &[][..], &[0x90][..], none),
        ("stack bang", 0x10, &[], &[0x89, 0x84, 0x24, 0, 0, 0xfe, 0xff, 0x55], none),
        ("push rbp", 0x17, &[], &[0x55, 0x48, 0x83, 0xec, 0x20], none),
        ("mov rbp, rsp", 0x18, &[0x55], &[0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x20], pushed),
        ("mov rbp, rsp, the other", 0x18, &[0x55], &[0x48, 0x89, 0xe5], pushed),
        ("sub rsp, 8 bits", 0x18, &[0x55], &[0x48, 0x83, 0xec, 0x20], pushed),
        ("sub rsp, 32 bits", 0x18, &[0x55], &[0x48, 0x81, 0xec, 0x20, 0, 0, 0], pushed),
        ("sub rsp before a store", 0x10, &[], &[0x48, 0x81, 0xec, 0x28, 0, 0, 0, 0x48, 0x89, 0x6c, 0x24, 0x20], none),
        (
            "mov rbp, rsp behind the store",
            0x20,
            &[0x48, 0x89, 0x6c, 0x24, 0x20],
            &[0x48, 0x8b, 0xec, 0x48, 0x83, 0xc5, 0x20],
            whole,
        ),
        ("the store", 0x17, &[], &[0x48, 0x89, 0x6c, 0x24, 0x20], whole),
        ("entry barrier", 0x1c, &[0x20], &[0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0], whole),
        ("add rsp", BODY, &[], &[0x48, 0x83, 0xc4, 0x20, 0x5d], whole),
        ("pop and cmp poll", BODY, &[], &[0x5d, 0x49, 0x3b, 0x67, 0x10, 0x0f, 0x87, 0, 0, 0, 0, 0xc3], pushed),
        (
            "pop and far cmp poll",
            BODY,
            &[],
            &[0x5d, 0x49, 0x3b, 0xa7, 0, 1, 0, 0, 0x0f, 0x87, 0, 0, 0, 0, 0xc3],
            pushed,
        ),
        ("pop and page poll", BODY, &[], &[0x5d, 0x4d, 0x8b, 0x97, 0, 1, 0, 0, 0x41, 0x85, 0x02, 0xc3], pushed),
        ("pop and global poll", BODY, &[], &[0x5d, 0x85, 0x05, 0, 0, 0, 0, 0xc3], pushed),
        ("pop and ret", BODY, &[], &[0x5d, 0xc3], pushed),
        ("cmp poll", BODY, &[], &[0x49, 0x3b, 0x67, 0x10, 0x0f, 0x87, 0, 0, 0, 0, 0xc3], none),
        ("ja", BODY, &[], &[0x0f, 0x87, 0, 0, 0, 0, 0xc3], none),
        ("near page poll", BODY, &[], &[0x4d, 0x8b, 0x57, 0x10, 0x41, 0x85, 0x02, 0xc3], none),
        ("test", BODY, &[], &[0x41, 0x85, 0x02, 0xc3], none),
        ("ret", BODY, &[], &[0xc3], none),
        ("a poll in a loop", BODY, &[], &[0x4d, 0x8b, 0x57, 0x10, 0x41, 0x85, 0x02, 0x90], whole),
    ] {
        let mut process = process::<X86_64>();
        let pc = CALLEE.begin() + offset;
        process.code(pc - before.len() as u64, before).code(pc, next).words(STACK, stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(pc)), expect(CALLEE.at(offset)), "{what}");
    }
}

/// Where a frame is not there, something that looks like its return address may be where that was.
#[test]
fn no_old_return_address_is_taken_for_one() {
    let old = CALLEE.begin() + BODY;
    // Far out of the block, and within it.
    let out = |code: &[u8]| [code, &[0xe9, 0, 0, 2, 0]].concat();
    let within = |code: &[u8]| [code, &[0xe9, 0x10, 0, 0, 0]].concat();
    let note: &[u8] = &[0x4d, 0x89, 0x97, 0x60, 3, 0, 0];
    let movabs = |rest: &[u8]| [&[0x49, 0xba, 1, 2, 3, 4, 5, 6, 0, 0], rest].concat();
    let lea = |rest: &[u8]| [&[0x4c, 0x8d, 0x15, 1, 2, 3, 4], rest].concat();
    let whole: &[u64] = &[1, 2, 3, 4, 5, RETURN];
    let wrapper_frame: &[u64] = &[old, old, 3, 4, 5, 6, 7, RETURN];
    let none: &[u64] = &[RETURN];
    let pushed: &[u64] = &[0, RETURN];
    for (what, code, offset, before, next, stack) in [
        ("second entry", CALLEE, BODY, vec![0xc3], vec![0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55], none),
        ("a store above the stack pointer", CALLEE, BODY, vec![], vec![0x89, 0x84, 0x24, 0x98, 0, 0, 0, 0x90], whole),
        ("second push rbp", CALLEE, BODY, vec![], vec![0x55, 0x48, 0x83, 0xec, 0x50], none),
        ("second sub rsp", CALLEE, BODY, vec![0x55], vec![0x48, 0x83, 0xec, 0x50], pushed),
        ("pop before a jump", CALLEE, BODY, vec![], out(&[0x5d]), pushed),
        ("jump behind a pop", CALLEE, BODY, vec![0x5d], out(&[]), none),
        ("jump behind a constant", CALLEE, BODY, vec![0x5d], within(&[]), whole),
        ("jump from a frame", CALLEE, BODY, vec![], out(&[]), whole),
        ("poll stub", CALLEE, BODY, vec![], movabs(&out(note)), none),
        ("poll stub with lea", CALLEE, BODY, vec![], lea(&out(note)), none),
        ("poll stub's note", CALLEE, BODY, vec![], out(note), none),
        ("poll stub's jump", CALLEE, BODY, note.to_vec(), out(&[]), none),
        ("no poll stub", CALLEE, BODY, vec![], movabs(&within(note)), whole),
        ("a store before a jump", CALLEE, BODY, vec![], within(note), whole),
        (
            "a wrapper's check",
            WRAPPER,
            BODY,
            vec![0xc9],
            vec![0x49, 0x81, 0x7f, 8, 0, 0, 0, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3],
            none,
        ),
        (
            "a wrapper's short check",
            WRAPPER,
            BODY,
            vec![0xc9],
            vec![0x49, 0x83, 0x7f, 8, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3],
            none,
        ),
        ("a wrapper's jne", WRAPPER, BODY, vec![], vec![0x0f, 0x85, 1, 0, 0, 0, 0xc3], none),
        ("a wrapper's ret", WRAPPER, BODY, vec![], vec![0xc3], none),
        ("a wrapper's jump", WRAPPER, BODY, vec![0xc3], out(&[]), none),
        ("a wrapper's body", WRAPPER, BODY, vec![], vec![0x90], wrapper_frame),
    ] {
        let mut process = process::<X86_64>();
        let pc = code.begin() + offset;
        process.code(pc - before.len() as u64, &before).code(pc, &next).words(STACK, &[old; 40]);
        let caller = STACK + 8 * stack.len() as u64;
        process.words(STACK, stack).words(caller, &[old, old, old, IN_LIBJVM]);
        let fp = if code.name == NATIVE && stack.len() > 1 { caller - 16 } else { 0 };
        assert_eq!(process.walk(Registers { fp, ..leaf(pc) }), expect(code.at(offset)), "{what}");
    }
}

/// Stubs to which a method jumps with an exception have the place where it was thrown as their return
/// address, and pop it before they jump to its handler. Others leave the return address to the method
/// to which they jump.
#[test]
fn stubs_that_jump_on_have_left_their_frames() {
    const BLOB: Code = Code { frame_words: 2, ..RUNTIME_STUB };
    let old = CALLEE.begin() + BODY;
    let load_rax: &[u8] = &[0x49, 0x8b, 0x87, 0xe0, 5, 0, 0];
    let load_rdx: &[u8] = &[0x49, 0x8b, 0x97, 0xe8, 5, 0, 0];
    let clear: &[u8] = &[0x49, 0xc7, 0x87, 0xe0, 5, 0, 0, 0, 0, 0, 0];
    let jump: &[u8] = &[0x41, 0xff, 0xe0];
    let frame: &[u64] = &[7, RETURN];
    for (what, offset, before, next, stack) in [
        ("push rbp", 0, &[][..], vec![0x55, 0x48, 0x8b, 0xec], &[RETURN][..]),
        ("mov rbp, rsp", 1, &[0x55], vec![0x48, 0x8b, 0xec], frame),
        ("sub rsp first", 0, &[], vec![0x48, 0x83, 0xec, 8], &[RETURN]),
        ("pop and jump", BODY, &[], vec![0x59, 0xff, 0xe1], &[RETURN]),
        ("jump", BODY, &[0x59], vec![0xff, 0xe1], &[]),
        // So end the stubs that find out what a call is to call.
        ("pop rbp and jump", BODY, &[], vec![0x5d, 0xff, 0xe0], frame),
        ("jump behind pop rbp", BODY, &[0x5d], vec![0xff, 0xe0], &[RETURN]),
        ("sub rsp", 1, &[0x52], vec![0x48, 0x83, 0xec, 8], &[RETURN]),
        ("mov [rsp], rbp", 5, &[0x52, 0x48, 0x83, 0xec, 8], vec![0x48, 0x89, 0x2c, 0x24], frame),
        ("body", BODY, &[], vec![0x90], frame),
        ("mov r8, rax", BODY, &[0x5a], vec![0x4c, 0x8b, 0xc0], &[]),
        ("mov rax, [r15 + n]", BODY, &[], [load_rax, load_rdx].concat(), &[]),
        ("mov rdx, [r15 + n]", BODY, &[], [load_rdx, clear].concat(), &[]),
        ("mov [r15 + n], 0", BODY, &[], [clear, jump].concat(), &[]),
        ("jmp r8", BODY, &[], jump.to_vec(), &[]),
    ] {
        let mut process = process::<X86_64>();
        blob(&mut process, BLOB, false);
        // The JVM does not say where such frames are complete.
        process.words(BLOB.block() + 32, &[0xffff_ffff]);
        let pc = BLOB.begin() + offset;
        process.code(pc - before.len() as u64, before).code(pc, &next).words(STACK - 16, &[old; 40]);
        let caller = STACK + 8 * stack.len() as u64;
        process.words(STACK, stack).words(caller, &[old, old, old, IN_LIBJVM]);
        if stack.is_empty() {
            process.words(STACK - 8, &[RETURN]);
        }
        assert_eq!(process.walk(leaf(pc)), expect(BLOB.stub(offset)), "{what}");
    }
}

/// C1 pushes two words around a type check, C2 more before it searches a string.
#[test]
fn a_return_address_farther_up_is_found() {
    for pushed in 1..=8 {
        let mut process = process::<X86_64>();
        let mut stack = vec![0; pushed];
        stack.extend([1, 2, 3, 4, 5, RETURN]);
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)), "{pushed}");
    }
}

/// An adapter that called the method has aligned the stack, and pushed the return address again.
#[test]
fn of_two_return_addresses_the_lower_one_is_the_frames() {
    let mut process = process::<X86_64>();
    process.words(STACK, &[0, 1, 2, 3, 4, 5, RETURN, RETURN, 0, 0, IN_LIBJVM]);
    assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)));
}

/// A handler of the JVM or of another profiler may run on top of such code.
#[test]
fn a_return_address_farther_up_is_found_below_a_signal() {
    const HANDLER: u64 = 0x5556_0000;
    const RESTORER: u64 = HANDLER + 0x200;
    let handler_stack = STACK - 0x2000;
    let mut process = process::<X86_64>();
    let row = |address, rule| UnwindRow { address, rule, cfa_words: 1, fp_words: 0 };
    process.rows.extend([row(0, rule::SP), row(0x200, rule::SIGNAL)]);
    process.mappings.push(CodeMapping {
        start: HANDLER,
        end: HANDLER + 0x1000,
        bias: HANDLER,
        first_row: 1,
        row_count: 2,
    });
    process.words(handler_stack, &[HANDLER + 0x20, HANDLER + 0x30, RESTORER + 1]);
    let context = handler_stack + 24;
    process.words(context + 80, &[0; 12]).words(context + 160, &[STACK, CALLEE.begin() + BODY]);
    process.words(STACK, &[0, 0, 1, 2, 3, 4, 5, RETURN]);
    caller_frame(&mut process, STACK + 64);
    let mut frames: Vec<_> = [HANDLER + 0x10, HANDLER + 0x20, HANDLER + 0x30, RESTORER + 1].map(native).into();
    let (interrupted, end) = expect(CALLEE.at(BODY));
    frames.extend(interrupted);
    assert_eq!(process.walk(Registers { pc: HANDLER + 0x10, sp: handler_stack, ..leaf(0) }), (frames, end));
}

/// C2 pushes what the stack pointer was, behind what it needs to search a string.
#[test]
fn a_stack_pointer_that_was_pushed_leads_to_the_frame() {
    for pushed in [1, 4, 8] {
        let mut process = process::<X86_64>();
        let mut stack = vec![STACK + 8 * pushed as u64];
        stack.resize(pushed, 7);
        stack.extend([1, 2, 3, 4, 5, RETURN]);
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)), "{pushed}");
    }
}

/// While it searches, it has both strings and a length there, which tell it from a pointer that happens
/// to lie there: in the frame there may be addresses of calls that returned.
#[test]
fn a_search_in_a_string_is_told_from_a_pointer_into_the_frame() {
    for copies in 0..3 {
        let mut process = process::<X86_64>();
        let pushed = 4 + 2 * copies;
        let mut stack = vec![STACK + 8 * pushed as u64, 0x6000, 0x6010, 2];
        stack.resize(pushed, RETURN);
        stack.extend([RETURN, RETURN, RETURN, RETURN, RETURN, RETURN]);
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)), "{copies} copies");
    }
    let mut process = process::<X86_64>();
    process.words(STACK, &[STACK + 32, 2, 3, METHOD << 8, 5, RETURN, 0, 0, 0, IN_LIBJVM]);
    assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)));
}

/// No call is in front of the handler that a deoptimised caller is returned to. The address that stood
/// there before may still lie farther up.
#[test]
fn a_caller_that_was_deoptimised_is_found_whatever_the_callee_does() {
    for handler in [CALLER.deopt_handler(), CALLER.deopt_handler() + 0x10] {
        for (what, next, stack) in [
            ("body", &[0x90][..], &[1, 2, 3, 4, 5, handler][..]),
            ("ret", &[0xc3], &[handler]),
            ("pop and ret", &[0x5d, 0xc3], &[0, handler]),
        ] {
            let mut process = process::<X86_64>();
            let frame = STACK + 8 * stack.len() as u64;
            process.code(CALLEE.begin() + BODY, next).words(STACK, stack);
            process.words(frame, &[0, 0, RETURN, IN_LIBJVM]);
            assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)), "{what}");
        }
    }
}

#[test]
fn registers_kept_on_the_stack_while_native_code_works_are_stepped_over() {
    const FUNCTION: u64 = 0x5666_0000;
    // mov rbx, rax; mov rcx, [rsp + 8]
    let restore = [0x48, 0x89, 0xc3, 0x48, 0x8b, 0x4c, 0x24, 0x08];
    for (what, code, kept) in [
        ("add rsp, 32; jmp", &[0x48, 0x83, 0xc4, 0x20, 0xe9][..], 4),
        ("add rsp, 288; jmp", &[0x48, 0x81, 0xc4, 0x20, 1, 0, 0, 0xe9], 36),
        ("add rsp, 32; pop rbp; ret", &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3], 0),
        ("jmp; sub rsp, 32; add rsp, 32", &[0xe9, 0, 0, 0, 0, 0x48, 0x83, 0xec, 0x20, 0x48, 0x83, 0xc4, 0x20], 0),
        ("add rsp, 0x100000", &[0x48, 0x81, 0xc4, 0, 0, 0x10, 0, 0xe9], 0),
        ("nothing", &[], 0),
    ] {
        let mut process = process::<X86_64>();
        process.mappings.push(CodeMapping {
            start: FUNCTION,
            end: FUNCTION + 0x1000,
            bias: FUNCTION,
            first_row: 1,
            row_count: 1,
        });
        process.mappings.sort_by_key(|mapping| mapping.start);
        process.rows.push(UnwindRow { address: 0, cfa_words: 1, fp_words: 0, rule: rule::SP });
        let place = CALLEE.begin() + BODY;
        process.words(place, &[0x9090_9090_9090_9090; 80]).code(place, &restore).code(place + 8, code);
        // What is kept may look like a return address.
        let stack = [vec![place], vec![RETURN; kept], vec![1, 2, 3, 4, 5, RETURN]].concat();
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let frames = vec![native(FUNCTION + 0x20), CALLEE.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
        assert_eq!(process.walk(leaf(FUNCTION + 0x20)), (frames, walk_end::ROOT), "{what}");
    }
}
