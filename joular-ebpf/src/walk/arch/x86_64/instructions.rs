//! Decodes the few x86-64 instructions by which compiled code makes and removes its frame.

/// Bytes from an address on, the first one lowest.
pub(super) type Bytes = [u64; 2];

/// Where in making or removing its frame interrupted code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameState {
    /// The return address is on top of the stack.
    None,
    /// The caller's frame pointer is, and behind it the return address.
    Pushed,
    /// The frame is there, but the frame pointer not yet saved in it.
    Reserved,
    Whole,
    /// The frame pointer is about to restore all (`leave`).
    FramePointer,
    /// None of the instructions that are known.
    Unknown,
}

/// `push rbp`.
const PUSH: u64 = 0x55;
const POP: u64 = 0x5d;
const RET: u64 = 0xc3;
const LEAVE: u64 = 0xc9;

/// Whether the low bytes of a word are these.
#[inline(always)]
const fn starts(word: u64, bytes: u64, count: u32) -> bool {
    word & (u64::MAX >> (64 - 8 * count)) == bytes
}

/// The bytes from the `count`th on; what lies behind the known ones is 0.
#[inline(always)]
const fn skip(bytes: Bytes, count: u32) -> Bytes {
    if count >= 8 {
        [bytes[1] >> (count % 8 * 8), 0]
    } else if count == 0 {
        bytes
    } else {
        [bytes[0] >> (count * 8) | bytes[1] << (64 - count * 8), bytes[1] >> (count * 8)]
    }
}

/// `mov rbp, rsp`, in both encodings.
#[inline(always)]
const fn is_set_frame_pointer(word: u64) -> bool {
    starts(word, 0xec_8b48, 3) || starts(word, 0xe5_8948, 3)
}

/// `sub rsp, n`: its length.
#[inline(always)]
const fn subtract(word: u64) -> u32 {
    if starts(word, 0xec_8348, 3) {
        4
    } else if starts(word, 0xec_8148, 3) {
        7
    } else {
        0
    }
}

/// `mov [rsp + n], rbp`.
#[inline(always)]
const fn is_save_frame_pointer(word: u64) -> bool {
    starts(word, 0x246c_8948, 4) || starts(word, 0x24ac_8948, 4)
}

/// `mov [rsp - n], eax`: touches the stack to come.
#[inline(always)]
const fn is_stack_bang(word: u64) -> bool {
    starts(word, 0x24_8489, 3)
}

/// State of a frame being made, by the instruction to be executed next and by
/// the 8 bytes in front of it.
#[inline(always)]
pub(super) const fn in_prologue(next: Bytes, before: u64) -> FrameState {
    let word = next[0];
    if is_stack_bang(word) || starts(word, PUSH, 1) {
        return FrameState::None;
    }
    if is_set_frame_pointer(word) {
        // Behind a store, which takes 5 bytes or 8, it only points into the frame.
        let is_stored = is_save_frame_pointer(before >> 24) || is_save_frame_pointer(before);
        return if is_stored { FrameState::Whole } else { FrameState::Pushed };
    }
    let length = subtract(word);
    if length != 0 {
        // Either it was pushed, or it will be stored.
        let is_stored = is_save_frame_pointer(skip(next, length)[0]);
        return if is_stored { FrameState::None } else { FrameState::Pushed };
    }
    if is_save_frame_pointer(word) {
        return FrameState::Reserved;
    }
    // Behind the reservation the rest of a prologue is checks.
    if before >> 56 == 0x55 { FrameState::Pushed } else { FrameState::Unknown }
}

/// State of a frame being removed; `Whole` if this is no epilogue.
#[inline(always)]
pub(super) const fn in_epilogue(next: Bytes) -> FrameState {
    if starts(next[0], POP, 1) {
        return if is_return(skip(next, 1)) { FrameState::Pushed } else { FrameState::Whole };
    }
    if starts(next[0], LEAVE, 1) {
        return FrameState::FramePointer;
    }
    if is_return(next) { FrameState::None } else { FrameState::Whole }
}

/// `ret`, with what is left of the safepoint poll before it.
#[inline(always)]
const fn is_return(next: Bytes) -> bool {
    let next = skip(next, poll_load(next[0]));
    let next = skip(next, poll_test(next[0]));
    starts(next[0], RET, 1)
}

/// `cmp rsp, [r15 + n]` or `mov r10, [r15 + n]`: its length.
#[inline(always)]
const fn poll_load(word: u64) -> u32 {
    if starts(word, 0x67_3b49, 3) || starts(word, 0x57_8b4d, 3) {
        4
    } else if starts(word, 0xa7_3b49, 3) || starts(word, 0x97_8b4d, 3) {
        7
    } else {
        0
    }
}

/// `ja` far, `test [r10], eax` or `test [rip + n], eax`: its length.
#[inline(always)]
const fn poll_test(word: u64) -> u32 {
    if starts(word, 0x870f, 2) || starts(word, 0x0585, 2) {
        6
    } else if starts(word, 0x02_8541, 3) {
        3
    } else {
        0
    }
}

/// Whether these 8 bytes end with a call: `e8 rel32`, or through a register or
/// memory (`ff /2`), whose operand takes up to 5 bytes.
#[inline(always)]
pub(in crate::walk) const fn ends_with_call(before: u64) -> bool {
    before >> 24 & 0xff == 0xe8
        || is_indirect_call(before >> 48)
        || is_indirect_call(before >> 40)
        || is_indirect_call(before >> 32)
        || is_indirect_call(before >> 16)
        || is_indirect_call(before >> 8)
}

#[inline(always)]
const fn is_indirect_call(word: u64) -> bool {
    word & 0x38ff == 0x10ff
}

/// How the interpreter leaves a method: `pop r13`, `mov rsp, rbx`, `jmp r13`,
/// with the frame already gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    BeforePop,
    BeforeUnextend,
    BeforeJump,
    Not,
}

#[inline(always)]
pub(super) const fn leaving_interpreter(next: u64) -> Leaving {
    const JUMP: u64 = 0xe5_ff41;
    let unextend = next & 0xff_ffff;
    let is_unextend = unextend == 0xe3_8b48 || unextend == 0xdc_8948;
    if starts(next, 0x5d41, 2) && (starts(next >> 16, 0xe3_8b48, 3) || starts(next >> 16, 0xdc_8948, 3)) {
        Leaving::BeforePop
    } else if is_unextend && starts(next >> 24, JUMP, 3) {
        Leaving::BeforeUnextend
    } else if starts(next, JUMP, 3) {
        Leaving::BeforeJump
    } else {
        Leaving::Not
    }
}
