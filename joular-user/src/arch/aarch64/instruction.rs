//! Decodes the instructions of A64 that matter to who follows code: where they branch, which addresses and
//! numbers they make, and which registers and words of memory they change.
//!
//! Every instruction is a word of 4 bytes. Source of the encodings: Arm Architecture Reference Manual for A-profile
//! (DDI 0487), chapters C4 and C6.

use super::memory;
use crate::arch::RegisterSet;

/// Numbers of registers. Number 31 is the stack pointer or a register that is always 0, depending on the
/// instruction; the latter is [`ZERO`].
pub const FP: usize = 29;
pub const LR: usize = 30;
pub const SP: usize = 31;
/// No register keeps what is written to it.
pub const ZERO: usize = 32;

pub const INSTRUCTION_BYTES: usize = 4;
const PAGE_BYTES: i64 = 4096;
const PAGE_MASK: u64 = !0xfff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub at: u64,
    pub word: u32,
    pub operation: Operation,
}

/// What an instruction does. Registers are of 64 bits; instructions on their halves are [`Operation::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Changes no general register and no memory that is followed. It may sign or check the return address.
    Nothing,
    /// `bl`.
    Call(u64),
    /// `blr`, `blraa`.
    IndirectCall(usize),
    /// `b`.
    Jump(u64),
    /// `b.eq`, `cbz`, `tbz`.
    Branch(u64),
    /// `br`, `braa`.
    IndirectJump(usize),
    /// `ret`, `retaa`.
    Return,
    /// `svc`.
    SystemCall,
    /// `udf`, `brk`, `hlt`, `eret`: execution does not go on behind it.
    Stop,
    /// `adr`.
    Address {
        to: usize,
        address: u64,
    },
    /// `adrp`: the beginning of a page of 4096 bytes.
    Page {
        to: usize,
        address: u64,
    },
    /// `ldr` of a word beside the code.
    Literal {
        to: usize,
        address: u64,
    },
    /// `movz`, `movn`.
    Number {
        to: usize,
        number: u64,
    },
    /// `movk`: 16 bits of the register, from this bit on.
    Part {
        to: usize,
        number: u64,
        shift: u32,
    },
    /// `mov` of a register.
    Copy {
        to: usize,
        from: usize,
    },
    /// `add`, `sub` of a number.
    Add {
        to: usize,
        from: usize,
        bytes: i64,
    },
    /// `add`, `sub` of a register without a shift.
    AddRegister {
        to: usize,
        from: usize,
        added: usize,
        is_sub: bool,
    },
    /// `and` that clears the lowest bits.
    Align {
        to: usize,
        from: usize,
    },
    Access(Access),
    /// Writes these registers.
    Other(RegisterSet),
    /// Not an instruction.
    Invalid,
}

/// A load or store at an address that counts from a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub is_load: bool,
    pub base: usize,
    /// Added to the base for the address.
    pub offset: i64,
    /// What is added to the base register as well, and stays there (pre- and post-indexed).
    pub moves_base: i64,
    /// Registers whose whole words are loaded or stored, at the address and behind it.
    pub words: [Option<usize>; 2],
    /// Registers that a load gives another value.
    pub written: RegisterSet,
    /// That are loaded or stored.
    pub bytes: i32,
}

impl Instruction {
    pub const fn decode(word: u32, at: u64) -> Self {
        Self { at, word, operation: operation(word, at) }
    }

    /// The number that it puts into a register, if that is plain from numbers that registers hold.
    pub fn number(&self, held: impl Fn(usize) -> Option<u64>) -> Option<(usize, u64)> {
        match self.operation {
            Operation::Address { to, address } | Operation::Page { to, address } => Some((to, address)),
            Operation::Number { to, number } => Some((to, number)),
            Operation::Part { to, number, shift } => {
                let cleared = held(to)? & !(0xffff_u64 << shift);
                Some((to, cleared | number << shift))
            }
            Operation::Copy { to, from } => Some((to, held(from)?)),
            Operation::Add { to, from, bytes } => Some((to, held(from)?.wrapping_add_signed(bytes))),
            _ => None,
        }
    }

    /// The registers that it changes.
    pub fn written(&self) -> RegisterSet {
        match self.operation {
            Operation::Call(_) | Operation::IndirectCall(_) => RegisterSet::of(LR),
            Operation::SystemCall => RegisterSet::of(0),
            Operation::Address { to, .. }
            | Operation::Page { to, .. }
            | Operation::Literal { to, .. }
            | Operation::Number { to, .. }
            | Operation::Part { to, .. }
            | Operation::Copy { to, .. }
            | Operation::Add { to, .. }
            | Operation::AddRegister { to, .. }
            | Operation::Align { to, .. } => RegisterSet::of(to),
            Operation::Access(Access { base, moves_base, written, .. }) => {
                if moves_base == 0 {
                    written
                } else {
                    written.with(base)
                }
            }
            Operation::Other(written) => written,
            _ => RegisterSet::NONE,
        }
    }
}

/// `count` bits from bit `first` on.
pub const fn bits(word: u32, first: u32, count: u32) -> u32 {
    word >> first & ((1 << count) - 1)
}

/// The same as a number with a sign.
pub const fn signed(word: u32, first: u32, count: u32) -> i64 {
    let unused = 32 - count;
    ((bits(word, first, count) << unused).cast_signed() >> unused) as i64
}

/// The register of five bits, where 31 is the one that is always 0.
pub const fn register(word: u32, first: u32) -> usize {
    let number = bits(word, first, 5) as usize;
    if number == SP { ZERO } else { number }
}

/// The register of five bits, where 31 is the stack pointer.
pub const fn register_or_sp(word: u32, first: u32) -> usize {
    bits(word, first, 5) as usize
}

const fn operation(word: u32, at: u64) -> Operation {
    match bits(word, 25, 4) {
        0b1000 | 0b1001 => immediate(word, at),
        0b1010 | 0b1011 => branch(word, at),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => memory::operation(word, at),
        0b0101 | 0b1101 => of_registers(word),
        0b0111 | 0b1111 => vector(word),
        // Scalable vectors. Some write the register of the lowest bits.
        0b0010 if is_scaled_add(word) => Operation::Other(RegisterSet::of(register_or_sp(word, 0))),
        0b0010 => other(register(word, 0)),
        // Scalable matrices.
        0b0000 if word >> 31 != 0 => other(register(word, 0)),
        0b0000 if word >> 16 == 0 => Operation::Stop,
        _ => Operation::Invalid,
    }
}

/// An instruction that writes this register.
const fn other(to: usize) -> Operation {
    Operation::Other(RegisterSet::of(to))
}

/// `addvl`, `addpl`, `addsvl`, `addspl`.
const fn is_scaled_add(word: u32) -> bool {
    matches!(word & 0xffe0_f000, 0x0420_5000 | 0x0460_5000)
}

const fn immediate(word: u32, at: u64) -> Operation {
    let (to, is_whole) = (register(word, 0), word >> 31 != 0);
    match bits(word, 23, 3) {
        0 | 1 => {
            let offset = signed(word, 5, 19) << 2 | bits(word, 29, 2) as i64;
            if is_whole {
                Operation::Page { to, address: (at & PAGE_MASK).wrapping_add_signed(offset * PAGE_BYTES) }
            } else {
                Operation::Address { to, address: at.wrapping_add_signed(offset) }
            }
        }
        2 => {
            let (is_sub, sets_flags) = (bits(word, 30, 1) != 0, bits(word, 29, 1) != 0);
            let to = if sets_flags { to } else { register_or_sp(word, 0) };
            let from = register_or_sp(word, 5);
            let bytes = (bits(word, 10, 12) as i64) << (12 * bits(word, 22, 1));
            if !is_whole {
                return other(to);
            }
            if bytes == 0 && !sets_flags {
                return Operation::Copy { to, from };
            }
            Operation::Add { to, from, bytes: if is_sub { -bytes } else { bytes } }
        }
        // Of addresses with tags.
        3 => other(register_or_sp(word, 0)),
        4 => {
            let sets_flags = bits(word, 29, 2) == 3;
            let to = if sets_flags { to } else { register_or_sp(word, 0) };
            // Ones down to some bit: `immr` moves as many ones as there are (`imms` + 1) to the top.
            let is_align = bits(word, 22, 1) == 1 && bits(word, 16, 6) == bits(word, 10, 6) + 1;
            if is_whole && bits(word, 29, 2) == 0 && is_align {
                Operation::Align { to, from: register(word, 5) }
            } else {
                other(to)
            }
        }
        5 => {
            let (number, shift) = (bits(word, 5, 16) as u64, 16 * bits(word, 21, 2));
            match (bits(word, 29, 2), is_whole) {
                (2, true) => Operation::Number { to, number: number << shift },
                (2, false) if shift < 32 => Operation::Number { to, number: number << shift },
                (0, true) => Operation::Number { to, number: !(number << shift) },
                (3, true) => Operation::Part { to, number, shift },
                _ => other(to),
            }
        }
        _ => other(to),
    }
}

/// The place that many instructions from this one.
pub const fn target(word: u32, at: u64, first: u32, count: u32) -> u64 {
    at.wrapping_add_signed(signed(word, first, count) << 2)
}

const fn branch(word: u32, at: u64) -> Operation {
    const SVC: u32 = 0xd400_0001;
    match word >> 24 {
        0x14..=0x17 => Operation::Jump(target(word, at, 0, 26)),
        0x94..=0x97 => Operation::Call(target(word, at, 0, 26)),
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Operation::Branch(target(word, at, 5, 19)),
        0x36 | 0x37 | 0xb6 | 0xb7 => Operation::Branch(target(word, at, 5, 14)),
        0xd4 if word & 0xffe0_001f == SVC => Operation::SystemCall,
        0xd4 => Operation::Stop,
        // Hints, barriers and registers of the system; `mrs` and `sysl` write a general one.
        0xd5 if bits(word, 21, 1) == 0 => Operation::Nothing,
        0xd5 => other(register(word, 0)),
        0xd6 | 0xd7 => match bits(word, 21, 3) {
            0 => Operation::IndirectJump(register(word, 5)),
            1 => Operation::IndirectCall(register(word, 5)),
            2 if word >> 24 == 0xd6 => Operation::Return,
            _ => Operation::Stop,
        },
        _ => Operation::Invalid,
    }
}

const fn of_registers(word: u32) -> Operation {
    const MOV: u32 = 0xaa00_03e0;
    const ADD: u32 = 0x8b00_0000;
    const ADD_EXTENDED: u32 = 0x8b20_6000;
    /// `ccmp`, `ccmn`: they have flags where others have a register.
    const COMPARE: u32 = 0x1a40_0000;
    let is_sub = bits(word, 30, 1) != 0;
    if word & 0xffe0_ffe0 == MOV {
        return Operation::Copy { to: register(word, 0), from: register(word, 16) };
    }
    if word & 0xbfe0_fc00 == ADD {
        let (to, from, added) = (register(word, 0), register(word, 5), register(word, 16));
        return Operation::AddRegister { to, from, added, is_sub };
    }
    if word & 0xbfe0_fc00 == ADD_EXTENDED {
        let (to, from, added) = (register_or_sp(word, 0), register_or_sp(word, 5), register(word, 16));
        return Operation::AddRegister { to, from, added, is_sub };
    }
    if word & 0x1fe0_0000 == COMPARE {
        return Operation::Nothing;
    }
    // Of the others, only sums of an extended register may be written to the stack pointer.
    if word & 0x3fe0_0000 == 0x0b20_0000 { other(register_or_sp(word, 0)) } else { other(register(word, 0)) }
}

/// Instructions on vector registers that write a general one.
const fn vector(word: u32) -> Operation {
    /// `fmov`, `fcvtzs` and the like: bits 16 to 18 say what is converted to what.
    const CONVERT: u32 = 0x1e20_0000;
    const CONVERT_FIXED: u32 = 0x1e00_0000;
    const SMOV: u32 = 0x0e00_2c00;
    const UMOV: u32 = 0x0e00_3c00;
    let is_conversion = word & 0x7f20_fc00 == CONVERT && matches!(bits(word, 16, 3), 0 | 1 | 4 | 5 | 6)
        || is_fixed(word, CONVERT_FIXED);
    if is_conversion || matches!(word & 0xbfe0_fc00, SMOV | UMOV) {
        other(register(word, 0))
    } else {
        Operation::Nothing
    }
}

const fn is_fixed(word: u32, convert: u32) -> bool {
    word & 0x7f20_0000 == convert && matches!(bits(word, 16, 3), 0 | 1)
}
