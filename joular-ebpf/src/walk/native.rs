//! Steps through native code: by the rows that user space made of the files' unwind tables, and by
//! frame pointers where there are none.

use super::{End, Memory, Step, Tables, USER_END, Walk, arch::Arch};
use crate::abi::{CodeMapping, FrameWord, ProcessUnwind, UnwindRow, rule, walk_end};

/// Enough for the most mappings a process may have, and for the most rows.
const MAPPING_SEARCH_STEPS: u32 = 17;
const ROW_SEARCH_STEPS: u32 = 22;
/// Farthest that a chain of frame pointers leads at once.
const MAX_FRAME_BYTES: u64 = 1 << 20;

/// One frame of native code.
#[inline(always)]
pub fn step<A: Arch>(memory: &impl Memory, tables: &impl Tables, walk: &mut Walk<A>) -> Step {
    let pc = walk.registers.pc;
    if pc >= USER_END {
        return Err(End::IMPLAUSIBLE);
    }
    // Below the leaf, user space takes every address for one behind a call.
    let is_interrupted_below_leaf = walk.is_exact() && walk.header.len > 0;
    walk.push(FrameWord::native(pc + u64::from(is_interrupted_below_leaf)))?;
    let Some(row) = row_of(tables, walk) else { return by_frame_pointer(memory, walk, End(walk_end::NO_MAPPING)) };
    match row.rule {
        rule::ROOT => Err(End(walk_end::ROOT)),
        rule::SIGNAL => interrupted(memory, walk),
        rule::NONE => by_frame_pointer(memory, walk, End(walk_end::NO_RULE)),
        _ => A::by_row(memory, walk, row),
    }
}

/// The row for the frame; `None` if its code is in no mapping that is known.
#[inline(always)]
pub(super) fn row_of<A: Arch>(tables: &impl Tables, walk: &Walk<A>) -> Option<UnwindRow> {
    // A return address may be the first one behind its function.
    let pc = walk.registers.pc;
    let address = if walk.is_exact() { pc } else { pc.wrapping_sub(1) };
    if let Some(row) = tables.remembered(&walk.process, address) {
        return Some(row);
    }
    let mapping = find_mapping(tables, &walk.process, address)?;
    let row = find_row(tables, mapping, address.wrapping_sub(mapping.bias));
    tables.remember(&walk.process, address, row);
    Some(row)
}

/// A return address of 0 is how some threads begin.
#[inline(always)]
pub(super) fn return_to<A: Arch>(walk: &mut Walk<A>, pc: u64, sp: u64, fp: u64) -> Step {
    if pc == 0 && sp > walk.registers.sp && sp < USER_END {
        return Err(End(walk_end::ROOT));
    }
    walk.return_to(pc, sp, fp)
}

#[inline(always)]
pub(super) const fn words(count: i64) -> u64 {
    (count * 8) as u64
}

/// Without a rule the frame pointer is tried, if it points at something that looks like a frame.
/// Otherwise the walk ends with `why`, the reason that there is no rule.
#[inline(always)]
fn by_frame_pointer<A: Arch>(memory: &impl Memory, walk: &mut Walk<A>, why: End) -> Step {
    let fp = walk.registers.fp;
    if fp == 0 {
        return Err(End(walk_end::CHAIN));
    }
    // Below the stack pointer it points at nobody's frame.
    if fp.wrapping_sub(walk.registers.sp) > MAX_FRAME_BYTES || fp & 7 != 0 {
        return Err(why);
    }
    let Ok([caller_fp, pc]) = memory.pair(fp) else { return Err(why) };
    if pc == 0 {
        return Err(End(walk_end::CHAIN));
    }
    let pc = A::code_address(pc);
    if pc >= USER_END {
        return Err(why);
    }
    walk.is_guessed = 1;
    walk.return_to(pc, A::above_frame_pointer(fp), caller_fp)
}

/// Goes on in code that a signal interrupted: all its registers are there. The handler may have a
/// stack of its own, so nothing is required of the place of the interrupted one.
#[inline(always)]
fn interrupted<A: Arch>(memory: &impl Memory, walk: &mut Walk<A>) -> Step {
    let registers = A::interrupted(memory, walk.registers.sp)?;
    if registers.pc >= USER_END {
        return Err(End::IMPLAUSIBLE);
    }
    walk.registers = registers;
    walk.exact = 1;
    walk.words_of_handlers = u64::from(walk.header.len);
    Ok(())
}

/// The process's mapping of code with this address.
#[inline(always)]
pub fn find_mapping<'a>(tables: &'a impl Tables, process: &ProcessUnwind, address: u64) -> Option<&'a CodeMapping> {
    let first = process.first_mapping;
    let (mut low, mut high) = (0, process.mapping_count);
    // `low` becomes the number of mappings that begin at the address or before.
    for _ in 0..MAPPING_SEARCH_STEPS {
        if low >= high {
            break;
        }
        let middle = low + (high - low) / 2;
        if tables.mapping(first.wrapping_add(middle))?.start <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let index = low.checked_sub(1)?;
    tables.mapping(first.wrapping_add(index)).filter(|mapping| address < mapping.end)
}

/// The row for an address of the file; that of no rule if there is none.
#[inline(always)]
fn find_row(tables: &impl Tables, mapping: &CodeMapping, address: u64) -> UnwindRow {
    let none = UnwindRow { address: 0, cfa_words: 0, fp_words: 0, rule: rule::NONE };
    if address > u32::MAX as u64 {
        return none;
    }
    let address = address as u32;
    let first = mapping.first_row;
    let (mut low, mut high) = (0, mapping.row_count);
    for _ in 0..ROW_SEARCH_STEPS {
        if low >= high {
            break;
        }
        let middle = low + (high - low) / 2;
        let Some(row) = tables.row(first.wrapping_add(middle)) else { return none };
        if row.address <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let Some(index) = low.checked_sub(1) else { return none };
    match tables.row(first.wrapping_add(index)) {
        Some(row) => *row,
        None => none,
    }
}
