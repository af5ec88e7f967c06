//! Tests stacks of virtual threads, which stand on those of their carriers.

use std::vec;

use super::{
    hotspot::{
        BODY, CALLER, CONTINUATION, Code, HEAP, IN_LIBJVM, INTERPRETER, LIBJVM, NATIVE, RETURN, VTABLE_STUB, blob,
        call_before, caller_frame, leaf, process,
    },
    *,
};

for_each_arch!(
    a_resumed_virtual_thread_was_entered_where_its_entry_is,
    a_wrapper_that_aligned_its_stack_enters_no_virtual_thread,
    a_virtual_threads_stack_goes_on_in_the_heap,
    a_virtual_thread_is_brought_from_the_heap,
);

/// The method through which a carrier enters a virtual thread: its frame is a `ContinuationEntry`, the carrier's
/// frame pointer and a return address.
pub(super) const ENTER_SPECIAL: Code = Code { segment: 112, name: NATIVE, compile_id: 10, frame_words: 10 };

/// A function of C++ without a frame.
pub(super) fn without_frame<A: MadeUp>() -> UnwindRow {
    let (rule, cfa_words) = A::NO_FRAME;
    UnwindRow { address: 0x800, rule, cfa_words, fp_words: 0 }
}

/// A `Continuation`, of which nothing is known but here.
pub(super) const OBJECT: u64 = 0x6000;

/// A `ContinuationEntry` of a virtual thread whose lowest frame has so many words of arguments.
pub(super) fn entry(arguments: u64) -> [u64; 8] {
    [0xdead, 0, OBJECT, 0, 1 | arguments << 32, STACK, 0, 0]
}

/// The JVM copies frames from the heap as they were. The lowest one's frame pointer is that of an earlier entry: on
/// another carrier's stack, or anywhere on this one's.
fn a_resumed_virtual_thread_was_entered_where_its_entry_is<A: MadeUp>() {
    for stale in (0..40).map(|words| STACK + 8 * words).chain([0, STACK - 0x1000, STACK + 0x10_0000]) {
        let mut process = process::<A>();
        blob(&mut process, ENTER_SPECIAL, false);
        process.words(STACK, &[ENTER_SPECIAL.begin() + BODY]).words(STACK + 8, &entry(0));
        process.words(STACK + 72, &[0, RETURN]);
        caller_frame(&mut process, STACK + 88);
        // Other frames of the carrier, where a wrong step finds what looks like a caller.
        process.words(STACK + 120, &[0, RETURN, 0, 0, 0, IN_LIBJVM]).words(STACK + 168, &[0, RETURN, 0, 0, 0, RETURN]);
        let frames = vec![VTABLE_STUB.stub(0), ENTER_SPECIAL.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
        let walked = process.walk(A::called(&process, Registers { fp: stale, ..leaf(VTABLE_STUB.begin()) }));
        assert_eq!(walked, (frames, walk_end::ROOT), "{stale:#x}");
        assert_eq!(process.enters.get(), ENTER_SPECIAL.begin() + BODY);
    }
}

/// What looks like an entry is none if no carrier's return address is behind it.
fn a_wrapper_that_aligned_its_stack_enters_no_virtual_thread<A: MadeUp>() {
    let mut process = process::<A>();
    blob(&mut process, ENTER_SPECIAL, false);
    process.words(STACK, &[ENTER_SPECIAL.begin() + BODY]).words(STACK + 8, &entry(0));
    process.words(STACK + 72, &[1, 0, RETURN]);
    caller_frame(&mut process, STACK + 96);
    let frames = vec![VTABLE_STUB.stub(0), ENTER_SPECIAL.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
    let walked = process.walk(A::called(&process, Registers { fp: STACK + 80, ..leaf(VTABLE_STUB.begin()) }));
    assert_eq!(walked, (frames, walk_end::ROOT));
}

/// What there is of a virtual thread, and then its carrier, where nothing in the heap can be read; with the gap, that
/// is not a whole stack. Above are arguments, which are anything, and then what the JVM keeps.
fn a_virtual_threads_stack_goes_on_in_the_heap<A: MadeUp>() {
    let frozen = FrameRef::Blob { offset: (CONTINUATION + 0x20 - HEAP) as u32 };
    let frames = vec![VTABLE_STUB.stub(0), frozen, CALLER.call(BODY), native(IN_LIBJVM)];
    // An entry that was left long ago, and what looks like one.
    let old = [&[0][..], &entry(0), &[0, RETURN]].concat();
    let other = [&entry(2)[..], &[0, RETURN]].concat();
    for arguments in [&[][..], &[RETURN], &[7, INTERPRETER + 8], &[0; 8], &[0, 7, 0, 1, 0], &old, &other] {
        let padding = arguments.len() % 2;
        let mut process = process::<A>();
        let entry = entry(arguments.len() as u64);
        let stack = [&[CONTINUATION + 0x20], arguments, &[0][..padding], &entry, &[0, RETURN]].concat();
        process.words(STACK, &stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(
            process.walk(A::called(&process, leaf(VTABLE_STUB.begin()))),
            (frames.clone(), walk_end::FROZEN),
            "{arguments:?}"
        );
        // Nothing that could be the carrier's.
        process.words(STACK + 8, &[0; 30]);
        assert_eq!(
            process.walk(A::called(&process, leaf(VTABLE_STUB.begin()))),
            (frames[..2].to_vec(), walk_end::FROZEN)
        );
    }
}

/// C++ copies frames to where the stack will be: only the frame pointer tells.
fn a_virtual_thread_is_brought_from_the_heap<A: MadeUp>() {
    let mut process = process::<A>();
    let cpp = LIBJVM + 0x800;
    process.rows.push(without_frame::<A>());
    process.mappings[0].row_count = 2;
    process.words(STACK, &[CONTINUATION + 0x20, RETURN + 1, RETURN, 0, 0, 0, 0, 0, 0, RETURN]);
    caller_frame(&mut process, STACK + 80);
    process.words(CONTINUATION + 0x18, &[A::FILL; 2]);
    call_before(&mut process, CONTINUATION + 0x20, A::CALL);
    let frozen = FrameRef::Blob { offset: (CONTINUATION + 0x20 - HEAP) as u32 };
    let frames = vec![native(cpp), frozen, CALLER.call(BODY), native(IN_LIBJVM)];
    let registers = A::called(&process, Registers { fp: STACK + 64, ..leaf(cpp) });
    assert_eq!(process.walk(registers), (frames, walk_end::FROZEN));
}
