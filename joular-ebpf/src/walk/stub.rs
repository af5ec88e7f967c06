//! Steps through code of a JVM whose frame nobody describes: stubs and adapters. Most stubs have rows,
//! which user space made from their code. For the others, the architecture decides where their
//! return addresses are.

use super::{End, Memory, Step, Tables, Walk, arch::Arch, continuation, hotspot::blob_word, native};
use crate::abi::{JvmUnwind, UnwindRow, rule};

/// Farthest that a stub's frame pointer is above its stack pointer.
pub(super) const MAX_FRAME_BYTES: u64 = 64 << 10;

/// What is known of such code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Where C++ called Java: it has a frame pointer.
    Entry,
    /// The jumps through tables of virtual methods: they have no frame.
    Frameless,
    /// Where a virtual thread goes on with what the heap has of its stack.
    Continuation,
    Unknown,
}

/// One frame of such code.
#[inline(always)]
pub fn step<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    kind: Kind,
) -> Step {
    if kind == Kind::Continuation {
        return continuation::step(memory, tables, jvm, walk);
    }
    walk.push(blob_word(jvm, walk.registers.pc))?;
    match kind {
        Kind::Entry => A::by_frame_pointer(memory, walk),
        Kind::Frameless => A::without_frame(memory, tables, jvm, walk),
        Kind::Continuation | Kind::Unknown => A::by_what_the_stack_holds(memory, tables, jvm, walk),
    }
}

/// One frame of a stub by its row; `None` if it has none. What the row calls the return address must
/// look like one.
#[inline(always)]
pub fn step_by_row<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
) -> Option<Step> {
    let row = native::row_of(tables, walk)?;
    if !A::is_of_stub(row.rule) {
        return None;
    }
    Some(along_row(memory, tables, jvm, walk, row))
}

#[inline(always)]
fn along_row<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
    row: UnwindRow,
) -> Step {
    walk.push(blob_word(jvm, walk.registers.pc))?;
    let mut pushed = 0;
    let mut row = row;
    if row.rule == rule::SP_PUSHED {
        pushed = row.fp_words as u8;
        row = UnwindRow { rule: rule::SP, fp_words: 0, ..row };
    }
    A::by_row(memory, walk, row)?;
    walk.registers.sp = walk.registers.sp.wrapping_add(u64::from(pushed) * 8);
    let is_proved = tables.is_return_address(memory, jvm, walk, walk.registers.pc);
    if is_proved { Ok(()) } else { Err(End::IMPLAUSIBLE) }
}
