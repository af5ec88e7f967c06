//! Tests stubs: what their rows say, and what is found without any.

use super::{
    super::{Aarch64, Live, Registers},
    std::vec,
};
use crate::{
    abi::{FrameRef, rule, sender_sp, walk_end},
    walk::tests::{MadeUp as _, STACK, hotspot::*, interpreted_frame, native},
};

/// stp fp, lr, [sp, #-16]!; mov fp, sp; ldp fp, lr, [sp], #16; ret
const PUSH_PAIR: u64 = 0xa9bf_7bfd;
const SET_FP: u64 = 0x9100_03fd;
const POP_PAIR: u64 = 0xa8c1_7bfd;
const RET: u64 = 0xd65f_03c0;
const NOP: u64 = Aarch64::FILL & 0xffff_ffff;

const fn two(first: u64, second: u64) -> u64 {
    first | second << 32
}

#[test]
fn a_stub_with_a_row_is_walked_by_it() {
    for (rule, cfa_words, fp_words, lr, stack) in [
        (rule::SP, 0, 0, RETURN, &[][..]),
        // Registers were saved, but the return address is where it was.
        (rule::SP, 4, 0, RETURN, &[1, 2, 3, 4]),
        (rule::SP, 4, -4, 0, &[0, RETURN, 1, 2]),
        (rule::SP, 4, -2, 0, &[1, 2, 0, RETURN]),
        (rule::SP_RETURN_ONLY, 2, -2, 0, &[1, RETURN]),
        // The last two words were pushed by the caller.
        (rule::SP_PUSHED, 4, 2, RETURN, &[1, 2, 3, 4, 5, 6]),
        // Without a rule, by what is left of the call.
        (rule::UNSUPPORTED, 0, 0, RETURN, &[]),
        (rule::NONE, 0, 0, RETURN, &[]),
    ] {
        let mut process = with_row::<Aarch64>(rule, cfa_words, fp_words);
        // The return address alone is at the row's place, where the frame pointer would be.
        let shift = if rule == rule::SP_RETURN_ONLY { 8 } else { 0 };
        process.words(STACK - 8, &[0; 12]).words(STACK - shift, stack);
        if shift != 0 {
            process.words(STACK, &[RETURN]);
        }
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let registers = Registers { live: Live { lr, ..Live::default() }, ..leaf(ADAPTER.begin() + BODY) };
        assert_eq!(process.walk(registers), expect(ADAPTER.stub(BODY)), "rule {rule}, {stack:x?}");
    }
}

#[test]
fn stubs_are_read_by_what_is_left_of_the_call() {
    let (nops, fp, far) = ([Aarch64::FILL; 2], STACK + 0x20, STACK + 0x200);
    for (what, code, before, next, stack, fp, lr) in [
        ("no frame", ADAPTER, nops, nops, &[][..], 0, RETURN),
        ("before the pair", ADAPTER, nops, [two(PUSH_PAIR, SET_FP), Aarch64::FILL], &[], 0, RETURN),
        (
            "the pair",
            ADAPTER,
            [Aarch64::FILL, two(NOP, PUSH_PAIR)],
            [two(SET_FP, NOP), Aarch64::FILL],
            &[0, RETURN],
            0,
            RETURN,
        ),
        ("frame pointer", ADAPTER, nops, nops, &[1, 2, 3, 4, 0, RETURN], fp, RETURN),
        ("frame pointer, behind a call", ADAPTER, nops, nops, &[1, 2, 3, 4, 0, RETURN], fp, ADAPTER.begin() + 0x60),
        ("frame pointer of a caller", ADAPTER, nops, nops, &[], far, RETURN),
        ("before the end", ADAPTER, nops, [two(POP_PAIR, RET), Aarch64::FILL], &[0, RETURN], far, 1),
        ("at the end", ADAPTER, [Aarch64::FILL, two(NOP, POP_PAIR)], [two(RET, NOP), Aarch64::FILL], &[], far, RETURN),
        ("vtable", VTABLE_STUB, nops, nops, &[], 0, RETURN),
        ("of known size", RUNTIME_STUB, nops, nops, &[1, 2, 3, 4, 0, RETURN], 0, 1),
        ("of known size, aligned", RUNTIME_STUB, nops, nops, &[1, 2, 3, 4, 5, 6, 0, RETURN], STACK + 0x30, 1),
        ("of known size, the pair", RUNTIME_STUB, nops, [two(POP_PAIR, RET), Aarch64::FILL], &[0, RETURN], STACK, 1),
        ("of known size, at its end", RUNTIME_STUB, nops, [two(RET, NOP), Aarch64::FILL], &[], 0, RETURN),
    ] {
        let mut process = process::<Aarch64>();
        let pc = code.begin() + BODY;
        // What was called before stands in front of the instructions.
        process.words(pc - 16, &before).words(pc, &next).words(STACK, &[0; 4]).words(STACK, stack);
        process.words(far, &[0, IN_LIBJVM]);
        let pc_of_call = ADAPTER.begin() + 0x60;
        process.words(pc_of_call - 8, &[two(NOP, 0x9400_0004)]);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(
            process.walk(Registers { fp, live: Live { lr, ..Live::default() }, ..leaf(pc) }),
            expect(code.stub(BODY)),
            "{what}"
        );
    }
}

/// What is in the register is trusted only if it can be.
#[test]
fn a_link_register_that_leads_nowhere_ends_the_walk() {
    for (code, lr) in [(ADAPTER, RETURN + 4), (VTABLE_STUB, RETURN + 4), (VTABLE_STUB, 0), (VTABLE_STUB, RETURN + 2)] {
        let process = process::<Aarch64>();
        let walked = process.walk(Registers { live: Live { lr, ..Live::default() }, ..leaf(code.begin() + BODY) });
        assert_eq!(walked, (vec![code.stub(BODY)], walk_end::IMPLAUSIBLE), "{lr:#x}");
    }
}

/// Arguments are moved to below the caller's stack pointer, which the interpreter is then given. Other code has anything
/// in that register, such as the stack pointer of a caller farther up.
#[test]
fn an_adapter_keeps_its_callers_stack_pointer() {
    for (register, mov, room, is_moved) in [
        (sender_sp::X13, 0x9100_03ed, 0xd100_83ff, true),
        (sender_sp::X19, 0x9100_03f3, 0xd100_83ff, true),
        (sender_sp::X19, 0x9100_03f3, 0xd100_43ff, false),
        (sender_sp::X19, 0x9100_03ed, 0xd100_83ff, false),
    ] {
        for behind in [1, 2, 20] {
            let mut process = process::<Aarch64>();
            process.jvm.as_mut().unwrap().sender_sp = register;
            let pc = ADAPTER.begin() + BODY;
            process.words(pc - 4 * behind - 8, &[two(mov, room)]);
            let sender_sp = STACK + 0x20;
            process.words(STACK, &[0; 8]);
            caller_frame(&mut process, if is_moved { sender_sp } else { STACK });
            let mut registers = Registers { live: Live { lr: RETURN, ..Live::default() }, ..leaf(pc + 4) };
            *if register == sender_sp::X13 { &mut registers.live.x13 } else { &mut registers.live.x19 } = sender_sp;
            assert_eq!(process.walk(registers), expect(ADAPTER.stub(BODY + 4)), "{mov:x}, {behind} instructions");
        }
    }
}

/// The interpreter's methods return to the same place, and its frame pointer is still in the register.
#[test]
fn an_adapter_called_by_the_interpreter_is_not_its_frame() {
    let mut process = process::<Aarch64>();
    let (to, fp, caller_fp) = (INTERPRETER + 0x40, STACK + 0x80, STACK + 0x100);
    process.words(STACK, &[0; 8]);
    interpreted_frame(&mut process, fp, 0, fp + 16, caller_fp, to);
    interpreted_frame(&mut process, caller_fp, 0, caller_fp + 16, 0, RETURN);
    caller_frame(&mut process, caller_fp + 16);
    let method = FrameRef::Interpreted { method: METHOD, bci: 0 };
    let frames = vec![ADAPTER.stub(BODY), method, method, CALLER.call(BODY), native(IN_LIBJVM)];
    let registers = Registers { fp, live: Live { lr: to, ..Live::default() }, ..leaf(ADAPTER.begin() + BODY) };
    assert_eq!(process.walk(registers), (frames, walk_end::ROOT));
}

/// Native code keeps the frame pointer, but not the link register.
#[test]
fn a_stub_that_called_native_code_has_a_frame_pointer() {
    for (is_frame, end) in [(true, walk_end::ROOT), (false, walk_end::IMPLAUSIBLE)] {
        let mut process = process::<Aarch64>();
        process.words(STACK, &[0, ADAPTER.begin() + BODY, 1, 2, 0, if is_frame { RETURN } else { 3 }]);
        caller_frame(&mut process, STACK + 0x30);
        // A runtime stub without a frame pointer of its own, of two words.
        let callee = Code { frame_words: 2, ..RUNTIME_STUB };
        blob(&mut process, callee, false);
        let registers =
            Registers { fp: STACK + 0x20, live: Live { lr: RETURN, ..Live::default() }, ..leaf(callee.begin() + BODY) };
        process.words(STACK, &[STACK + 0x20]);
        let (frames, found) = process.walk(registers);
        let expected = [callee.stub(BODY), ADAPTER.stub(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
        assert_eq!((&frames[..], found), (&expected[..frames.len()], end));
        assert_eq!(frames.len(), if is_frame { 4 } else { 2 });
    }
}
