//! Decodes the few x86-64 instructions by which compiled code makes and removes its frame.

use crate::walk::Memory;

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
    /// The frame is gone, and the return address was popped: it is right below the stack pointer.
    Popped,
    /// There is no frame, and the return address is in a register that is not known.
    Lost,
    /// None of the instructions that are known.
    Unknown,
}

/// `push rbp`.
const PUSH: u64 = 0x55;
const POP: u64 = 0x5d;
const RET: u64 = 0xc3;
const LEAVE: u64 = 0xc9;
/// `jmp` with a distance of 32 bits.
const JUMP: u64 = 0xe9;

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

/// `sub rsp, n`.
#[inline(always)]
pub(super) const fn lowers_stack(word: u64) -> bool {
    subtract(word) != 0
}

/// `add rsp, n`: how many bytes, and the instruction's length.
#[inline(always)]
pub(super) const fn raises_stack(word: u64) -> Option<(u64, u32)> {
    if starts(word, 0xc4_8348, 3) {
        Some(((word >> 24) as i8 as u64, 4))
    } else if starts(word, 0xc4_8148, 3) {
        Some(((word >> 24) as i32 as u64, 7))
    } else {
        None
    }
}

/// `pop rbp`.
#[inline(always)]
pub(super) const fn is_pop_frame_pointer(word: u64) -> bool {
    starts(word, POP, 1)
}

/// `add rsp, 8`.
#[inline(always)]
pub(super) const fn takes_off_word(word: u64) -> bool {
    starts(word, 0x08c4_8348, 4)
}

/// `mov [rsp + n], rbp`.
#[inline(always)]
const fn is_save_frame_pointer(word: u64) -> bool {
    starts(word, 0x246c_8948, 4) || starts(word, 0x24ac_8948, 4)
}

/// `mov [rsp - n], eax`: touches the stack to come. Above the stack pointer it stores a local.
#[inline(always)]
const fn is_stack_bang(word: u64) -> bool {
    starts(word, 0x24_8489, 3) && ((word >> 24) as i32) < 0
}

/// `push` of a register without a prefix.
#[inline(always)]
const fn is_push(byte: u64) -> bool {
    byte & 0xf8 == 0x50
}

/// `pop` of a register without a prefix.
#[inline(always)]
const fn is_pop(byte: u64) -> bool {
    byte & 0xf8 == 0x58
}

/// `jmp` to the address in a register.
#[inline(always)]
const fn is_jump_to_register(word: u64) -> bool {
    word & 0xf8ff == 0xe0ff
}

/// How far the `jmp` goes, counted from its begin.
#[inline(always)]
pub(super) const fn jump(word: u64) -> Option<i64> {
    if starts(word, JUMP, 1) { Some((word >> 8) as i32 as i64 + 5) } else { None }
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

/// State of a method's frame behind its prologue. Only prologues and epilogues push or pop the frame
/// pointer. C1 has a second prologue, where interpreted code goes on in the middle of a loop.
#[inline(always)]
pub(super) const fn in_method(next: Bytes, before: u64) -> FrameState {
    let word = next[0];
    if is_stack_bang(word) || starts(word, PUSH, 1) || is_return(next) {
        return FrameState::None;
    }
    let is_pushed = before >> 56 == PUSH && subtract(word) != 0;
    if is_pushed || starts(word, POP, 1) { FrameState::Pushed } else { FrameState::Whole }
}

/// Whether a `jmp` behind these bytes, if it leaves the method, leaves it without a frame: behind
/// `pop rbp`, or in the stub of a poll.
#[inline(always)]
pub(super) const fn has_no_frame_to_jump(before: u64) -> bool {
    before >> 56 == POP || starts(before >> 8, NOTE_POLL, 3)
}

/// `mov [r15 + n], r10`: the place of the poll, in its stub.
const NOTE_POLL: u64 = 0x97_894d;

/// Length of the instructions in the stub of a poll that take note of the poll's place, in front of
/// its `jmp`; 0 if they are others.
#[inline(always)]
pub(super) const fn poll_note(next: Bytes) -> u32 {
    // `mov r10, n` or `lea r10, [rip + n]`.
    let load = if starts(next[0], 0xba49, 2) {
        10
    } else if starts(next[0], 0x15_8d4c, 3) {
        7
    } else {
        0
    };
    if starts(skip(next, load)[0], NOTE_POLL, 3) { load + 7 } else { 0 }
}

/// State of a wrapper's frame behind its prologue: its last jump, to the handler of an exception, is
/// behind its `ret`.
#[inline(always)]
pub(super) const fn in_wrapper(next: Bytes, before: u64) -> FrameState {
    if before >> 56 == RET && starts(next[0], JUMP, 1) { FrameState::None } else { in_epilogue(next) }
}

/// State of a runtime stub's frame, of which the JVM does not say where it is complete.
#[inline(always)]
pub(super) const fn in_stub(next: Bytes, before: u64, is_first: bool) -> FrameState {
    let (word, last) = (next[0], before >> 56);
    if is_first && is_push(word & 0xff) {
        // Another register holds the address at which an exception was thrown, which is pushed where a
        // return address would be.
        return if starts(word, PUSH, 1) { FrameState::None } else { FrameState::Lost };
    }
    if last == PUSH && (is_set_frame_pointer(word) || subtract(word) != 0) {
        return FrameState::Pushed;
    }
    // The return address, or the pushed address of an exception, is on top.
    if (is_first || last == PUSH_RDX) && subtract(word) != 0 {
        return FrameState::None;
    }
    if starts(word, SAVE_FRAME_POINTER_ON_TOP, 4) {
        return FrameState::Reserved;
    }
    // A pop of another register than the frame pointer takes the address of an exception.
    if is_pop(word & 0xff) && is_jump_to_register(word >> 8) {
        return if starts(word, POP, 1) { FrameState::Pushed } else { FrameState::None };
    }
    if is_pop(last) && is_jump_to_register(word) {
        return if last == POP { FrameState::None } else { FrameState::Popped };
    }
    if is_behind_exception_pop(next, last) { FrameState::Popped } else { in_epilogue(next) }
}

const PUSH_RDX: u64 = 0x52;

/// `mov [rsp], rbp`.
const SAVE_FRAME_POINTER_ON_TOP: u64 = 0x242c_8948;

/// Whether this is an instruction of the exception blob between the pop of the exception's address
/// and the jump to its handler: `mov r8, rax`, `mov rax, [r15 + n]`, `mov rdx, [r15 + n]`,
/// `mov [r15 + n], 0`, `jmp r8`.
#[inline(always)]
const fn is_behind_exception_pop(next: Bytes, last: u64) -> bool {
    const LOAD_RAX: u64 = 0x87_8b49;
    const LOAD_RDX: u64 = 0x97_8b49;
    const CLEAR: u64 = 0x87_c749;
    const JUMP_R8: u64 = 0xe0_ff41;
    let word = next[0];
    starts(word, 0xc0_8b4c, 3) && is_pop(last)
        || starts(word, LOAD_RAX, 3) && starts(skip(next, 7)[0], LOAD_RDX, 3)
        || starts(word, LOAD_RDX, 3) && starts(skip(next, 7)[0], CLEAR, 3)
        || starts(word, CLEAR, 3) && starts(skip(next, 11)[0], JUMP_R8, 3)
        || starts(word, JUMP_R8, 3)
}

/// State of a frame being removed; `Whole` if this is not an epilogue.
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

/// `ret`, with what is left of the checks before it: of a safepoint poll, or for an exception in
/// native code.
#[inline(always)]
const fn is_return(next: Bytes) -> bool {
    let next = skip(next, poll_load(next[0]));
    let next = skip(next, check(next[0]));
    starts(next[0], RET, 1)
}

/// `cmp rsp, [r15 + n]`, `mov r10, [r15 + n]` or `cmp [r15 + n], 0`: its length.
#[inline(always)]
const fn poll_load(word: u64) -> u32 {
    if starts(word, 0x67_3b49, 3) || starts(word, 0x57_8b4d, 3) {
        4
    } else if starts(word, 0x7f_8349, 3) {
        5
    } else if starts(word, 0xa7_3b49, 3) || starts(word, 0x97_8b4d, 3) {
        7
    } else if starts(word, 0x7f_8149, 3) {
        8
    } else {
        0
    }
}

/// `ja` or `jne` far, `test [r10], eax` or `test [rip + n], eax`: its length.
#[inline(always)]
const fn check(word: u64) -> u32 {
    if starts(word, 0x870f, 2) || starts(word, 0x850f, 2) || starts(word, 0x0585, 2) {
        6
    } else if starts(word, 0x02_8541, 3) {
        3
    } else {
        0
    }
}

/// A return address, as the address that it is.
#[inline(always)]
pub(super) const fn code_address(word: u64) -> u64 {
    word
}

/// Whether code is returned to there: behind a call, or at a handler of deoptimisation.
#[inline(always)]
pub(super) fn is_returned_to(memory: &impl Memory, pc: u64) -> bool {
    memory.word(pc.wrapping_sub(8)).is_ok_and(ends_with_call) || is_deopt_handler(memory, pc)
}

/// Whether these 8 bytes end with a call: `e8 rel32`, or through a register or
/// memory (`ff /2`), whose operand takes up to 5 bytes.
#[inline(always)]
const fn ends_with_call(before: u64) -> bool {
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

/// Whether a compiled method's handler of deoptimisation begins there: that makes a method's callees return to it. It
/// hands its own address on: C2's by a call of what follows, C1's in `r10`.
#[inline(always)]
fn is_deopt_handler(memory: &impl Memory, pc: u64) -> bool {
    let (Ok(word), Ok(from_third)) = (memory.word(pc), memory.word(pc.wrapping_add(2))) else { return false };
    word == 0x2c83_4800_0000_00e8 || (word & 0xffff == 0xba49 && from_third == pc)
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
