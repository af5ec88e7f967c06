//! Makes rows for those functions of a file that its table leaves out: functions in assembly, such as
//! libjvm's copies of arrays, and all of a file without a table, such as musl's.
//!
//! Where they begin, symbols say, and direct calls of one another. What they do is told by
//! [`super::code_rows`].

use std::{collections::BTreeSet, ops::Range};

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use joular_ebpf::abi::{UnwindRow, rule};

use super::code_rows;
use crate::{
    elf::{Elf, ElfError},
    runtimes::OwnCode,
};

/// Code without a table that is looked at, in all: musl has half a megabyte.
const MAX_BYTES: u64 = 1 << 20;
/// Shorter ones are padding.
const MIN_GAP_BYTES: u32 = 16;
const MAX_GAPS: usize = 4096;

/// Puts rows into the gaps of a table, as far as that is possible.
pub fn fill(elf: &Elf<'_>, rows: Vec<UnwindRow>) -> Vec<UnwindRow> {
    try_fill(elf, &rows).ok().flatten().unwrap_or(rows)
}

fn try_fill(elf: &Elf<'_>, rows: &[UnwindRow]) -> Result<Option<Vec<UnwindRow>>, ElfError> {
    let text = elf.section_range(".text")?;
    let (Ok(start), Ok(end)) = (u32::try_from(text.start), u32::try_from(text.end)) else { return Ok(None) };
    let mut gaps = gaps(rows, start..end);
    let mut left = MAX_BYTES;
    gaps.retain(|gap| match left.checked_sub(u64::from(gap.end - gap.start)) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    });
    if gaps.is_empty() {
        return Ok(None);
    }
    let symbols = match elf.static_symbols()? {
        Some(symbols) => symbols,
        None => elf.dynamic_symbols()?,
    };
    let gap_of = |address: u64| {
        let address = u32::try_from(address).ok()?;
        let gap = gaps.get(gaps.partition_point(|gap| gap.end <= address))?;
        gap.contains(&address).then_some(address)
    };
    // Few: libjvm has 60 000 functions.
    let functions: BTreeSet<u32> = symbols.functions().filter_map(gap_of).collect();
    if functions.is_empty() {
        return Ok(None);
    }
    let mut filled = rows.to_vec();
    for gap in &gaps {
        let begins: BTreeSet<u32> = functions.range(gap.clone()).map(|begin| begin - gap.start).collect();
        if begins.is_empty() {
            continue;
        }
        let bytes = elf.code_at(&(u64::from(gap.start)..u64::from(gap.end)))?;
        let mut called = functions_of(&bytes, begins);
        let entry = u32::try_from(elf.entry()).ok().and_then(|entry| entry.checked_sub(gap.start));
        let first = called.extract_if(.., |function| Some(function.start) == entry).next();
        let mut of_gap = code_rows::rows(&OwnCode { bytes, called });
        // Nobody called a program's first function.
        of_gap.extend(first.map(|first| UnwindRow { address: first.start, rule: rule::ROOT, ..UnwindRow::default() }));
        // The gap itself has a row already, unless it is before all others.
        let of_gap = of_gap.into_iter().map(|row| UnwindRow { address: row.address + gap.start, ..row });
        filled.extend(of_gap.filter(|row| row.address < gap.end));
    }
    // Stable: what was added comes behind the row that it replaces, and a first function last.
    filled.sort_by_key(|row| row.address);
    filled.dedup_by(|later, earlier| {
        let is_same_place = later.address == earlier.address;
        if is_same_place {
            *earlier = *later;
        }
        is_same_place
    });
    Ok(Some(filled))
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

/// Functions from one begin to the next, with those that others call directly.
fn functions_of(bytes: &[u8], mut begins: BTreeSet<u32>) -> Vec<Range<u32>> {
    let mut waiting: Vec<u32> = begins.iter().copied().collect();
    while let Some(begin) = waiting.pop() {
        let end = end_of(&begins, begin, bytes.len());
        let code = bytes.get(begin as usize..end as usize).unwrap_or_default();
        for instruction in &mut Decoder::with_ip(64, code, u64::from(begin), DecoderOptions::NONE) {
            let target = match instruction.flow_control() {
                FlowControl::Call => u32::try_from(instruction.near_branch_target()).ok(),
                _ => None,
            };
            if let Some(target) = target.filter(|target| (*target as usize) < bytes.len())
                && begins.insert(target)
            {
                waiting.push(target);
            }
        }
    }
    begins.iter().map(|&begin| begin..end_of(&begins, begin, bytes.len())).collect()
}

fn end_of(begins: &BTreeSet<u32>, begin: u32, length: usize) -> u32 {
    let next = begins.range(begin.saturating_add(1)..).next().copied();
    next.unwrap_or_else(|| u32::try_from(length).unwrap_or(u32::MAX))
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

    #[test]
    fn functions_end_where_the_next_one_begins_and_are_found_by_calls() {
        // call 7; ret; nop; push rbx; call 14; ret; ret
        let code = [0xe8, 2, 0, 0, 0, 0xc3, 0x90, 0x53, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3];
        assert_eq!(functions_of(&code, BTreeSet::from([0])), [0..7, 7..14, 14..15]);
        assert_eq!(functions_of(&code, BTreeSet::from([7])), [7..14, 14..15]);
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
            let functions = functions_of(&bytes, begins);
            prop_assert!(functions.is_sorted_by_key(|function| function.start));
            let mut rows: Vec<_> = rows.into_iter().map(|(address, rule)| row(address, rule)).collect();
            rows.sort();
            prop_assert!(gaps(&rows, 7..u32::MAX).iter().all(|gap| gap.start < gap.end));
        }
    }
}
