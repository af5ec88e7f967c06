//! Makes rows for those functions of a file that its table leaves out: functions in assembly, such as
//! libjvm's copies of arrays, and all of a file without a table, such as musl's.
//!
//! Symbols say where they begin. So do direct calls of one another, and code that takes their addresses.
//! What they do is told by [`super::code_rows`].
//!
//! The table of glibc also leaves out a part of `clone` and `clone3`. What it says there would be wrong for
//! the new thread. So it stops before the system call, and starts again with what that thread alone runs.

use std::{collections::BTreeSet, ops::Range};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use joular_ebpf::abi::{UnwindRow, rule};

use super::{code_rows, native_image};
use crate::{
    elf::{Elf, ElfError, Symbols},
    runtimes::OwnCode,
};

/// Code without a table that is looked at, in all: musl has half a megabyte.
const MAX_BYTES: u64 = 1 << 20;
/// Shorter ones are padding.
const MIN_GAP_BYTES: u32 = 16;
const MAX_GAPS: usize = 4096;

/// Bytes up to a system call that starts a thread.
const MAX_BEFORE_CLONE_BYTES: u32 = 4096;

/// Puts rows into the gaps of a table, as far as that is possible.
pub fn fill(elf: &Elf<'_>, rows: Vec<UnwindRow>) -> Vec<UnwindRow> {
    let (rows, begins) = if elf.is_native_image() { of_methods(elf, rows) } else { (rows, BTreeSet::new()) };
    let mut added = of_functions(elf, &rows, begins).unwrap_or_default();
    added.extend(clones(&rows).filter_map(|clone| clone.rows(elf).ok()).flatten());
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
fn of_methods(elf: &Elf<'_>, mut rows: Vec<UnwindRow>) -> (Vec<UnwindRow>, BTreeSet<u32>) {
    let mut begins: BTreeSet<u32> = u32::try_from(elf.entry()).into_iter().collect();
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
    let text = elf.section_range(".text")?;
    let place = |address| u32::try_from(address).map_err(|_| ElfError::Malformed("its code is beyond 4 GiB"));
    Ok(place(text.start)?..place(text.end)?)
}

/// Rows of functions that the table leaves out. Some may be known to begin where `begins` says.
fn of_functions(elf: &Elf<'_>, rows: &[UnwindRow], mut begins: BTreeSet<u32>) -> Result<Vec<UnwindRow>, ElfError> {
    let mut added = Vec::new();
    let mut gaps = gaps(rows, text(elf)?);
    let mut left = MAX_BYTES;
    gaps.retain(|gap| match left.checked_sub(u64::from(gap.end - gap.start)) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    });
    if gaps.is_empty() {
        return Ok(added);
    }
    let mut gaps: Vec<Gap> = gaps.into_iter().map(|range| Gap { range, bytes: Vec::new() }).collect();
    let symbols = elf.static_symbols()?.map_or_else(|| elf.dynamic_symbols(), Ok);
    begins.extend(symbols.iter().flat_map(Symbols::functions).filter_map(|address| u32::try_from(address).ok()));
    // Few are left: libjvm has 60 000 functions.
    begins.retain(|address| gap_at(&gaps, *address).is_some());
    if begins.is_empty() {
        return Ok(added);
    }
    for Gap { range, bytes } in &mut gaps {
        *bytes = elf.code_at(&(u64::from(range.start)..u64::from(range.end)))?;
    }
    let begins = all_begins(&gaps, begins, elf.is_movable());
    let entry = u32::try_from(elf.entry()).ok();
    gaps.into_iter().for_each(|gap| added.extend(gap.rows(&begins, entry)));
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

    fn rows(self, begins: &BTreeSet<u32>, entry: Option<u32>) -> impl Iterator<Item = UnwindRow> {
        let Self { ref bytes, range: Range { start: base, end } } = self;
        let mut called = self.functions(begins);
        let entry = entry.and_then(|entry| entry.checked_sub(base));
        let first = called.extract_if(.., |function| Some(function.start) == entry).next();
        let starts = called.iter().map(|function| function.start);
        let after_signals: Vec<u32> =
            starts.filter(|start| ends_signal(bytes.get(*start as usize..).unwrap_or_default())).collect();
        let mut rows = code_rows::rows(&OwnCode { bytes: self.bytes, called, ..OwnCode::default() });
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

/// Whether this is what a C library has handlers of signals return to: the system call `rt_sigreturn`.
fn ends_signal(code: &[u8]) -> bool {
    let forms: [&[u8]; 2] = [b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05"];
    forms.iter().any(|form| code.starts_with(form))
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
fn clones(rows: &[UnwindRow]) -> impl Iterator<Item = Clone> {
    rows.array_windows().filter_map(|[before, gap, thread]| {
        let is_as_called = before.rule == rule::SP && before.cfa_words == 1 && before.fp_words == 0;
        let is_near = gap.address.saturating_sub(before.address) <= MAX_BEFORE_CLONE_BYTES;
        let is_clone = is_as_called && is_near && gap.rule == rule::NONE && thread.rule == rule::ROOT;
        is_clone.then_some(Clone { before: before.address..gap.address, gap: gap.address..thread.address })
    })
}

impl Clone {
    fn rows(&self, elf: &Elf<'_>) -> Result<Vec<UnwindRow>, ElfError> {
        let bytes = elf.code_at(&(u64::from(self.before.start)..u64::from(self.gap.end)))?;
        let (before, gap) = bytes.split_at_checked(self.before.len()).unwrap_or_default();
        if !goes_on(before) {
            return Ok(Vec::new());
        }
        // The way on is as good as a call: the return address is where a call puts it.
        let called = std::iter::once(0..u32::try_from(gap.len()).unwrap_or(u32::MAX)).collect();
        let rows = code_rows::rows(&OwnCode { bytes: gap.to_vec(), called, ..OwnCode::default() });
        let moved = rows.into_iter().map(|row| UnwindRow { address: row.address + self.gap.start, ..row });
        Ok(moved.filter(|row| row.address < self.gap.end).collect())
    }
}

/// Whether execution comes to the code's end and leaves it there.
fn goes_on(code: &[u8]) -> bool {
    let last = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter().last();
    last.is_some_and(|last| !last.is_invalid() && matches!(last.flow_control(), FlowControl::Next | FlowControl::Call))
}

/// Parts of the code that have no rule.
fn gaps(rows: &[UnwindRow], text: Range<u32>) -> Vec<Range<u32>> {
    let ends = rows.iter().skip(1).map(|row| row.address).chain([u32::MAX]);
    let without = rows.iter().zip(ends).filter(|(row, _)| row.rule == rule::NONE).map(|(row, end)| row.address..end);
    let before = 0..rows.first().map_or(u32::MAX, |row| row.address);
    let within = |gap: Range<u32>| gap.start.max(text.start)..gap.end.min(text.end);
    let gaps = [before].into_iter().chain(without).map(within);
    gaps.filter(|gap| gap.end >= gap.start.saturating_add(MIN_GAP_BYTES)).take(MAX_GAPS).collect()
}

/// Where functions begin, with those that others call directly or take the address of.
fn all_begins(gaps: &[Gap], mut begins: BTreeSet<u32>, is_movable: bool) -> BTreeSet<u32> {
    let mut waiting: Vec<u32> = begins.iter().copied().collect();
    while let Some(begin) = waiting.pop() {
        let Some(Gap { range, bytes }) = gap_at(gaps, begin) else { continue };
        let next = begins.range(begin.saturating_add(1)..).next().copied();
        let end = next.unwrap_or(range.end).min(range.end);
        let places = (begin - range.start) as usize..(end - range.start) as usize;
        let code = bytes.get(places).unwrap_or_default();
        for instruction in &mut Decoder::with_ip(64, code, u64::from(begin), DecoderOptions::NONE) {
            let target = match instruction.flow_control() {
                FlowControl::Call => u32::try_from(instruction.near_branch_target()).ok(),
                FlowControl::Next => taken_address(&instruction, gaps, is_movable),
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

/// The place whose address the instruction takes, if a function may begin there: nothing comes there from
/// above.
fn taken_address(instruction: &Instruction, gaps: &[Gap], is_movable: bool) -> Option<u32> {
    let target = match instruction.code() {
        // Elsewhere it is a number.
        Code::Mov_r32_imm32 if !is_movable => instruction.immediate32(),
        _ if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() => {
            u32::try_from(instruction.ip_rel_memory_address()).ok()?
        }
        _ => return None,
    };
    let Gap { range, bytes } = gap_at(gaps, target.checked_sub(1)?)?;
    let above = bytes.get(..(target - range.start) as usize)?;
    ends_function(above, target, gaps).then_some(target)
}

/// Whether a function may end with this code, up to a place.
fn ends_function(code: &[u8], end: u32, gaps: &[Gap]) -> bool {
    const RET: u8 = 0xc3;
    const HLT: u8 = 0xf4;
    const NOP: u8 = 0x90;
    const INT3: u8 = 0xcc;
    const CALL: u8 = 0xe8;
    const JMP: u8 = 0xe9;
    const JMP_NEAR: u8 = 0xeb;
    let leads = |offset: i32| end.checked_add_signed(offset).is_some_and(|place| gap_at(gaps, place).is_some());
    match code {
        [.., RET | HLT | NOP | INT3] => true,
        // What is called last does not return.
        [.., CALL | JMP, a, b, c, d] if leads(i32::from_le_bytes([*a, *b, *c, *d])) => true,
        [.., JMP_NEAR, offset] => leads(offset.cast_signed().into()),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn row(address: u32, rule: u8) -> UnwindRow {
        UnwindRow { address, cfa_words: 1, fp_words: 0, rule }
    }

    #[test]
    fn code_without_a_rule_is_a_gap() {
        let rows =
            [row(100, rule::SP), row(200, rule::NONE), row(210, rule::SP), row(300, rule::NONE), row(400, rule::SP)];
        assert_eq!(gaps(&rows, 0..1000), [0..100, 300..400], "what is between 200 and 210 is padding");
        assert_eq!(gaps(&rows, 120..350), [300..350]);
        assert_eq!(gaps(&rows[..4], 90..1000), [300..1000]);
        assert_eq!(gaps(&[], 90..1000), [90..1000]);
    }

    fn functions_of(code: &[u8], begin: u32) -> Vec<Range<u32>> {
        let gaps = [gap(0, code)];
        gaps[0].functions(&all_begins(&gaps, BTreeSet::from([begin]), false))
    }

    fn gap(start: u32, code: &[u8]) -> Gap {
        Gap { range: start..start + u32::try_from(code.len()).unwrap(), bytes: code.to_vec() }
    }

    #[test]
    fn functions_are_found_from_one_gap_to_another() {
        // call 0x101; ret, and far away: nop; ret
        let gaps = [gap(0, &[0xe8, 0xfc, 0, 0, 0, 0xc3]), gap(0x100, &[0x90, 0xc3])];
        assert_eq!(all_begins(&gaps, BTreeSet::from([0]), true), BTreeSet::from([0, 0x101]));
    }

    #[test]
    fn where_handlers_of_signals_return_to_has_a_rule_from_the_byte_before_on() {
        // ret; mov rax, 15; syscall
        let gap = gap(0x100, &[0xc3, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]);
        let rows: Vec<_> = gap.rows(&BTreeSet::from([0x100, 0x101]), None).collect();
        for address in [0x100, 0x101] {
            assert!(rows.contains(&UnwindRow { address, rule: rule::SIGNAL, ..UnwindRow::default() }), "{rows:?}");
        }
    }

    #[test]
    fn functions_end_where_the_next_one_begins_and_are_found_by_calls() {
        // call 7; ret; nop; push rbx; call 14; ret; ret
        let code = [0xe8, 2, 0, 0, 0, 0xc3, 0x90, 0x53, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3];
        assert_eq!(functions_of(&code, 0), [0..7, 7..14, 14..15]);
        assert_eq!(functions_of(&code, 7), [7..14, 14..15]);
        // lea rax, [rip + 1]; ret; and what it takes the address of: ret
        let code = [0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3, 0xc3];
        assert_eq!(functions_of(&code, 0), [0..8, 8..9]);
        // mov edi, 11; call 10; what is called last; and what 11 is the address of: ret
        let code = [0xbf, 11, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0xf4, 0xc3];
        assert_eq!(functions_of(&code, 0), [0..10, 10..11, 11..12]);
        // Into a function: lea rax, [rip - 6]
        let code = [0x48, 0x8d, 0x05, 0xfa, 0xff, 0xff, 0xff, 0xc3, 0xc3];
        assert_eq!(functions_of(&code, 0), [0..9]);
    }

    /// The C library of every JVM, which starts threads.
    #[test]
    fn a_thread_that_starts_another_is_described_all_along() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc =
            maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc.so"));
        let Some(path) = libc else { return };
        let file = std::fs::File::open(path).unwrap();
        let elf = Elf::read(&file).unwrap();
        let described = crate::unwind::eh_frame::rows(&crate::unwind::eh_frame::section(&elf).unwrap());
        let found: Vec<Clone> = clones(&described).collect();
        assert!(!found.is_empty(), "glibc has clone, and since 2.34 clone3");
        let filled = fill(&elf, described);
        for Clone { gap, .. } in found {
            let row = filled[filled.partition_point(|row| row.address < gap.end) - 1];
            assert_eq!((row.rule, row.cfa_words), (rule::SP, 1), "{gap:x?} in {path}");
        }
    }

    #[test]
    fn a_description_that_stops_before_a_thread_alone_runs_is_one_of_a_clone() {
        let clone = [row(100, rule::SP), row(120, rule::NONE), row(130, rule::ROOT)];
        assert_eq!(clones(&clone).collect::<Vec<_>>(), [Clone { before: 100..120, gap: 120..130 }]);
        let deeper = UnwindRow { cfa_words: 2, ..clone[0] };
        for other in [[deeper, clone[1], clone[2]], [clone[0], clone[1], clone[0]], [clone[0], clone[2], clone[1]]] {
            assert_eq!(clones(&other).count(), 0, "{other:?}");
        }
    }

    #[test]
    fn what_returns_or_jumps_does_not_go_on() {
        assert!(goes_on(&[0xb8, 0, 0, 0, 0, 0x0f, 0x05]), "mov eax, 0; syscall");
        for code in [&[0x90, 0xc3][..], &[0x0f, 0x0b], &[0xeb, 0], &[]] {
            assert!(!goes_on(code), "{code:x?}");
        }
    }

    /// libjvm's copies of arrays are in assembly, and `_start` of many programs has no description.
    #[test]
    fn what_assembly_leaves_out_is_told_by_its_code() {
        let file = std::fs::File::open("/bin/true").unwrap();
        let elf = Elf::read(&file).unwrap();
        let entry = u32::try_from(elf.entry()).unwrap();
        let described = crate::unwind::eh_frame::rows(&crate::unwind::eh_frame::section(&elf).unwrap());
        let rule_at =
            |rows: &[UnwindRow], address: u32| rows[rows.partition_point(|row| row.address <= address) - 1].rule;
        assert_eq!(rule_at(&fill(&elf, described.clone()), entry), rule::ROOT);
        // Without any description.
        let filled = fill(&elf, Vec::new());
        assert!(filled.is_sorted_by(|one, other| one.address < other.address), "{filled:?}");
    }

    proptest! {
        #[test]
        fn any_code_is_survived(bytes: Vec<u8>, begins: BTreeSet<u32>, rows in proptest::collection::vec((any::<u32>(), 0u8..7), 0..9)) {
            let code = [gap(7, &bytes)];
            let functions = code[0].functions(&all_begins(&code, begins, false));
            prop_assert!(functions.is_sorted_by_key(|function| function.start));
            let mut rows: Vec<_> = rows.into_iter().map(|(address, rule)| row(address, rule)).collect();
            rows.sort();
            prop_assert!(gaps(&rows, 7..u32::MAX).iter().all(|gap| gap.start < gap.end));
        }
    }
}
