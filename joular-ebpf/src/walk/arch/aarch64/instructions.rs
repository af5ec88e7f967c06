//! Decodes the few aarch64 instructions by which compiled code makes and removes its frame. Each has four bytes, and the
//! names are those of the architecture's manual, with x29 as `fp` and x30 as `lr`.

use crate::walk::Memory;

/// Where in making or removing its frame interrupted code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameState {
    /// There is none, and the return address is in the link register.
    None,
    /// There is room for the frame, but the return address is in the link register, and the frame pointer is the
    /// caller's: not saved yet, or restored again.
    Reserved,
    /// The caller's frame pointer and the return address are on top of the stack, with no more of the frame.
    Pair,
    Whole,
}

/// `stp fp, lr, [sp, #-16]!`, `ldp fp, lr, [sp], #16`.
pub(super) const PUSH_PAIR: u32 = 0xa9bf_7bfd;
pub(super) const POP_PAIR: u32 = 0xa8c1_7bfd;
/// `mov fp, sp`.
const SET_FRAME_POINTER: u32 = 0x9100_03fd;
pub(super) const RET: u32 = 0xd65f_03c0;
/// `ldr wzr, [x8]`: a poll that traps.
const LOAD_POLL: u32 = 0xb940_011f;
/// `cmp sp, x8`: a poll that compares.
const COMPARE_POLL: u32 = 0xeb28_63ff;

/// Largest frame that is made by one instruction (`MacroAssembler::build_frame`).
const SMALL_FRAME_BYTES: u64 = (1 << 9) + 16;

/// Return addresses may be signed, above the bits of an address.
#[inline(always)]
pub(super) const fn code_address(word: u64) -> u64 {
    word & ((1 << 48) - 1)
}

/// `bl`, `blr`, `blraaz` or the like.
#[inline(always)]
pub(super) const fn is_call(word: u32) -> bool {
    word >> 26 == 0x25 || word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800
}

/// Whether the 8 bytes in front of an address end with a call.
#[inline(always)]
pub(super) const fn ends_with_call(pc: u64, before: u64) -> bool {
    pc & 3 == 0 && is_call((before >> 32) as u32)
}

/// Whether code is returned to there: behind a call, or where a method's handler of deoptimisation begins, since that
/// makes its callees return to it. It hands its own address on (`adr lr, .`).
///
/// Both are read at once. The verifier refuses what the compiler makes of a look at the handler alone: a comparison
/// even if nothing was read.
#[inline(always)]
pub(super) fn is_returned_to(memory: &impl Memory, pc: u64) -> bool {
    let Ok([before, word]) = memory.pair(pc.wrapping_sub(8)) else { return false };
    ends_with_call(pc, before) || pc & 3 == 0 && word as u32 == 0x1000_001e
}

/// `mov x8, #139; svc #0`, by which handlers of signals return (`rt_sigreturn`).
#[inline(always)]
pub(super) const fn is_signal_return(word: u64) -> bool {
    word == 0xd400_0001_d280_1168
}

/// Four instructions, the one at the lowest address first.
#[derive(Clone, Copy)]
pub(super) struct Four([u64; 2]);

impl Four {
    #[inline(always)]
    pub(super) fn read(memory: &impl Memory, address: u64) -> Option<Self> {
        memory.pair(address).ok().map(Self)
    }

    #[inline(always)]
    pub(super) const fn word(self, index: usize) -> u32 {
        (self.0[index / 2] >> (index % 2 * 32)) as u32
    }

    /// Whether a `ret` is among the last three of them, and no jump behind it.
    #[inline(always)]
    pub(super) const fn follows_return(self) -> bool {
        let mut index = 4;
        while index > 1 {
            index -= 1;
            let word = self.word(index);
            if is_jump(word) {
                return word == RET;
            }
        }
        false
    }
}

/// `sub x9, sp, #n`, in whole pages: the address of a store that touches the stack to come.
#[inline(always)]
const fn is_stack_bang(word: u32) -> bool {
    word & 0xff80_03ff == 0xd100_03e9
}

/// `sub sp, sp, #n` or, of a larger frame, `sub sp, sp, x8`.
#[inline(always)]
const fn lowers_stack(word: u32) -> bool {
    word & 0xff80_03ff == 0xd100_03ff || word == 0xcb28_63ff
}

/// `b`, `br` or `ret`: what follows is reached from elsewhere.
#[inline(always)]
pub(super) const fn is_jump(word: u32) -> bool {
    word >> 26 == 5 || word & 0xffff_fc1f == 0xd61f_0000 || word & 0xffff_fc1f == 0xd65f_0000
}

/// `pacia lr, fp`, `autia lr, fp`, `paciaz`, `autiaz`, `paciasp`, `autiasp`: they sign the link register, or check it.
#[inline(always)]
pub(super) const fn is_signing(word: u32) -> bool {
    matches!(word, 0xdac1_03be | 0xdac1_13be | 0xd503_231f | 0xd503_239f | 0xd503_233f | 0xd503_23bf)
}

/// The instructions that depend on a frame's size.
#[derive(Clone, Copy)]
struct Sized {
    /// `sub sp, sp, #size`, `add sp, sp, #size`.
    lower: u32,
    raise: u32,
    /// `stp fp, lr, [sp, #size - 16]`, `ldp fp, lr, [sp, #size - 16]`.
    save: u32,
    restore: u32,
}

impl Sized {
    /// Larger frames have none of them.
    #[inline(always)]
    const fn of(bytes: u64) -> Self {
        if bytes >= SMALL_FRAME_BYTES {
            return Self { lower: 0, raise: 0, save: 0, restore: 0 };
        }
        let (size, pair) = ((bytes as u32) << 10, (bytes.wrapping_sub(16) as u32 / 8) << 15);
        Self {
            lower: 0xd100_03ff | size,
            raise: 0x9100_03ff | size,
            save: 0xa900_7bfd | pair,
            restore: 0xa940_7bfd | pair,
        }
    }
}

/// State of a frame of this size, by the instructions around the one to be executed next.
#[inline(always)]
pub(super) const fn around(before: Four, next: Four, bytes: u64) -> FrameState {
    let of = Sized::of(bytes);
    let (word, last) = (next.word(0), before.word(3));
    // In front of the frame.
    if is_stack_bang(word) || is_stack_bang(last) || word == of.lower || word == PUSH_PAIR || is_signing(word) {
        return FrameState::None;
    }
    if word == of.save || word == of.raise && last == of.restore {
        return FrameState::Reserved;
    }
    if word == POP_PAIR || has_only_pair(before) {
        return FrameState::Pair;
    }
    if has_removed(before, of) || leads_to_return(next) || is_in_poll_stub(before, next) {
        return FrameState::None;
    }
    FrameState::Whole
}

/// Whether it saves the return address in a frame of this size.
#[inline(always)]
pub(super) const fn saves(word: u32, bytes: u64) -> bool {
    word == PUSH_PAIR || word == Sized::of(bytes).save
}

/// Whether the pair was pushed, and nothing else yet.
#[inline(always)]
const fn has_only_pair(before: Four) -> bool {
    let mut index = 4;
    while index > 0 {
        index -= 1;
        let word = before.word(index);
        if word == PUSH_PAIR {
            return true;
        }
        // A large frame's size is put into x8.
        let is_size = word & 0xff80_001f == 0xd280_0008 || word & 0xff80_001f == 0xf280_0008;
        if word != SET_FRAME_POINTER && !is_size || lowers_stack(word) {
            return false;
        }
    }
    false
}

/// Whether the frame was removed up to three instructions ago, in the same run of instructions.
#[inline(always)]
const fn has_removed(before: Four, of: Sized) -> bool {
    let mut index = 4;
    while index > 1 {
        index -= 1;
        let word = before.word(index);
        if word == POP_PAIR || word == of.raise && before.word(index - 1) == of.restore {
            return true;
        }
        if is_jump(word) {
            return false;
        }
    }
    false
}

/// Whether a return follows, with what is left of the checks before it: of a safepoint poll, or for an exception in
/// native code.
#[inline(always)]
const fn leads_to_return(next: Four) -> bool {
    let mut index = 0;
    while index < 4 {
        let word = next.word(index);
        if word == RET {
            return true;
        }
        if !is_check(word) {
            return false;
        }
        index += 1;
    }
    false
}

/// `ldr x8, [x28, #n]` or `adrp x8`, `ldr wzr, [x8]`, `cmp sp, x8`, `b.hi`, `cbnz x8`.
#[inline(always)]
const fn is_check(word: u32) -> bool {
    word & 0xffc0_03ff == 0xf940_0388
        || word & 0x9f00_001f == 0x9000_0008
        || word == LOAD_POLL
        || word == COMPARE_POLL
        || word & 0xff00_001f == 0x5400_0008
        || word & 0xff00_001f == 0xb500_0008
}

/// Whether a method that returns has jumped to the stub of its poll: `adr x8, <poll>`, `str x8, [x28, #n]`, and a jump,
/// which may be `adrp`, `add`, `br`.
#[inline(always)]
const fn is_in_poll_stub(before: Four, next: Four) -> bool {
    let mut index = 0;
    while index < 5 {
        // The place of `adr` in both, as one row.
        let (adr, store) = match index {
            4 => (next.word(0), next.word(1)),
            3 => (before.word(3), next.word(0)),
            _ => (before.word(index), before.word(index + 1)),
        };
        if adr & 0x9f00_001f == 0x1000_0008 && store & 0xffc0_03ff == 0xf900_0388 {
            let has_jumped = index < 2 && (is_jump(before.word(3)) || is_jump(before.word(2)));
            if !has_jumped {
                return true;
            }
        }
        index += 1;
    }
    false
}

/// How an instruction changes the stack pointer, in bytes.
#[inline(always)]
pub(super) const fn stack_change(word: u32) -> i64 {
    /// The register is the stack pointer.
    const ON_STACK: u32 = 31 << 5;
    // `add sp, sp, #n`, `sub sp, sp, #n`.
    if word & 0xbf80_03ff == 0x9100_03ff {
        let bytes = ((word >> 10 & 0xfff) as i64) << ((word >> 22 & 1) * 12);
        return if word & 1 << 30 == 0 { bytes } else { -bytes };
    }
    // `ldp` and `stp` with an index that stays.
    if word & 0x3a80_03e0 == 0x2880_0000 | ON_STACK {
        let scale = if word & 1 << 26 != 0 { 2 + (word >> 30) } else { 2 + (word >> 31) };
        return ((word << 10) as i32 >> 25) as i64 * (1 << (scale & 7));
    }
    // `ldr` and `str` with one.
    if word & 0x3b20_07e0 == 0x3800_0400 | ON_STACK {
        return ((word << 11) as i32 >> 23) as i64;
    }
    // `ld1` of up to four registers.
    if word & 0xbfff_03e0 == 0x0cdf_0000 | ON_STACK {
        let registers = match word >> 12 & 15 {
            0b0111 => 1,
            0b1010 => 2,
            0b0110 => 3,
            0b0010 => 4,
            _ => 0,
        };
        return registers * if word & 1 << 30 == 0 { 8 } else { 16 };
    }
    0
}

/// Whether it restores the frame pointer, as the end of a method does, or leads elsewhere and does not come back.
#[inline(always)]
pub(super) const fn ends_run(word: u32) -> bool {
    // `ldp` to `fp` and `lr`; `b.cond`; `cbz`, `cbnz`, `tbz`, `tbnz`.
    word & 0x7e40_7fff == 0x2840_7bfd
        || is_jump(word)
        || word & 0xff00_0010 == 0x5400_0000
        || word & 0x7c00_0000 == 0x3400_0000
}

/// `and sp, x, #-16`, by which the interpreter gives the caller its stack back.
#[inline(always)]
pub(super) const fn is_restore_of_stack(word: u32) -> bool {
    word & 0xffff_fc1f == 0x927c_ec1f
}

/// What an adapter does first: `mov x, sp` with the number of a register, and `sub sp, sp, #bytes`.
#[inline(always)]
pub(super) const fn makes_room(register: u32, bytes: u64) -> u64 {
    let mov = 0x9100_03e0 | register & 31;
    let sub = 0xd100_03ff | (bytes as u32 & 0xfff) << 10;
    mov as u64 | (sub as u64) << 32
}
