//! Tests code of a JVM: each kind of frame.

use std::vec;

use super::*;
use crate::abi::{AddressRange, BlobLayout, CodeHeap, ContinuationLayout, Field, references, rule};

for_each_arch!(
    compiled_code_has_a_frame_of_its_size,
    what_a_row_leads_to_must_be_a_return_address,
    a_deoptimised_frame_says_where_it_was,
    a_stub_that_aligned_its_stack_goes_by_its_frame_pointer,
    a_native_wrapper_goes_by_its_frame_pointer,
    java_that_returns_to_nowhere_is_no_root,
    large_blocks_are_found_by_hops,
    code_that_is_gone_is_said_to_be,
);

pub(in crate::walk) const HEAP: u64 = 0x7000_0000;
const SEGMENT_MAP: u64 = 0x6000_0000;
const SEGMENT: u64 = 128;
pub(in crate::walk) const INTERPRETER: u64 = HEAP + 0x8_0000;
pub(in crate::walk) const ENTRIES: u64 = INTERPRETER + 0x1000;
const CALL_STUB: u64 = HEAP + 0xa_0000;
pub(in crate::walk) const CALL_STUB_RETURN: u64 = CALL_STUB + 0x50;
pub(in crate::walk) const CONTINUATION: u64 = HEAP + 0xb_0000;
const NMETHOD: u64 = 0x5000;
pub(in crate::walk) const NATIVE: u64 = 0x5010;
const VTABLE: u64 = 0x5020;
const OTHER: u64 = 0x5030;
/// Code in a blob, behind block header and fields.
const CODE: u64 = 16 + 80;
/// In the file whose function nobody called; what C++ returns to stands behind a call.
pub(in crate::walk) const LIBJVM: u64 = 0x5555_0000;
pub(in crate::walk) const IN_LIBJVM: u64 = LIBJVM + 0x10;
pub(in crate::walk) const METHOD: u64 = 0x6100_0000;
pub(in crate::walk) const CONST_METHOD: u64 = 0x6200_0000;

const fn field(offset: u16, width: u16) -> Field {
    Field { offset, width }
}

pub(in crate::walk) fn jvm() -> JvmUnwind {
    let heap = AddressRange { start: HEAP, end: HEAP + 0x10_0000 };
    let mut jvm = JvmUnwind { code_low: HEAP, call_stub_return: CALL_STUB_RETURN, ..JvmUnwind::default() };
    jvm.code_heaps[1] = CodeHeap { memory: heap, segment_map: SEGMENT_MAP, log2_segment_size: 7, padding: 0 };
    jvm.interpreter = AddressRange { start: INTERPRETER, end: INTERPRETER + 0x1_0000 };
    jvm.method_entries = AddressRange { start: ENTRIES, end: ENTRIES + 0x1000 };
    jvm.continuation_stubs = AddressRange { start: CONTINUATION, end: CONTINUATION + 0x1000 };
    jvm.nmethod_names = [NMETHOD, 0];
    jvm.native_names = [0, NATIVE];
    jvm.vtable_names = [VTABLE, 0];
    jvm.blob = BlobLayout {
        name: field(0, 8),
        size: field(8, 4),
        frame_size: field(12, 4),
        frame_complete: field(16, 4),
        compile_id: field(20, 4),
        code_begin: field(24, 8),
        deopt_handler: field(32, 8),
        deopt_mh_handler: field(40, 8),
        orig_pc: field(48, 4),
        verified_entry: field(56, 8),
        bytes: 80,
        has_offsets: 0,
    };
    jvm.block_header = 16;
    jvm.block_used = field(8, 1);
    jvm.const_method = field(8, 8);
    jvm.const_method_size = 0x30;
    jvm.bcp_words = -8;
    jvm.continuation = ContinuationLayout {
        tail: 32,
        parent: 40,
        size: 12,
        sp: 24,
        bottom: 28,
        words: 48,
        references: references::PLAIN,
        ..ContinuationLayout::default()
    };
    jvm
}

/// A block of four segments.
#[derive(Clone, Copy)]
pub(in crate::walk) struct Code {
    pub(in crate::walk) segment: u64,
    pub(in crate::walk) name: u64,
    pub(in crate::walk) compile_id: u64,
    pub(in crate::walk) frame_words: u64,
}

impl Code {
    pub(in crate::walk) const fn block(self) -> u64 {
        HEAP + self.segment * SEGMENT
    }

    pub(in crate::walk) const fn begin(self) -> u64 {
        self.block() + CODE
    }

    pub(in crate::walk) const fn deopt_handler(self) -> u64 {
        self.begin() + 0x150
    }

    fn offset(self, of_code: u64) -> u32 {
        (self.begin() + of_code - HEAP) as u32
    }

    pub(in crate::walk) fn at(self, of_code: u64) -> FrameRef {
        FrameRef::CompiledAt { compile_id: self.compile_id as u32, offset: self.offset(of_code) }
    }

    pub(in crate::walk) fn call(self, of_code: u64) -> FrameRef {
        FrameRef::CompiledCall { compile_id: self.compile_id as u32, offset: self.offset(of_code) }
    }

    pub(in crate::walk) fn stub(self, of_code: u64) -> FrameRef {
        FrameRef::Blob { offset: self.offset(of_code) }
    }
}

pub(in crate::walk) const CALLEE: Code = Code { segment: 16, name: NMETHOD, compile_id: 7, frame_words: 6 };
pub(in crate::walk) const CALLER: Code = Code { segment: 32, name: NMETHOD, compile_id: 8, frame_words: 4 };
pub(in crate::walk) const WRAPPER: Code = Code { segment: 48, name: NATIVE, compile_id: 9, frame_words: 8 };
pub(in crate::walk) const RUNTIME_STUB: Code = Code { segment: 64, name: OTHER, compile_id: 0, frame_words: 6 };
pub(in crate::walk) const ADAPTER: Code = Code { segment: 80, name: OTHER, compile_id: 0, frame_words: 0 };
pub(in crate::walk) const VTABLE_STUB: Code = Code { segment: 96, name: VTABLE, compile_id: 0, frame_words: 0 };
/// Where a frame is whole, and what code returns to.
const COMPLETE: u64 = 0x40;
pub(in crate::walk) const BODY: u64 = 0x80;

pub(in crate::walk) fn blob<A: MadeUp>(process: &mut MadeUpProcess<A>, code: Code, has_offsets: bool) {
    let (block, base) = (code.block(), if has_offsets { code.block() + 16 } else { 0 });
    process.code(SEGMENT_MAP + code.segment, &[0, 1, 2, 3]);
    let entry = code.begin() + 0x10 - if has_offsets { code.begin() } else { 0 };
    let words = [
        4,
        1,
        code.name,
        (SEGMENT * 4 - 16) | code.frame_words << 32,
        COMPLETE | code.compile_id << 32,
        code.begin() - base,
        code.deopt_handler() - base,
        code.deopt_handler() + 0x10 - base,
        16,
        entry,
        0,
        0,
    ];
    process.words(block, &words);
    process.words(code.begin(), &[A::FILL; 44]);
    // Something is called right before the body.
    call_before(process, code.begin() + BODY, A::CALL);
    A::deopt_handlers(process, [code.deopt_handler(), code.deopt_handler() + 0x10]);
}

pub(in crate::walk) fn call_before<A: Arch>(process: &mut MadeUpProcess<A>, place: u64, call: &[u8]) {
    process.code(place - call.len() as u64, call);
}

fn process_with<A: MadeUp>(has_offsets: bool) -> MadeUpProcess<A> {
    let mut process = MadeUpProcess { jvm: Some(jvm()), ..MadeUpProcess::<A>::default() };
    if let Some(jvm) = &mut process.jvm {
        jvm.blob.has_offsets = u32::from(has_offsets);
    }
    for code in [CALLEE, CALLER, WRAPPER, RUNTIME_STUB, ADAPTER, VTABLE_STUB] {
        blob(&mut process, code, has_offsets);
    }
    process.mappings.push(CodeMapping {
        start: LIBJVM,
        end: LIBJVM + 0x1000,
        bias: LIBJVM,
        first_row: 0,
        row_count: 1,
    });
    process.rows.push(UnwindRow { rule: rule::ROOT, ..UnwindRow::default() });
    for (place, call) in [(IN_LIBJVM, A::CALL), (CALL_STUB_RETURN, A::INDIRECT_CALL)] {
        process.words(place - 8, &[A::FILL; 2]);
        call_before(&mut process, place, call);
    }
    process.words(INTERPRETER, &[A::FILL; 32]).words(ENTRIES, &[A::FILL; 32]);
    process.words(METHOD, &[0, CONST_METHOD]);
    process
}

pub(in crate::walk) fn process<A: MadeUp>() -> MadeUpProcess<A> {
    process_with(false)
}

/// The caller's frame from `sp` on, which a root called.
pub(in crate::walk) fn caller_frame<A: Arch>(process: &mut MadeUpProcess<A>, sp: u64) {
    process.words(sp, &[0, 0, 0, IN_LIBJVM]);
}

/// What follows the first frame if that went well.
pub(in crate::walk) fn expect(first: FrameRef) -> (Vec<FrameRef>, u8) {
    (vec![first, CALLER.call(BODY), native(IN_LIBJVM)], walk_end::ROOT)
}

pub(in crate::walk) fn leaf<A: Arch>(pc: u64) -> Registers<A> {
    Registers { pc, sp: STACK, fp: 0, ..Registers::default() }
}

pub(in crate::walk) const RETURN: u64 = CALLER.begin() + BODY;

fn compiled_code_has_a_frame_of_its_size<A: MadeUp>() {
    for has_offsets in [false, true] {
        let mut process = process_with::<A>(has_offsets);
        process.words(STACK, &[1, 2, 3, 4, 5, RETURN]);
        caller_frame(&mut process, STACK + 48);
        assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)));
    }
}

/// A process whose adapter has one row for all of its code.
pub(in crate::walk) fn with_row<A: MadeUp>(rule: u8, cfa_words: i16, fp_words: i8) -> MadeUpProcess<A> {
    let mut process = process::<A>();
    process.rows.push(UnwindRow { address: 0, cfa_words, fp_words, rule });
    let (start, end) = (ADAPTER.begin(), ADAPTER.begin() + 0x180);
    process.mappings.push(CodeMapping { start, end, bias: start, first_row: 1, row_count: 1 });
    process.mappings.sort_by_key(|mapping| mapping.start);
    process
}

fn what_a_row_leads_to_must_be_a_return_address<A: MadeUp>() {
    let mut process = with_row::<A>(rule::SP, 2, -2);
    process.words(STACK, &[RETURN, RETURN + 3]);
    let expected = (vec![ADAPTER.stub(BODY)], walk_end::IMPLAUSIBLE);
    assert_eq!(process.walk(leaf(ADAPTER.begin() + BODY)), expected);
}

fn a_deoptimised_frame_says_where_it_was<A: MadeUp>() {
    for has_offsets in [false, true] {
        for handler in [CALLEE.deopt_handler(), CALLEE.deopt_handler() + 0x10] {
            let mut process = process_with::<A>(has_offsets);
            process.words(STACK, &[handler, 0, 0, CALLEE.begin() + 0x90, 0, 0, RETURN]);
            caller_frame(&mut process, STACK + 56);
            // A leaf without a frame was called by it.
            let (frames, end) = process.walk(A::called(&process, leaf(VTABLE_STUB.begin())));
            let expected = [VTABLE_STUB.stub(0), CALLEE.call(0x90), CALLER.call(BODY), native(IN_LIBJVM)];
            assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
        }
    }
}

/// What unpacks deoptimised frames has its own frame aligned for the call.
fn a_stub_that_aligned_its_stack_goes_by_its_frame_pointer<A: MadeUp>() {
    let mut process = process::<A>();
    process.words(STACK, &[RUNTIME_STUB.begin() + BODY, 0, 0, 0, 0, 0, 0, RETURN]);
    caller_frame(&mut process, STACK + 0x40);
    let (frames, end) = process.walk(A::called(&process, Registers { fp: STACK + 0x30, ..leaf(VTABLE_STUB.begin()) }));
    let expected = [VTABLE_STUB.stub(0), RUNTIME_STUB.stub(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
    assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
}

/// The wrapper has aligned its stack for a call; its frame pointer knows.
fn a_native_wrapper_goes_by_its_frame_pointer<A: MadeUp>() {
    let mut process = process::<A>();
    process.words(STACK, &[WRAPPER.begin() + BODY]).words(STACK + 8, &[0; 8]);
    process.words(STACK + 0x48, &[0, RETURN]);
    caller_frame(&mut process, STACK + 0x58);
    let (frames, end) = process.walk(A::called(&process, Registers { fp: STACK + 0x48, ..leaf(VTABLE_STUB.begin()) }));
    assert_eq!(frames[1..], [WRAPPER.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)]);
    assert_eq!(end, walk_end::ROOT);
}

/// Only native code is called by nobody.
fn java_that_returns_to_nowhere_is_no_root<A: MadeUp>() {
    for (code, stack) in [(CALLEE, &[1, 2, 3, 4, 5, 0][..]), (VTABLE_STUB, &[0])] {
        let mut process = process::<A>();
        process.words(STACK, &[0; 8]).words(STACK, stack);
        assert_eq!(process.walk(leaf(code.begin() + BODY)).1, walk_end::IMPLAUSIBLE, "{}", code.name);
    }
}

/// A block is found from anywhere in it, over as many segments as the map leads.
fn large_blocks_are_found_by_hops<A: MadeUp>() {
    let mut process = process::<A>();
    let large = Code { segment: 512, ..CALLEE };
    blob(&mut process, large, false);
    let at = |segment: u64| SEGMENT_MAP + large.segment + segment;
    process.code(at(200), &[197]).code(at(400), &[200]);
    process.words(large.block() + 24, &[(SEGMENT * 500) | (large.frame_words << 32)]);
    let pc = large.block() + 400 * SEGMENT;
    process.words(pc, &[0, 0]).words(STACK, &[0, 0, 0, 0, 0, RETURN]);
    caller_frame(&mut process, STACK + 48);
    assert_eq!(process.walk(leaf(pc)), expect(large.at(400 * SEGMENT - CODE)));
}

fn code_that_is_gone_is_said_to_be<A: MadeUp>() {
    let mut process = process::<A>();
    let free = HEAP + 0x2_0000;
    process.code(SEGMENT_MAP + 0x2_0000 / SEGMENT, &[0xff]);
    // One of which the block was given back.
    process.words(CALLER.block() + 8, &[0]);
    // One whose map leads nowhere.
    process.code(SEGMENT_MAP + 0x2_8000 / SEGMENT - 20, &[1; 40]);
    for pc in [free, CALLER.begin() + BODY, HEAP + 0x2_8000] {
        let frames = vec![FrameRef::Blob { offset: (pc - HEAP) as u32 }];
        assert_eq!(process.walk(leaf(pc)), (frames, walk_end::DEAD_CODE), "{pc:#x}");
    }
}
