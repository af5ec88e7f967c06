//! Tests methods in the interpreter whose frames are not whole.

use super::{
    super::{Aarch64, Live, Registers},
    std::{vec, vec::Vec},
};
use crate::{
    abi::{FrameRef, sender_sp, walk_end},
    walk::tests::{MadeUp as _, STACK, hotspot::*, interpreted::interpreted, interpreted_frame, native},
};

/// The interpreter's callers return to code that no call stands before.
#[test]
fn a_method_being_entered_has_no_frame_yet() {
    let to = INTERPRETER + 0x40;
    let caller_fp = STACK + 0x100;
    let new_fp = STACK + 80;
    let signed = to | 0x55 << 55;
    for (what, method, lr, fp) in [
        ("at once", METHOD + 64, to, caller_fp),
        ("its address is signed", METHOD + 64, signed, caller_fp),
        ("the caller is the same method", METHOD, to, caller_fp),
        ("the frame pointer is set", METHOD + 64, to, new_fp),
        ("the frame pointer is set, the caller is the same method", METHOD, signed, new_fp),
    ] {
        for register in [sender_sp::X13, sender_sp::X19] {
            let mut process = process::<Aarch64>();
            process.jvm.as_mut().unwrap().sender_sp = register;
            let sender_sp = STACK + 96;
            process.words(STACK, &[0; 16]);
            if fp == new_fp {
                interpreted_frame(&mut process, fp, 0, 0, caller_fp, lr);
            }
            // The caller was called from the same place.
            interpreted_frame(&mut process, caller_fp, 0, caller_fp + 16, 0, to);
            process.words(caller_fp - 24, &[method]).words(method, &[0, CONST_METHOD]);
            let root_fp = caller_fp + 0x100;
            interpreted_frame(&mut process, root_fp, 0, root_fp + 16, 0, RETURN);
            process.words(caller_fp, &[root_fp]);
            caller_frame(&mut process, root_fp + 16);
            let mut registers =
                Registers { fp, live: Live { lr, x12: METHOD, x22: 1, ..Live::default() }, ..leaf(ENTRIES + 0x20) };
            *if register == sender_sp::X13 { &mut registers.live.x13 } else { &mut registers.live.x19 } = sender_sp;
            let caller = FrameRef::Interpreted { method, bci: 0 };
            let frames = vec![interpreted(0), caller, interpreted(0), CALLER.call(BODY), native(IN_LIBJVM)];
            assert_eq!(process.walk(registers), (frames, walk_end::ROOT), "{what}");
        }
    }
}

/// Compiled code has its own stack pointer, which an adapter has handed on.
#[test]
fn a_method_being_entered_knows_its_callers_stack_pointer() {
    for (sp, sender_sp) in [(STACK, STACK + 0x30), (STACK - 96, STACK), (STACK, STACK)] {
        let mut process = process::<Aarch64>();
        process.jvm.as_mut().unwrap().sender_sp = sender_sp::X19;
        caller_frame(&mut process, sender_sp);
        let registers = Registers {
            sp,
            live: Live { lr: RETURN, x12: METHOD, x19: sender_sp, ..Live::default() },
            ..leaf(ENTRIES + 0x20)
        };
        assert_eq!(process.walk(registers), expect(interpreted(0)), "{sp:#x} {sender_sp:#x}");
    }
}

/// It is built, and then the code that enters methods calls something: the link register is its own.
#[test]
fn a_method_that_was_entered_has_its_frame() {
    let fp = STACK + 0x100;
    for (what, lr, x19) in [("all is stored", RETURN, fp + 16), ("something was called", ENTRIES + 0x40, 7)] {
        let mut process = process::<Aarch64>();
        process.jvm.as_mut().unwrap().sender_sp = sender_sp::X19;
        call_before(&mut process, ENTRIES + 0x40, Aarch64::CALL);
        interpreted_frame(&mut process, fp, 0, fp + 16, 0, RETURN);
        caller_frame(&mut process, fp + 16);
        let registers =
            Registers { fp, live: Live { lr, x12: METHOD, x19, ..Live::default() }, ..leaf(ENTRIES + 0x20) };
        assert_eq!(process.walk(registers), expect(interpreted(0)), "{what}");
    }
}

/// The caller's stack may have been cut back below the frame that calls.
#[test]
fn a_callers_stack_pointer_is_not_below_the_frames_end() {
    let fp = STACK + 0x80;
    for sender_sp in [fp - 0x50, fp, fp + 16] {
        let mut process = process::<Aarch64>();
        interpreted_frame(&mut process, fp, 0, sender_sp, 0, RETURN);
        caller_frame(&mut process, fp + 16);
        assert_eq!(process.walk(Registers { fp, ..leaf(INTERPRETER + 0x20) }), expect(interpreted(0)));
    }
}

#[test]
fn a_method_being_left_has_no_frame_any_more() {
    // ldp fp, lr, [sp], #16; autia lr, fp; and sp, x20, #-16; ret
    let code = [0xa8c1_7bfd_u32, 0xdac1_13be, 0x927c_ee9f, 0xd65f_03c0];
    let is_signed = |step| step < 2;
    for (step, plain) in [(1, false), (2, false), (3, false), (1, true), (2, true)] {
        let mut process = process::<Aarch64>();
        let code: Vec<u32> = code.into_iter().filter(|word| !plain || *word != 0xdac1_13be).collect();
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        process.words(INTERPRETER + 0x18, &[Aarch64::FILL; 6]).code(INTERPRETER + 0x20, &bytes);
        let pc = INTERPRETER + 0x20 + 4 * step;
        // The frame's words are still there, and arguments above them until the stack pointer is restored.
        let sender_sp = STACK + 0x20;
        process.words(STACK - 24, &[sender_sp, 0, RETURN]).words(STACK, &[0; 4]);
        caller_frame(&mut process, sender_sp);
        let is_restored = step as usize + 1 == code.len();
        let signature = if is_signed(step) && !plain { 0x2a << 55 } else { 0 };
        let sp = if is_restored { sender_sp } else { STACK };
        let registers = Registers { sp, live: Live { lr: RETURN | signature, ..Live::default() }, ..leaf(pc) };
        let expected = expect(FrameRef::Blob { offset: (pc - HEAP) as u32 });
        assert_eq!(process.walk(registers), expected, "{step}, plain {plain}");
    }
}
