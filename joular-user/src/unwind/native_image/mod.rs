//! Makes rows for the methods of a GraalVM native image. Its `.eh_frame` describes its C code only, and
//! most images are stripped, so nothing says where methods begin.
//!
//! Methods begin at aligned places, behind padding or by making a frame, and stand next to one another. Each
//! is followed from its beginning ([`function`]), which also shows where it ends.
//!
//! The file is a target's: the work is bounded whatever it says.

mod frame;
mod function;
mod tables;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    ops::{Range, RangeInclusive},
};

use function::{ALIGNMENT, follow, makes_frame};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use joular_ebpf::abi::{UnwindRow, rule};

use super::{
    eh_frame::MAX_ROWS,
    rows::{Rows, Rule},
};
use crate::{
    arch::X86_64,
    bounds::Bound,
    elf::{Elf, ElfError},
};

/// A database with its geometry library has 75 MB of methods.
const MAX_BYTES: u64 = 256 << 20;
/// C code with a table whose calls are looked at.
const MAX_DESCRIBED_BYTES: u64 = 4 << 20;
const MAX_DATA_BYTES: u64 = 1 << 20;
pub static CODE: Bound = Bound::new(
    "native_image_code_not_read",
    MAX_BYTES,
    "bytes of a GraalVM native image's methods, 4 MiB of its C code and 1 MiB of its data",
    "stacks that pass through the rest may end there",
);
pub static NOT_READ: Bound = Bound::new(
    "native_images_not_read",
    0,
    "GraalVM native images for aarch64",
    "their methods are walked by frame pointers: stacks that pass through them may end there",
);
/// Read at once.
const PART_BYTES: u64 = 4 << 20;
/// The first check in a method is behind its frame's making, and some arguments.
const CHECK_WITHIN: usize = 24;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Methods {
    pub rows: Vec<UnwindRow>,
    /// Where they call other code.
    pub called: BTreeSet<u32>,
}

/// The methods in code that has no table.
pub fn methods(elf: &Elf<'_>, gap: &Range<u32>) -> Result<Methods, ElfError> {
    let read = |range: Range<u64>| elf.code_at(&range);
    let start = u64::from(gap.start);
    let gap = start..start.saturating_add(CODE.within(u64::from(gap.end).saturating_sub(start)));
    let Some(begins) = begins(&gap, read)? else { return Ok(Methods::default()) };
    let mut found = Found { rows: Rows::of::<X86_64>(), called: BTreeSet::new(), at: *begins.start() };
    found.follow(&begins, gap.end, read)?;
    Ok(Methods { rows: found.rows.finish(), called: found.called })
}

/// Where code that has a table calls code that has none.
pub fn called_by(elf: &Elf<'_>, rows: &[UnwindRow], text: &Range<u32>) -> Result<BTreeSet<u32>, ElfError> {
    let mut called = BTreeSet::new();
    let mut left = MAX_DESCRIBED_BYTES;
    for [row, next] in rows.array_windows().filter(|[row, _]| row.rule != rule::NONE && text.contains(&row.address)) {
        let range = u64::from(row.address)..u64::from(next.address.min(text.end));
        let Some(less) = left.checked_sub(range.end - range.start) else {
            CODE.cut(u64::from(text.end).saturating_sub(range.start));
            break;
        };
        left = less;
        let code = elf.code_at(&range)?;
        let calls = Decoder::with_ip(64, &code, range.start, DecoderOptions::NONE).into_iter();
        let calls = calls.filter(|instruction| instruction.flow_control() == FlowControl::Call);
        called.extend(calls.filter_map(|call| u32::try_from(call.near_branch_target()).ok()));
    }
    Ok(called)
}

/// The places in code that methods call through words of data: functions of C libraries.
pub fn pointed_at(elf: &Elf<'_>) -> Result<Vec<u32>, ElfError> {
    let data = elf.section(".data", MAX_DATA_BYTES);
    CODE.cut(u64::from(matches!(data, Err(ElfError::TooLarge { .. }))));
    let data = data?.unwrap_or_default();
    let words = data.bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    Ok(words.filter_map(|word| u32::try_from(word).ok()).collect())
}

/// Where the first and the last method begin. Only methods compare the stack pointer with a limit in their
/// thread's structure, which r15 points at.
fn begins(
    gap: &Range<u64>,
    mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, ElfError>,
) -> Result<Option<RangeInclusive<u64>>, ElfError> {
    let mut found: Option<RangeInclusive<u64>> = None;
    let first = gap.start.next_multiple_of(ALIGNMENT as u64);
    let mut from = first;
    while from < gap.end {
        let code = read(from..gap.end.min(from + PART_BYTES))?;
        for (index, _) in code.chunks(ALIGNMENT).enumerate() {
            let rest = code.get(index * ALIGNMENT..).unwrap_or_default();
            if checks_stack(rest) {
                let at = from + (index * ALIGNMENT) as u64;
                found = Some(found.map_or(at, |found| *found.start())..=at);
            }
        }
        from += PART_BYTES;
    }
    Ok(found)
}

/// Whether a method begins so: it makes a frame and checks that there is room for it.
fn checks_stack(code: &[u8]) -> bool {
    // cmp rsp, [r15 + …]; cmp rbx, [r15 + …]
    const CHECKS: [&[u8]; 2] = [&[0x49, 0x3b, 0x67], &[0x49, 0x3b, 0x5f]];
    let beginning = code.get(..CHECK_WITHIN).unwrap_or(code);
    makes_frame(code) && beginning.windows(3).any(|bytes| CHECKS.contains(&bytes))
}

struct Found {
    rows: Rows,
    called: BTreeSet<u32>,
    /// Behind what was followed.
    at: u64,
}

impl Found {
    /// Follows one method after the other, until behind the one that begins last.
    fn follow(
        &mut self,
        begins: &RangeInclusive<u64>,
        code_end: u64,
        mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, ElfError>,
    ) -> Result<(), ElfError> {
        let last = *begins.end();
        let mut work = usize::try_from(code_end - self.at).unwrap_or(usize::MAX);
        while self.at <= last && self.rows.count() < MAX_ROWS {
            let part = self.at..code_end.min(self.at.saturating_add(PART_BYTES));
            let bytes = read(part.clone())?;
            let mut offset = 0;
            while self.at <= last && self.rows.count() < MAX_ROWS {
                let begin = self.at;
                let called = &mut self.called;
                let mut note = |target: i64| {
                    let target = begin.checked_add_signed(target).filter(|target| !begins.contains(target));
                    called.extend(target.and_then(|target| u32::try_from(target).ok()));
                };
                let rest = bytes.get(offset..).unwrap_or_default();
                let Some(function) = follow(rest, &mut work, &mut note) else { break };
                let (end, lines) = (function.end, function.lines.unwrap_or_else(|| vec![(0, Rule::UNSUPPORTED)]));
                self.add(end as u64, &lines);
                offset += end;
            }
            if offset == 0 {
                // Longer than any method, or the last one.
                self.add(part.end - part.start, &[(0, Rule::only(rule::NONE))]);
            }
        }
        Ok(())
    }

    fn add(&mut self, bytes: u64, lines: &[(usize, Rule)]) {
        self.rows.begin(self.at);
        for (offset, rule) in lines {
            self.rows.push(self.at + *offset as u64, *rule);
        }
        self.at += bytes;
        self.rows.end = self.at;
    }
}
