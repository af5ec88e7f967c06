//! Tests methods in the interpreter whose frames are not whole.

use super::{
    super::{Live, Registers, X86_64},
    std::vec,
};
use crate::{
    abi::{FrameRef, walk_end},
    walk::tests::{STACK, hotspot::*, interpreted::*, interpreted_frame, native},
};

/// The interpreter's callers return to code that no call stands before.
#[test]
fn a_method_being_entered_has_no_frame_yet() {
    let to = INTERPRETER + 0x40;
    let caller_fp = STACK + 0x100;
    for (what, code, stack, fp, rax) in [
        ("at once", &[0x90][..], &[to][..], caller_fp, 0),
        ("locals are pushed", &[0x90], &[0, 0, 0], caller_fp, to),
        ("room for a local", &[0x48, 0x83, 0xec, 8], &[0, 0, 0], caller_fp, to),
        ("rbp is pushed", &[0x48, 0x8b, 0xec], &[caller_fp, to], caller_fp, 0),
        ("the frame pointer is set", &[0x90], &[0, STACK + 0x50, caller_fp, to], STACK + 16, 0),
    ] {
        let mut process = process::<X86_64>();
        process.code(ENTRIES + 0x20, code).words(STACK, &[0; 8]).words(STACK, stack);
        interpreted_frame(&mut process, caller_fp, 0, caller_fp + 16, 0, RETURN);
        process.words(caller_fp - 24, &[METHOD + 64]).words(METHOD + 64, &[0, CONST_METHOD]);
        caller_frame(&mut process, caller_fp + 16);
        let registers = Registers { fp, live: Live { rax, rbx: METHOD, r13: STACK + 0x50 }, ..leaf(ENTRIES + 0x20) };
        let caller = FrameRef::Interpreted { method: METHOD + 64, bci: 0 };
        let frames = vec![interpreted(0), caller, CALLER.call(BODY), native(IN_LIBJVM)];
        assert_eq!(process.walk(registers), (frames, walk_end::ROOT), "{what}");
    }
}

#[test]
fn an_intrinsic_calls_its_stub_without_a_frame() {
    let entry = ENTRIES + 0x20;
    for (next, added) in [(&[0x90; 4], 0), (&[0x48, 0x83, 0xc4, 8], 1)] {
        // Far above, an older frame that the frame pointer still points at.
        let (mut process, fp) = (process::<X86_64>(), STACK + 0x200);
        interpreted_frame(&mut process, fp, 0, fp + 16, 0, RETURN);
        // The stub has no frame, and the caller's stack pointer is above its arguments.
        process.code(entry - 5, &[0xe8, 0, 0, 0, 0]).code(entry, next);
        let mut stack = vec![entry];
        stack.resize(1 + added, 0);
        stack.extend([RETURN, 1, 2, 3]);
        process.words(STACK, &stack);
        let sender_sp = STACK + 8 * stack.len() as u64;
        caller_frame(&mut process, sender_sp);
        let registers = Registers { fp, live: Live { r13: sender_sp, ..Live::default() }, ..leaf(VTABLE_STUB.begin()) };
        let frames = vec![
            VTABLE_STUB.stub(0),
            FrameRef::Blob { offset: (entry - HEAP) as u32 },
            CALLER.call(BODY),
            native(IN_LIBJVM),
        ];
        assert_eq!(process.walk(registers), (frames, walk_end::ROOT), "{added} words added");
    }
}

#[test]
fn a_method_being_left_has_no_frame_any_more() {
    let code = [0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5];
    for (skipped, stack_bytes, r13) in [(0, 8, 0), (2, 8, RETURN), (5, 0, RETURN)] {
        let mut process = process::<X86_64>();
        process.code(INTERPRETER + 0x20, &code).words(STACK, &[RETURN]);
        caller_frame(&mut process, STACK + stack_bytes);
        let pc = INTERPRETER + 0x20 + skipped;
        let registers = Registers { live: Live { rbx: STACK + 8, r13, ..Live::default() }, ..leaf(pc) };
        assert_eq!(process.walk(registers), expect(FrameRef::Blob { offset: (pc - HEAP) as u32 }), "{skipped}");
    }
}
