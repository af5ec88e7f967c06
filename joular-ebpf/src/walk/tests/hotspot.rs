//! Tests code of a JVM: each kind of frame.

use std::vec;

use super::*;
use crate::abi::{AddressRange, BlobLayout, CodeHeap, ContinuationLayout, Field, references, rule};

pub(super) const HEAP: u64 = 0x7000_0000;
const SEGMENT_MAP: u64 = 0x6000_0000;
const SEGMENT: u64 = 128;
pub(super) const INTERPRETER: u64 = HEAP + 0x8_0000;
pub(super) const ENTRIES: u64 = INTERPRETER + 0x1000;
const CALL_STUB: u64 = HEAP + 0xa_0000;
pub(super) const CALL_STUB_RETURN: u64 = CALL_STUB + 0x50;
pub(super) const CONTINUATION: u64 = HEAP + 0xb_0000;
const NMETHOD: u64 = 0x5000;
pub(super) const NATIVE: u64 = 0x5010;
const VTABLE: u64 = 0x5020;
const OTHER: u64 = 0x5030;
/// Code in a blob, behind block header and fields.
const CODE: u64 = 16 + 80;
/// In the file whose function nobody called; what C++ returns to stands behind a call.
pub(super) const LIBJVM: u64 = 0x5555_0000;
pub(super) const IN_LIBJVM: u64 = LIBJVM + 0x10;
pub(super) const METHOD: u64 = 0x6100_0000;
pub(super) const CONST_METHOD: u64 = 0x6200_0000;

const fn field(offset: u16, width: u16) -> Field {
    Field { offset, width }
}

pub(super) fn jvm() -> JvmUnwind {
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
pub(super) struct Code {
    pub(super) segment: u64,
    pub(super) name: u64,
    pub(super) compile_id: u64,
    pub(super) frame_words: u64,
}

impl Code {
    pub(super) const fn block(self) -> u64 {
        HEAP + self.segment * SEGMENT
    }

    pub(super) const fn begin(self) -> u64 {
        self.block() + CODE
    }

    pub(super) const fn deopt_handler(self) -> u64 {
        self.begin() + 0x150
    }

    fn offset(self, of_code: u64) -> u32 {
        (self.begin() + of_code - HEAP) as u32
    }

    pub(super) fn at(self, of_code: u64) -> FrameRef {
        FrameRef::CompiledAt { compile_id: self.compile_id as u32, offset: self.offset(of_code) }
    }

    pub(super) fn call(self, of_code: u64) -> FrameRef {
        FrameRef::CompiledCall { compile_id: self.compile_id as u32, offset: self.offset(of_code) }
    }

    pub(super) fn stub(self, of_code: u64) -> FrameRef {
        FrameRef::Blob { offset: self.offset(of_code) }
    }
}

pub(super) const CALLEE: Code = Code { segment: 16, name: NMETHOD, compile_id: 7, frame_words: 6 };
pub(super) const CALLER: Code = Code { segment: 32, name: NMETHOD, compile_id: 8, frame_words: 4 };
pub(super) const WRAPPER: Code = Code { segment: 48, name: NATIVE, compile_id: 9, frame_words: 8 };
pub(super) const RUNTIME_STUB: Code = Code { segment: 64, name: OTHER, compile_id: 0, frame_words: 6 };
const ADAPTER: Code = Code { segment: 80, name: OTHER, compile_id: 0, frame_words: 0 };
pub(super) const VTABLE_STUB: Code = Code { segment: 96, name: VTABLE, compile_id: 0, frame_words: 0 };
const COOKIE: u64 = u64::MAX;
/// Where a frame is whole, and what code returns to.
const COMPLETE: u64 = 0x40;
pub(super) const BODY: u64 = 0x80;

pub(super) fn blob(process: &mut MadeUpProcess, code: Code, has_offsets: bool) {
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
    process.words(code.begin(), &[0x9090_9090_9090_9090; 40]);
    // Something is called right before the body.
    process.code(code.begin() + BODY - 5, &[0xe8, 0, 0, 0, 0]);
    // As C2 and C1 make them.
    let [c2, c1] = [code.deopt_handler(), code.deopt_handler() + 0x10];
    process.code(c2, &[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 0x05, 0xe9]);
    process.code(c1, &[0x49, 0xba]).code(c1 + 2, &c1.to_le_bytes()).code(c1 + 10, &[0x41, 0x52, 0xe9]);
}

fn process_with(has_offsets: bool) -> MadeUpProcess {
    let mut process = MadeUpProcess { jvm: Some(jvm()), ..MadeUpProcess::default() };
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
    process.code(IN_LIBJVM - 8, &[0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0]);
    process.code(CALL_STUB_RETURN - 8, &[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd1]);
    process.code(INTERPRETER, &[0x90; 0x100]).code(ENTRIES, &[0x90; 0x100]);
    process.words(METHOD, &[0, CONST_METHOD]);
    process
}

pub(super) fn process() -> MadeUpProcess {
    process_with(false)
}

/// The caller's frame from `sp` on, which a root called.
pub(super) fn caller_frame(process: &mut MadeUpProcess, sp: u64) {
    process.words(sp, &[0, 0, 0, IN_LIBJVM]);
}

/// What follows the first frame if that went well.
pub(super) fn expect(first: FrameRef) -> (Vec<FrameRef>, u8) {
    (vec![first, CALLER.call(BODY), native(IN_LIBJVM)], walk_end::ROOT)
}

pub(super) fn leaf(pc: u64) -> Registers {
    Registers { pc, sp: STACK, fp: 0, ..Registers::default() }
}

pub(super) const RETURN: u64 = CALLER.begin() + BODY;

#[test]
fn compiled_code_has_a_frame_of_its_size() {
    for has_offsets in [false, true] {
        let mut process = process_with(has_offsets);
        process.words(STACK, &[1, 2, 3, 4, 5, RETURN]);
        caller_frame(&mut process, STACK + 48);
        assert_eq!(process.walk(leaf(CALLEE.begin() + BODY)), expect(CALLEE.at(BODY)));
    }
}

/// A process whose adapter has one row for all of its code.
fn with_row(rule: u8, cfa_words: i16, fp_words: i8) -> MadeUpProcess {
    let mut process = process();
    process.rows.push(UnwindRow { address: 0, cfa_words, fp_words, rule });
    let (start, end) = (ADAPTER.begin(), ADAPTER.begin() + 0x180);
    process.mappings.push(CodeMapping { start, end, bias: start, first_row: 1, row_count: 1 });
    process.mappings.sort_by_key(|mapping| mapping.start);
    process
}

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
        let mut process = with_row(rule, cfa_words, fp_words);
        process.words(STACK, &[0; 12]).words(STACK, stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        assert_eq!(process.walk(leaf(ADAPTER.begin() + BODY)), expect(ADAPTER.stub(BODY)), "rule {rule}, {stack:x?}");
    }
}

#[test]
fn what_a_row_leads_to_must_be_a_return_address() {
    let mut process = with_row(rule::SP, 2, 0);
    process.words(STACK, &[RETURN, RETURN + 3]);
    let expected = (vec![ADAPTER.stub(BODY)], walk_end::IMPLAUSIBLE);
    assert_eq!(process.walk(leaf(ADAPTER.begin() + BODY)), expected);
}

#[test]
fn a_deoptimised_frame_says_where_it_was() {
    for has_offsets in [false, true] {
        for handler in [CALLEE.deopt_handler(), CALLEE.deopt_handler() + 0x10] {
            let mut process = process_with(has_offsets);
            process.words(STACK, &[handler, 0, 0, CALLEE.begin() + 0x90, 0, 0, RETURN]);
            caller_frame(&mut process, STACK + 56);
            // A leaf without a frame was called by it.
            let (frames, end) = process.walk(leaf(VTABLE_STUB.begin()));
            let expected = [VTABLE_STUB.stub(0), CALLEE.call(0x90), CALLER.call(BODY), native(IN_LIBJVM)];
            assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
        }
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
        let mut process = process();
        process.code(code.begin() + BODY, next).words(STACK, &[0; 4]).words(STACK, stack);
        caller_frame(&mut process, STACK + 8 * stack.len() as u64);
        let registers = Registers { fp, rax, ..leaf(code.begin() + BODY) };
        assert_eq!(process.walk(registers), expect(code.stub(BODY)), "{what}");
    }
}

/// An entry barrier: the method that it was called by is whole already.
#[test]
fn a_cookie_is_passed_on_the_way_from_native_code() {
    let mut process = process();
    process.words(STACK, &[ADAPTER.begin() + BODY, 1, 2, 0, COOKIE, RETURN]);
    caller_frame(&mut process, STACK + 0x30);
    let (frames, end) = process.walk(Registers { fp: STACK + 0x18, ..leaf(VTABLE_STUB.begin()) });
    let expected = [VTABLE_STUB.stub(0), ADAPTER.stub(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
    assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
}

/// What unpacks deoptimised frames has its own frame aligned for the call.
#[test]
fn a_stub_that_aligned_its_stack_goes_by_its_frame_pointer() {
    let mut process = process();
    process.words(STACK, &[RUNTIME_STUB.begin() + BODY, 0, 0, 0, 0, 0, 0, RETURN]);
    caller_frame(&mut process, STACK + 0x40);
    let (frames, end) = process.walk(Registers { fp: STACK + 0x30, ..leaf(VTABLE_STUB.begin()) });
    let expected = [VTABLE_STUB.stub(0), RUNTIME_STUB.stub(BODY), CALLER.call(BODY), native(IN_LIBJVM)];
    assert_eq!((&frames[..], end), (&expected[..], walk_end::ROOT));
}

/// The wrapper has aligned its stack for a call; its frame pointer knows.
#[test]
fn a_native_wrapper_goes_by_its_frame_pointer() {
    let mut process = process();
    process.words(STACK, &[WRAPPER.begin() + BODY]).words(STACK + 8, &[0; 8]);
    process.words(STACK + 0x48, &[0, RETURN]);
    caller_frame(&mut process, STACK + 0x58);
    let (frames, end) = process.walk(Registers { fp: STACK + 0x48, ..leaf(VTABLE_STUB.begin()) });
    assert_eq!(frames[1..], [WRAPPER.call(BODY), CALLER.call(BODY), native(IN_LIBJVM)]);
    assert_eq!(end, walk_end::ROOT);
}

/// Only native code is called by nobody.
#[test]
fn java_that_returns_to_nowhere_is_no_root() {
    for (code, stack) in [(CALLEE, &[1, 2, 3, 4, 5, 0][..]), (VTABLE_STUB, &[0])] {
        let mut process = process();
        process.words(STACK, &[0; 8]).words(STACK, stack);
        assert_eq!(process.walk(leaf(code.begin() + BODY)).1, walk_end::IMPLAUSIBLE, "{}", code.name);
    }
}

/// A block is found from anywhere in it, over as many segments as the map leads.
#[test]
fn large_blocks_are_found_by_hops() {
    let mut process = process();
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

#[test]
fn code_that_is_gone_is_said_to_be() {
    let mut process = process();
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
