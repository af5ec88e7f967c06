//! Decodes loads and stores of A64.

use super::instruction::{Access, Operation, SP, bits, register, register_or_sp, signed, target};
use crate::arch::RegisterSet;

/// Of atomic instructions and those that lock: which of these registers they write is not looked at.
const fn any_register(word: u32) -> RegisterSet {
    let status = register(word, 16);
    // A pair that is compared and exchanged is that register and the next.
    let pair = if status < SP { status | 1 } else { status };
    RegisterSet::of(register(word, 0)).with(register(word, 10)).with(status).with(pair)
}

pub const fn operation(word: u32, at: u64) -> Operation {
    let is_vector = bits(word, 26, 1) != 0;
    match bits(word, 27, 3) {
        // Vectors of several registers, then those that lock and compare.
        0b001 if is_vector && bits(word, 23, 1) != 0 => Operation::Other(RegisterSet::of(register_or_sp(word, 5))),
        0b001 if is_vector => Operation::Nothing,
        0b001 => Operation::Other(any_register(word)),
        0b011 if bits(word, 24, 1) == 0 => literal(word, at),
        // Tags of memory, copies of memory, and loads that order others.
        0b011 => {
            let moves_base = bits(word, 10, 1) != 0;
            let written = any_register(word);
            Operation::Other(if moves_base { written.with(register_or_sp(word, 5)) } else { written })
        }
        0b101 => pair(word),
        0b111 => single(word),
        _ => Operation::Invalid,
    }
}

const fn literal(word: u32, at: u64) -> Operation {
    let to = register(word, 0);
    match (bits(word, 30, 2), bits(word, 26, 1)) {
        (1, 0) => Operation::Literal { to, address: target(word, at, 5, 19) },
        (0 | 2, 0) => Operation::Other(RegisterSet::of(to)),
        _ => Operation::Nothing,
    }
}

/// How the address is made.
struct Indexing {
    offset: i64,
    moves_base: i64,
}

impl Indexing {
    /// By the two bits that say so: 1 is post-indexed, 3 pre-indexed.
    const fn of(mode: u32, offset: i64) -> Self {
        match mode {
            1 => Self { offset: 0, moves_base: offset },
            3 => Self { offset, moves_base: offset },
            _ => Self { offset, moves_base: 0 },
        }
    }
}

const fn pair(word: u32) -> Operation {
    let (kind, is_vector, is_load) = (bits(word, 30, 2), bits(word, 26, 1) != 0, bits(word, 22, 1) != 0);
    // Each of the two; a store with a tag has a wider step.
    let (bytes, step) = match (kind, is_vector) {
        (_, true) => (4 << kind, 4 << kind),
        (0, false) => (4, 4),
        (1, false) if is_load => (4, 4),
        (1, false) => (8, 16),
        (2, false) => (8, 8),
        _ => return Operation::Other(any_register(word)),
    };
    let Indexing { offset, moves_base } = Indexing::of(bits(word, 23, 2), signed(word, 15, 7) * step);
    let (first, second) = (register(word, 0), register(word, 10));
    let is_whole = !is_vector && bytes == 8;
    Operation::Access(Access {
        is_load,
        base: register_or_sp(word, 5),
        offset,
        moves_base,
        words: if is_whole { [Some(first), Some(second)] } else { [None, None] },
        written: if is_load && !is_vector { RegisterSet::of(first).with(second) } else { RegisterSet::NONE },
        bytes: 2 * bytes,
    })
}

const fn single(word: u32) -> Operation {
    let (size, is_vector, kind) = (bits(word, 30, 2), bits(word, 26, 1) != 0, bits(word, 22, 2));
    let first = register(word, 0);
    let scale = if is_vector { size | (kind & 2) << 1 } else { size };
    let is_load = if is_vector { kind & 1 != 0 } else { kind != 0 };
    let written = if is_load && !is_vector { RegisterSet::of(first) } else { RegisterSet::NONE };
    let is_prefetch = !is_vector && size == 3 && kind == 2;
    let Indexing { offset, moves_base } = match (bits(word, 24, 1), bits(word, 21, 1), bits(word, 10, 2)) {
        (1, ..) => Indexing { offset: (bits(word, 10, 12) as i64) << scale, moves_base: 0 },
        (_, 0, mode) => Indexing::of(mode, signed(word, 12, 9)),
        // The address is a sum of two registers.
        (_, _, 2) => return if is_prefetch { Operation::Nothing } else { Operation::Other(written) },
        // Atomic: they leave what was in memory in their first register, or a status in another.
        (_, _, 0) => return Operation::Other(any_register(word)),
        // Loads by a signed address.
        _ => return Operation::Other(RegisterSet::of(first).with(register_or_sp(word, 5))),
    };
    if is_prefetch {
        return Operation::Nothing;
    }
    Operation::Access(Access {
        is_load,
        base: register_or_sp(word, 5),
        offset,
        moves_base,
        words: [if !is_vector && size == 3 { Some(first) } else { None }, None],
        written,
        bytes: 1 << scale,
    })
}
