//! Tests stacks of virtual threads whose older part is in the heap.

use std::{vec, vec::Vec};

use proptest::prelude::*;

use super::{
    continuation::{ENTER_SPECIAL, OBJECT, entry, without_frame},
    hotspot::{
        BODY, CALLEE, CALLER, CONST_METHOD, CONTINUATION, HEAP, IN_LIBJVM, INTERPRETER, LIBJVM, METHOD, RETURN,
        VTABLE_STUB, WRAPPER, blob, caller_frame, leaf, process,
    },
    *,
};
use crate::abi::references;

for_each_arch!(
    compiled_frames_are_read_from_the_heap,
    the_method_that_entered_the_thread_is_its_root,
    the_end_of_a_chunk_is_told_by_its_bottom,
    interpreted_frames_in_the_heap_count_from_themselves,
    a_chunk_goes_on_in_its_parents,
    chunks_that_lead_to_each_other_end,
    a_chunk_that_makes_no_sense_is_left_out,
    references_are_written_in_several_ways,
    frames_are_not_counted_twice_while_they_are_put_into_the_heap,
    a_thread_in_native_code_has_frames_in_the_heap,
    a_deep_stack_in_the_heap_keeps_its_leaf_side,
    a_damaged_chunk_does_not_hide_the_carrier,
);

const BARRIER: u64 = CONTINUATION + 0x20;
const NEWEST: u64 = 0x2_0000_0000;
const OLDER: u64 = 0x1_0000_0000;
/// Words of a chunk that no frame has any more.
const FREE: u64 = 3;
/// What the interpreter goes on at, and what a method that was called by `CALLEE` returns to.
const INTERPRETED: u64 = INTERPRETER + 8;
const IN_CALLEE: u64 = CALLEE.begin() + BODY;
const BYTECODE: u64 = CONST_METHOD + 0x30 + 5;

/// A chunk of these words, from what was saved in front of its newest frame on, the last ones being arguments.
fn chunk<A: Arch>(process: &mut MadeUpProcess<A>, at: u64, words: &[u64], arguments: u64, parent: u64) {
    let size = FREE + words.len() as u64;
    let sp = if words.is_empty() { size } else { FREE + 2 };
    process.words(at, &[0; 5]).words(at + 40, &[parent]).words(at + 48, &[7; FREE as usize]);
    fields(process, at, sp, size - arguments, size);
    process.words(at + 48 + FREE * 8, words);
}

fn fields<A: Arch>(process: &mut MadeUpProcess<A>, at: u64, sp: u64, bottom: u64, size: u64) {
    for (offset, value) in [(12, size), (24, sp), (28, bottom)] {
        process.code(at + offset, &(value as u32).to_le_bytes());
    }
}

/// Words of compiled frames that return to these places; what they return to last was not kept.
fn compiled(returns: &[u64]) -> Vec<u64> {
    let mut words = vec![0, returns[0]];
    for (pc, next) in returns.iter().zip(returns.iter().skip(1).chain(&[0])) {
        let frame_words = if *pc == RETURN { CALLER.frame_words } else { CALLEE.frame_words };
        words.resize(words.len() + frame_words as usize - 1, 0);
        words.push(*next);
    }
    words
}

/// A thread of which one frame is on the stack, and its continuation.
fn thread<A: MadeUp>() -> MadeUpProcess<A> {
    let mut process = process::<A>();
    process.words(STACK, &[BARRIER]).words(STACK + 8, &entry(0)).words(STACK + 72, &[0, RETURN]);
    caller_frame(&mut process, STACK + 88);
    process.words(OBJECT + 32, &[NEWEST]);
    process
}

fn walk<A: MadeUp>(process: &MadeUpProcess<A>) -> (Vec<FrameRef>, u8) {
    process.walk(A::called(process, leaf(VTABLE_STUB.begin())))
}

/// What is on the stack, these frames, and the carrier.
fn whole(frames: &[FrameRef]) -> (Vec<FrameRef>, u8) {
    let carrier = [CALLER.call(BODY), native(IN_LIBJVM)];
    ([&[VTABLE_STUB.stub(0)], frames, &carrier].concat(), walk_end::ROOT)
}

fn frozen() -> (Vec<FrameRef>, u8) {
    (whole(&[FrameRef::Blob { offset: (BARRIER - HEAP) as u32 }]).0, walk_end::FROZEN)
}

fn compiled_frames_are_read_from_the_heap<A: MadeUp>() {
    for arguments in 0..3 {
        let mut process = thread::<A>();
        let mut words = compiled(&[RETURN, IN_CALLEE, IN_CALLEE, RETURN]);
        words.resize(words.len() + arguments, 7);
        chunk(&mut process, NEWEST, &words, arguments as u64, 0);
        let (callee, caller) = (CALLEE.call(BODY), CALLER.call(BODY));
        assert_eq!(walk(&process), whole(&[caller, callee, callee, caller]), "{arguments}");
    }
}

/// As those of a thread that is on the stack as a whole.
fn the_method_that_entered_the_thread_is_its_root<A: MadeUp>() {
    for (bottom, end) in [(3, walk_end::ROOT), (2, walk_end::FROZEN)] {
        let mut process = thread::<A>();
        blob(&mut process, ENTER_SPECIAL, false);
        process.jvm.as_mut().unwrap().enter_special = ENTER_SPECIAL.begin() + BODY;
        chunk(&mut process, NEWEST, &compiled(&[RETURN]), 3 - bottom, 0);
        let frames = [CALLER.call(BODY), ENTER_SPECIAL.call(BODY)];
        assert_eq!(walk(&process), if end == walk_end::ROOT { whole(&frames) } else { frozen() }, "{end}");
    }
}

/// What the oldest frame returns to may be anything: a chunk is used again.
fn the_end_of_a_chunk_is_told_by_its_bottom<A: MadeUp>() {
    for (last, lacking, is_whole) in [
        (0, 0, true),
        (RETURN, 0, true),
        (BARRIER, 0, true),
        (1, 0, true),
        (0, 1, true),
        (0, 2, true),
        (0, 3, false),
        (RETURN, 1, false),
    ] {
        let mut process = thread::<A>();
        let mut words = compiled(&[RETURN, IN_CALLEE]);
        *words.last_mut().unwrap() = last;
        words.resize(words.len() + lacking, 0);
        chunk(&mut process, NEWEST, &words, 0, 0);
        let expected = if is_whole { whole(&[CALLER.call(BODY), CALLEE.call(BODY)]) } else { frozen() };
        assert_eq!(walk(&process), expected, "{last:#x}, {lacking} words");
    }
}

/// Two methods of the interpreter, of which the newer one was called by compiled code. Its addresses count from its
/// frame pointer; so does the one that compiled code saved, from where it stands.
fn mixed<A: Arch>() -> Vec<u64> {
    let first_fp = first_fp::<A>();
    let newer = [[first_fp, INTERPRETED].as_slice(), &[0, 0], &interpreter_words::<A>(BYTECODE, 2, 0, RETURN)].concat();
    let older =
        [[0, 0, first_fp, INTERPRETED].as_slice(), &[0, 0], &interpreter_words::<A>(0, 4, 0, 0), &[0, 0]].concat();
    [newer, older].concat()
}

/// How far a frame's pointer is from where it was saved, in words, with two words between both.
fn first_fp<A: Arch>() -> u64 {
    4 + A::INTERPRETER_FRAME.caller_fp as u64
}

fn interpreted_frames_in_the_heap_count_from_themselves<A: MadeUp>() {
    let mut process = thread::<A>();
    chunk(&mut process, NEWEST, &mixed::<A>(), 0, 0);
    let interpreted = |bci| FrameRef::Interpreted { method: METHOD, bci };
    assert_eq!(walk(&process), whole(&[interpreted(5), CALLER.call(BODY), interpreted(0)]));
    // The interpreter calls itself.
    let first_fp = first_fp::<A>();
    let caller_fp = first_fp + 1;
    let newer = interpreter_words::<A>(BYTECODE, 2, caller_fp, INTERPRETED);
    let words = [[first_fp, INTERPRETED].as_slice(), &[0, 0], &newer].concat();
    let words = [&words[..], &[0, 0, 0], &interpreter_words::<A>(0, 3, 0, 0), &[0]].concat();
    chunk(&mut process, NEWEST, &words, 0, 0);
    assert_eq!(walk(&process), whole(&[interpreted(5), interpreted(0)]));
}

fn a_chunk_goes_on_in_its_parents<A: MadeUp>() {
    let mut process = thread::<A>();
    for (count, empty) in [(1, 0), (2, 1), (5, 2), (24, 0), (25, 0), (3, 6)] {
        let mut expected = Vec::new();
        let mut at = NEWEST;
        for number in 0..count {
            for _ in 0..empty {
                chunk(&mut process, at, &[], 0, at - 0x1000);
                at -= 0x1000;
            }
            let parent = if number + 1 < count { at - 0x1000 } else { 0 };
            chunk(&mut process, at, &compiled(&[RETURN, IN_CALLEE]), 0, parent);
            expected.extend([CALLER.call(BODY), CALLEE.call(BODY)]);
            at -= 0x1000;
        }
        let is_whole = count <= 24 && empty <= 4;
        assert_eq!(walk(&process), if is_whole { whole(&expected) } else { frozen() }, "{count} chunks, {empty} empty");
    }
}

fn chunks_that_lead_to_each_other_end<A: MadeUp>() {
    for empty in [false, true] {
        let mut process = thread::<A>();
        let words = if empty { Vec::new() } else { compiled(&[RETURN]) };
        chunk(&mut process, NEWEST, &compiled(&[RETURN]), 0, OLDER);
        chunk(&mut process, OLDER, &words, 0, OLDER);
        assert_eq!(walk(&process), frozen(), "{empty}");
        chunk(&mut process, OLDER, &words, 0, NEWEST);
        assert_eq!(walk(&process), frozen(), "{empty}");
    }
}

/// The walk then does as if the heap could not be read, with none of the frames that were found there.
fn a_chunk_that_makes_no_sense_is_left_out<A: MadeUp>() {
    let words = compiled(&[RETURN, IN_CALLEE]);
    let size = FREE + words.len() as u64;
    for (what, sp, bottom, size) in [
        ("no frames", size, size, size),
        ("no room for what was saved", 1, size, size),
        ("it begins behind its end", size, size - 1, size),
        ("it ends behind its words", 5, size, size - 1),
        ("a frame is cut", 5, size - 1, size),
        ("more than its frames", 5, size + 3, size + 3),
        ("it begins in a frame", 6, size, size),
        ("larger than a stack", 5, 1 << 30, 1 << 30),
    ] {
        let mut process = thread::<A>();
        process.words(NEWEST + 48 + size * 8, &[0; 8]);
        chunk(&mut process, NEWEST, &words, 0, 0);
        fields(&mut process, NEWEST, sp, bottom, size);
        assert_eq!(walk(&process), frozen(), "{what}");
    }
    let at = |index: u64| NEWEST + 48 + (FREE + index) * 8;
    for (what, place, word) in [
        ("its parent cannot be read", NEWEST + 40, 0x5000),
        ("its parent is nowhere", NEWEST + 40, u64::MAX - 0xfff),
        ("the newest frame is not code", at(1), 5),
        ("it is one to be brought", at(1), BARRIER),
        ("no call is there", at(1), RETURN + 3),
        ("a frame returns to no code", at(5), 5),
        ("a frame returns to code that is gone", at(5), HEAP + 0x2_0000),
        ("there is none", OBJECT + 32, 0),
        ("it cannot be read", OBJECT + 32, 0x5000),
    ] {
        let mut process = thread::<A>();
        process.code(0x6000_0000 + 0x2_0000 / 128, &[0xff]);
        chunk(&mut process, NEWEST, &words, 0, 0);
        process.words(place, &[word]);
        assert_eq!(walk(&process), frozen(), "{what}");
    }
}

fn references_are_written_in_several_ways<A: MadeUp>() {
    for (kind, base, shift, tail, parent) in [
        (references::PLAIN, 0, 0, NEWEST, OLDER),
        (references::NARROW, 0, 3, NEWEST >> 3, OLDER >> 3),
        (references::NARROW, 0x8000_0000, 1, (NEWEST - 0x8000_0000) >> 1, (OLDER - 0x8000_0000) >> 1),
        (references::COLOURED, 0, 0, A::coloured(NEWEST, 13), A::coloured(OLDER, 15)),
        (references::NONE, 0, 0, NEWEST, OLDER),
    ] {
        let mut process = thread::<A>();
        let layout = &mut process.jvm.as_mut().unwrap().continuation;
        (layout.references, layout.narrow_base, layout.narrow_shift) = (kind, base, shift);
        // Behind a narrow reference is another field.
        let behind = if kind == references::NARROW { 0xffff << 32 } else { 0 };
        chunk(&mut process, NEWEST, &compiled(&[RETURN]), 0, parent | behind);
        chunk(&mut process, OLDER, &compiled(&[IN_CALLEE]), 0, behind);
        process.words(OBJECT + 32, &[tail | behind]);
        let is_known = kind != references::NONE;
        let expected = if is_known { whole(&[CALLER.call(BODY), CALLEE.call(BODY)]) } else { frozen() };
        assert_eq!(walk(&process), expected, "{kind}, {base:#x}");
    }
}

/// C++ has copied the frames that are on the stack, too, or they have been for a moment.
fn frames_are_not_counted_twice_while_they_are_put_into_the_heap<A: MadeUp>() {
    let cpp = LIBJVM + 0x800;
    let barrier = FrameRef::Blob { offset: (BARRIER - HEAP) as u32 };
    let carrier = [CALLER.call(BODY), native(IN_LIBJVM)];
    let wrapper = WRAPPER.begin() + BODY;
    for (newest, is_frozen) in [(RETURN, true), (IN_CALLEE, false)] {
        let mut process = process::<A>();
        process.rows.push(without_frame::<A>());
        process.mappings[0].row_count = 2;
        let stack = [[wrapper].as_slice(), &[0; 7], &[RETURN], &[0; 3], &[BARRIER], &entry(0), &[0, RETURN]].concat();
        process.words(STACK, &stack).words(OBJECT + 32, &[NEWEST]);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        chunk(&mut process, NEWEST, &compiled(&[newest]), 0, 0);
        let in_heap = if is_frozen { barrier } else { CALLEE.call(BODY) };
        let end = if is_frozen { walk_end::FROZEN } else { walk_end::ROOT };
        let frames = [[native(cpp), WRAPPER.call(BODY), CALLER.call(BODY), in_heap].as_slice(), &carrier].concat();
        assert_eq!(process.walk(A::called(&process, leaf(cpp))), (frames, end), "{newest:#x}");
        let frames = [[WRAPPER.at(BODY), CALLER.call(BODY), barrier].as_slice(), &carrier].concat();
        let registers = Registers { sp: STACK + 8, ..leaf(wrapper) };
        assert_eq!(process.walk(registers), (frames, walk_end::FROZEN), "{newest:#x}");
    }
}

/// Of a thread in native code, the one frame of a method on the stack is not the newest one in the heap.
fn a_thread_in_native_code_has_frames_in_the_heap<A: MadeUp>() {
    let cpp = LIBJVM + 0x800;
    let mut process = process::<A>();
    process.rows.push(without_frame::<A>());
    process.mappings[0].row_count = 2;
    let stack = [[RETURN].as_slice(), &[0; 3], &[BARRIER], &entry(0), &[0, RETURN]].concat();
    process.words(STACK, &stack).words(OBJECT + 32, &[NEWEST]);
    caller_frame(&mut process, STACK + 8 * stack.len() as u64);
    chunk(&mut process, NEWEST, &compiled(&[IN_CALLEE]), 0, 0);
    let caller = CALLER.call(BODY);
    let frames = vec![native(cpp), caller, CALLEE.call(BODY), caller, native(IN_LIBJVM)];
    assert_eq!(process.walk(A::called(&process, leaf(cpp))), (frames, walk_end::ROOT));
}

/// As deep as is kept, and not the carrier instead.
fn a_deep_stack_in_the_heap_keeps_its_leaf_side<A: MadeUp>() {
    let mut process = thread::<A>();
    chunk(&mut process, NEWEST, &compiled(&[RETURN; 1100]), 0, 0);
    let (frames, end) = walk(&process);
    assert_eq!((frames.len(), end), (MAX_USER_FRAMES, walk_end::DEPTH));
    assert_eq!(frames[MAX_USER_FRAMES - 1], CALLER.call(BODY));
}

/// Whatever a word of the heap is, the walk ends at the carrier, or where a deep one does.
fn a_damaged_chunk_does_not_hide_the_carrier<A: MadeUp>() {
    proptest!(ProptestConfig::with_cases(2_000), |(place in 0_u64..48, word: u64, known in 0_usize..8)| {
        let mut process = thread::<A>();
        chunk(&mut process, NEWEST, &mixed::<A>(), 0, OLDER);
        chunk(&mut process, OLDER, &compiled(&[RETURN, IN_CALLEE]), 0, 0);
        let known = [word, RETURN, IN_CALLEE, INTERPRETED, BARRIER, 0, NEWEST, word & 0xff][known];
        process.words(NEWEST + place * 8, &[known]);
        let (frames, end) = walk(&process);
        prop_assert!([walk_end::ROOT, walk_end::FROZEN].contains(&end), "{end} {frames:?}");
        prop_assert_eq!(&frames[frames.len() - 2..], &[CALLER.call(BODY), native(IN_LIBJVM)]);
        prop_assert!(end == walk_end::ROOT || frames == frozen().0);
    });
}
