//! Makes rows for those functions of a file that its table leaves out: functions in assembly, such as
//! libjvm's copies of arrays, and all of a file without a table, such as musl's.
//!
//! Symbols say where they begin. So do direct calls of one another, and code that takes their addresses.
//! What they do is told by [`super::code_rows`].
//!
//! The table of glibc also leaves out a part of `clone` and `clone3`. What it says there would be wrong for
//! the new thread. So it stops before the system call, and starts again with what that thread alone runs.

use std::{collections::BTreeSet, ops::Range};

use joular_ebpf::abi::{UnwindRow, rule};

use super::{code_rows, native_image};
use crate::{
    arch::{Arch, Flow, Rule},
    bounds::Bound,
    elf::{Elf, ElfError, Symbols},
    runtimes::OwnCode,
};

/// Code without a table that is looked at, in all: musl has half a megabyte.
const MAX_BYTES: u64 = 1 << 20;
/// Shorter ones are padding.
const MIN_GAP_BYTES: u32 = 16;
const MAX_GAPS: usize = 4096;

pub static CODE: Bound = Bound::new(
    "code_without_table_not_read",
    MAX_BYTES,
    "bytes of a file's code that its unwind table leaves out, in 4096 pieces",
    "stacks that pass through the rest end there",
);

/// Bytes up to a system call that starts a thread.
const MAX_BEFORE_CLONE_BYTES: u32 = 4096;

/// Puts rows into the gaps of a table, as far as that is possible.
pub fn fill<A: Arch>(elf: &Elf<'_>, rows: Vec<UnwindRow>) -> Vec<UnwindRow> {
    let (rows, begins) = if elf.is_native_image() { of_methods::<A>(elf, rows) } else { (rows, BTreeSet::new()) };
    let mut added = of_functions::<A>(elf, &rows, begins).unwrap_or_default();
    added.extend(of_linkage_table::<A>(elf, &rows).unwrap_or_default());
    added.extend(clones::<A>(&rows).filter_map(|clone| clone.rows::<A>(elf).ok()).flatten());
    if added.is_empty() { rows } else { merged(rows, added) }
}

/// What was added takes the place of what was there.
fn merged(mut rows: Vec<UnwindRow>, added: Vec<UnwindRow>) -> Vec<UnwindRow> {
    rows.extend(added);
    // Stable: what was added comes behind the row that it replaces, and a first function last.
    rows.sort_by_key(|row| row.address);
    rows.dedup_by(|later, earlier| {
        let is_same_place = later.address == earlier.address;
        if is_same_place {
            *earlier = *later;
        }
        is_same_place
    });
    rows
}

/// Adds the rows of a native image's methods. Says too where its other functions begin, as far as calls show
/// that: such a file has no symbols, and one with musl has no table for it either.
fn of_methods<A: Arch>(elf: &Elf<'_>, mut rows: Vec<UnwindRow>) -> (Vec<UnwindRow>, BTreeSet<u32>) {
    let mut begins: BTreeSet<u32> = u32::try_from(elf.entry()).into_iter().collect();
    if !A::READS_NATIVE_IMAGES {
        native_image::NOT_READ.cut(1);
        return (rows, begins);
    }
    let Ok(text) = text(elf) else { return (rows, begins) };
    begins.extend(native_image::called_by(elf, &rows, &text).unwrap_or_default());
    if !elf.is_movable() {
        begins.extend(native_image::pointed_at(elf).unwrap_or_default());
    }
    for gap in gaps(&rows, text) {
        if let Ok(methods) = native_image::methods(elf, &gap) {
            begins.extend(methods.called);
            rows = merged(rows, methods.rows);
        }
    }
    (rows, begins)
}

fn text(elf: &Elf<'_>) -> Result<Range<u32>, ElfError> {
    section(elf, ".text")
}

fn section(elf: &Elf<'_>, name: &str) -> Result<Range<u32>, ElfError> {
    let section = elf.section_range(name)?;
    let place = |address| u32::try_from(address).map_err(|_| ElfError::Malformed("its code is beyond 4 GiB"));
    Ok(place(section.start)?..place(section.end)?)
}

/// Rows of the linkage table (`.plt`), which linkers for some processors leave out. Its slots are jumped through when a
/// function of another file is called. Where a call pushes its return address, the table's first slot begins with
/// another word pushed, and nothing is said of it.
fn of_linkage_table<A: Arch>(elf: &Elf<'_>, rows: &[UnwindRow]) -> Result<Vec<UnwindRow>, ElfError> {
    let mut added = Vec::new();
    if A::CALL_PUSHES {
        return Ok(added);
    }
    let table = section(elf, ".plt")?;
    let bytes = CODE.within(u64::from(table.end - table.start));
    let table = table.start..table.start.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    for range in gaps(rows, table) {
        let bytes = elf.code_at(&(u64::from(range.start)..u64::from(range.end)))?;
        let (slots, end) = (slots::<A>(&bytes, range.start), range.end);
        added.extend(Gap { range, bytes }.rows::<A>(&slots, None));
        added.push(UnwindRow { address: end, rule: rule::NONE, ..UnwindRow::default() });
    }
    Ok(added)
}

/// Where the slots of a linkage table begin: each ends by a jump. What pads the first one belongs to the second.
fn slots<A: Arch>(code: &[u8], start: u32) -> BTreeSet<u32> {
    let steps = A::instructions(code, start.into()).map(|instruction| A::step(&instruction));
    let jumps = steps.filter(|step| step.flow == Flow::IndirectJump);
    std::iter::once(start).chain(jumps.filter_map(|jump| u32::try_from(jump.end).ok())).collect()
}

/// Rows of functions that the table leaves out. Some may be known to begin where `begins` says.
fn of_functions<A: Arch>(
    elf: &Elf<'_>,
    rows: &[UnwindRow],
    mut begins: BTreeSet<u32>,
) -> Result<Vec<UnwindRow>, ElfError> {
    let mut added = Vec::new();
    let mut gaps = gaps(rows, text(elf)?);
    let mut left = MAX_BYTES;
    gaps.retain(|gap| match left.checked_sub(u64::from(gap.end - gap.start)) {
        Some(less) => {
            left = less;
            true
        }
        None => {
            CODE.cut(if rows.is_empty() { 0 } else { u64::from(gap.end - gap.start) });
            false
        }
    });
    if gaps.is_empty() {
        return Ok(added);
    }
    let mut gaps: Vec<Gap> = gaps.into_iter().map(|range| Gap { range, bytes: Vec::new() }).collect();
    let symbols = elf.static_symbols()?.map_or_else(|| elf.dynamic_symbols(), Ok);
    // Where a call pushes nothing, a label in such a function does no harm: most of them leave the stack alone.
    let untyped = symbols.iter().filter(|_| !A::CALL_PUSHES).flat_map(Symbols::untyped);
    let functions = symbols.iter().flat_map(Symbols::functions).chain(untyped);
    begins.extend(functions.filter_map(|address| u32::try_from(address).ok()));
    // Few are left: libjvm has 60 000 functions.
    begins.retain(|address| gap_at(&gaps, *address).is_some());
    if begins.is_empty() {
        return Ok(added);
    }
    for Gap { range, bytes } in &mut gaps {
        *bytes = elf.code_at(&(u64::from(range.start)..u64::from(range.end)))?;
    }
    let begins = all_begins::<A>(&gaps, begins, elf.is_movable());
    let entry = u32::try_from(elf.entry()).ok();
    gaps.into_iter().for_each(|gap| added.extend(gap.rows::<A>(&begins, entry)));
    Ok(added)
}

/// Code that the table leaves out.
#[derive(Debug)]
struct Gap {
    range: Range<u32>,
    bytes: Vec<u8>,
}

impl Gap {
    /// Its functions, from one begin to the next.
    fn functions(&self, begins: &BTreeSet<u32>) -> Vec<Range<u32>> {
        let starts: Vec<u32> = begins.range(self.range.clone()).map(|begin| begin - self.range.start).collect();
        let end = self.range.end - self.range.start;
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
    }

    fn rows<A: Arch>(self, begins: &BTreeSet<u32>, entry: Option<u32>) -> impl Iterator<Item = UnwindRow> {
        let Self { ref bytes, range: Range { start: base, end } } = self;
        let mut called = self.functions(begins);
        let entry = entry.and_then(|entry| entry.checked_sub(base));
        let first = called.extract_if(.., |function| Some(function.start) == entry).next();
        let starts = called.iter().map(|function| function.start);
        let after_signals: Vec<u32> =
            starts.filter(|start| A::ends_signal(bytes.get(*start as usize..).unwrap_or_default())).collect();
        let mut rows = code_rows::rows::<A>(&OwnCode { bytes: self.bytes, called, ..OwnCode::default() });
        let only = |address, rule| UnwindRow { address, rule, ..UnwindRow::default() };
        // Nobody called a program's first function.
        rows.extend(first.map(|first| only(first.start, rule::ROOT)));
        // A handler returns to its first byte, and is looked for at the one before.
        let places = after_signals.iter().flat_map(|start| [start.saturating_sub(1), *start]);
        rows.extend(places.map(|address| only(address, rule::SIGNAL)));
        // The gap itself has a row already, unless it is before all others.
        rows.into_iter()
            .map(move |row| UnwindRow { address: row.address + base, ..row })
            .filter(move |row| row.address < end)
    }
}

/// The gap that an address is in; they are in order.
fn gap_at(gaps: &[Gap], address: u32) -> Option<&Gap> {
    let gap = gaps.get(gaps.partition_point(|gap| gap.range.end <= address))?;
    gap.range.contains(&address).then_some(gap)
}

/// A system call that starts a thread, for which the table stops.
#[derive(Debug, PartialEq, Eq)]
struct Clone {
    /// Described code of the same function, from the beginning of an instruction.
    before: Range<u32>,
    gap: Range<u32>,
}

/// Places that look so: the stack is as when the function was called, the description stops, and
/// what follows was called by nobody.
fn clones<A: Arch>(rows: &[UnwindRow]) -> impl Iterator<Item = Clone> {
    rows.array_windows().filter_map(|[before, gap, thread]| {
        let is_as_called = Rule::of(before) == A::AS_CALLED;
        let is_near = gap.address.saturating_sub(before.address) <= MAX_BEFORE_CLONE_BYTES;
        let is_clone = is_as_called && is_near && gap.rule == rule::NONE && thread.rule == rule::ROOT;
        is_clone.then_some(Clone { before: before.address..gap.address, gap: gap.address..thread.address })
    })
}

impl Clone {
    fn rows<A: Arch>(&self, elf: &Elf<'_>) -> Result<Vec<UnwindRow>, ElfError> {
        let bytes = elf.code_at(&(u64::from(self.before.start)..u64::from(self.gap.end)))?;
        let (before, gap) = bytes.split_at_checked(self.before.len()).unwrap_or_default();
        if !goes_on::<A>(before) {
            return Ok(Vec::new());
        }
        // The way on is as good as a call: the return address is where a call puts it.
        let called = std::iter::once(0..u32::try_from(gap.len()).unwrap_or(u32::MAX)).collect();
        let rows = code_rows::rows::<A>(&OwnCode { bytes: gap.to_vec(), called, ..OwnCode::default() });
        let moved = rows.into_iter().map(|row| UnwindRow { address: row.address + self.gap.start, ..row });
        Ok(moved.filter(|row| row.address < self.gap.end).collect())
    }
}

/// Whether execution comes to the code's end and leaves it there.
fn goes_on<A: Arch>(code: &[u8]) -> bool {
    let last = A::instructions(code, 0).last();
    last.is_some_and(|last| matches!(A::step(&last).flow, Flow::Next | Flow::Call(_)))
}

/// Parts of the code that have no rule.
fn gaps(rows: &[UnwindRow], text: Range<u32>) -> Vec<Range<u32>> {
    let ends = rows.iter().skip(1).map(|row| row.address).chain([u32::MAX]);
    let without = rows.iter().zip(ends).filter(|(row, _)| row.rule == rule::NONE).map(|(row, end)| row.address..end);
    let before = 0..rows.first().map_or(u32::MAX, |row| row.address);
    let within = |gap: Range<u32>| gap.start.max(text.start)..gap.end.min(text.end);
    let gaps = [before].into_iter().chain(without).map(within);
    let mut gaps = gaps.filter(|gap| gap.end >= gap.start.saturating_add(MIN_GAP_BYTES));
    let kept = gaps.by_ref().take(MAX_GAPS).collect();
    CODE.cut(gaps.map(|gap| u64::from(gap.end - gap.start)).sum());
    kept
}

/// Where functions begin, with those that others call directly or take the address of.
fn all_begins<A: Arch>(gaps: &[Gap], mut begins: BTreeSet<u32>, is_movable: bool) -> BTreeSet<u32> {
    let mut waiting: Vec<u32> = begins.iter().copied().collect();
    while let Some(begin) = waiting.pop() {
        let Some(Gap { range, bytes }) = gap_at(gaps, begin) else { continue };
        let next = begins.range(begin.saturating_add(1)..).next().copied();
        let end = next.unwrap_or(range.end).min(range.end);
        let places = (begin - range.start) as usize..(end - range.start) as usize;
        let code = bytes.get(places).unwrap_or_default();
        let mut arch = A::default();
        for instruction in A::instructions(code, begin.into()) {
            let taken = arch.taken_address(&instruction, is_movable);
            let target = match A::step(&instruction).flow {
                Flow::Call(target) => u32::try_from(target).ok(),
                Flow::Next => taken.and_then(|target| begins_at::<A>(target, gaps)),
                _ => None,
            };
            if let Some(target) = target.filter(|target| gap_at(gaps, *target).is_some())
                && begins.insert(target)
            {
                waiting.push(target);
            }
        }
    }
    begins
}

/// A place whose address is taken, if a function may begin there: nothing comes there from above.
fn begins_at<A: Arch>(target: u64, gaps: &[Gap]) -> Option<u32> {
    let target = u32::try_from(target).ok()?;
    let Gap { range, bytes } = gap_at(gaps, target.checked_sub(1)?)?;
    let above = bytes.get(..(target - range.start) as usize)?;
    A::ends_function(above, target, |place| gap_at(gaps, place).is_some()).then_some(target)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]
#[path = "gaps_tests.rs"]
mod tests;
