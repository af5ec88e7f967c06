//! Tests methods in the interpreter: their frames, whole and not.

use std::vec;

use super::{hotspot::*, *};

for_each_arch!(the_interpreters_frames_have_a_layout, java_was_called_by_native_code,);

pub(in crate::walk) fn interpreted(bci: u16) -> FrameRef {
    FrameRef::Interpreted { method: METHOD, bci }
}

fn the_interpreters_frames_have_a_layout<A: MadeUp>() {
    let bytecodes = CONST_METHOD + 0x30;
    let fp = STACK + 0x80;
    for (live, saved, bci) in [(bytecodes + 5, bytecodes + 3, 5), (0, bytecodes + 3, 3), (0, 0, 0)] {
        let mut process = process::<A>();
        // Its arguments were moved by an adapter: the caller's stack begins farther up.
        interpreted_frame(&mut process, fp, saved, fp + 0x30, 0, RETURN);
        caller_frame(&mut process, fp + 0x30);
        let registers = A::with_bytecode_pointer(Registers { fp, ..leaf(INTERPRETER + 0x20) }, live);
        assert_eq!(process.walk(registers), expect(interpreted(bci)), "{live:#x} {saved:#x}");
    }
}

fn java_was_called_by_native_code<A: MadeUp>() {
    let mut process = process::<A>();
    let (fp, entry_fp) = (STACK + 0x80, STACK + 0x200);
    interpreted_frame(&mut process, fp, 0, fp + 16, entry_fp, CALL_STUB_RETURN);
    process.words(entry_fp, &[0, IN_LIBJVM]);
    let frames = vec![interpreted(0), FrameRef::Blob { offset: (CALL_STUB_RETURN - HEAP) as u32 }, native(IN_LIBJVM)];
    assert_eq!(process.walk(Registers { fp, ..leaf(INTERPRETER + 0x20) }), (frames, walk_end::ROOT));
}
