//! Tests stubs: what their rows say, and what is found without any.

use super::super::{Live, Registers, X86_64};
use crate::{
    abi::{rule, walk_end},
    walk::tests::{STACK, hotspot::*, native},
};

const COOKIE: u64 = u64::MAX;

#[test]
fn a_stub_with_a_row_is_walked_by_it() {
    // The stack pointer before it was aligned is two words below the return address.
    let kept = STACK + 0x18;
    for (rule, cfa_words, fp_words, stack) in [
        (rule::SP, 5, -2, &[RETURN, RETURN, 1, 0, RETURN][..]),
        (rule::SP, 5, 0, &[1, 2, 3, 4, RETURN]),
        (rule::KEPT_SP + 2, 1, -2, &[1, kept, 2, 0, RETURN]),
        // The last two words were pushed by the caller.
        (rule::SP_PUSHED, 3, 2, &[1, 2, RETURN, 3, 4]),
        // Without a rule, by what the stack holds.
        (rule::UNSUPPORTED, 0, 0, &[RETURN]),
        (rule::NONE, 0, 0, &[RETURN]),
    ] {
        let mut process = with_row::<X86_64>(rule, cfa_words, fp_words);
        process.words(STACK, &[0; 12]).words(STACK, stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(ADAPTER.begin() + BODY)), expect(ADAPTER.stub(BODY)), "rule {rule}, {stack:x?}");
    }
}

#[test]
fn stubs_are_read_by_what_the_stack_holds() {
    let fp = STACK + 0x20;
    for (what, code, next, stack, fp, rax) in [
        ("no frame", ADAPTER, &[0x90][..], &[RETURN][..], 0, 0),
        ("frame pointer", ADAPTER, &[0x90], &[1, 2, 3, 4, 0, RETURN], fp, 0),
        ("leave", ADAPTER, &[0xc9, 0xc3], &[1, 2, 3, 4, 0, RETURN], fp, 0),
        ("pushed", ADAPTER, &[0x48, 0x8b, 0xec], &[0, RETURN], 0, 0),
        ("pushed, not said", ADAPTER, &[0x90], &[0, RETURN], 0, 0),
        ("held in rax", ADAPTER, &[0x90], &[0], 0, RETURN),
        ("behind a cookie", ADAPTER, &[0x55], &[COOKIE, RETURN], 0, 0),
        ("pushed, behind a cookie", ADAPTER, &[0x48, 0x8b, 0xec], &[0, COOKIE, RETURN], 0, 0),
        ("frame pointer, behind a cookie", ADAPTER, &[0x90], &[1, 2, 3, 4, 0, COOKIE, RETURN], fp, 0),
        ("vtable", VTABLE_STUB, &[0x90], &[RETURN], 0, 0),
        ("of known size", RUNTIME_STUB, &[0x90], &[1, 2, 3, 4, 0, RETURN], 0, 0),
        ("of known size, at its end", RUNTIME_STUB, &[0xc9, 0xc3], &[1, 0, RETURN], STACK + 8, 0),
    ] {
        let mut process = process::<X86_64>();
        process.code(code.begin() + BODY, next).words(STACK, &[0; 4]).words(STACK, stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let registers = Registers { fp, live: Live { rax, ..Live::default() }, ..leaf(code.begin() + BODY) };
        assert_eq!(process.walk(registers), expect(code.stub(BODY)), "{what}");
    }
}

/// An entry barrier: the method that it was called by is whole already.
#[test]
fn a_cookie_is_passed_on_the_way_from_native_code() {
    let mut process = process::<X86_64>();
    process.words(STACK, &[ADAPTER.begin() + BODY, 1, 2, 0, COOKIE, RETURN]);
    caller_frame(&mut process, STACK + 0x30);
    let (frames, end) = process.walk(Registers { fp: STACK + 0x18, ..leaf(VTABLE_STUB.begin()) });
    let expected = [VTABLE_STUB.stub(0), ADAPTER.stub(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
    assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
}
