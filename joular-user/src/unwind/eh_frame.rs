//! Turns `.eh_frame` into rows that the kernel side can apply.
//!
//! The section is a list of entries. Each is a little program that yields, address by address,
//! where the frame begins and where registers were saved. All are run in the order of their
//! addresses. Of each row only what a walk needs is kept (the canonical frame address, the return
//! address, the frame pointer), and rows that change nothing of that are dropped: two thirds of
//! them. Code that no entry covers gets a row that says so, since the row before would claim it.
//!
//! The file is a target's: the work is bounded whatever it says.

use std::{collections::HashMap, marker::PhantomData};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Register, RegisterRule, UnwindContext, UnwindContextStorage,
    UnwindSection as _, UnwindTableRow,
};
use joular_ebpf::abi::{UnwindRow, rule};

use super::rows::{Rows, Rule};
use crate::{
    arch::{Arch, Saved, TableRow, x86_64::plt},
    bounds::Bound,
    elf::{Elf, ElfError, Section},
};

/// libjvm has 2 MiB of it, a compiler or browser 10.
const MAX_SECTION_BYTES: u64 = 12 << 20;
/// Rows kept of one file; libjvm has 131 000 to 206 000.
pub const MAX_ROWS: usize = 1 << 20;
const MAX_ENTRIES: usize = 1 << 19;
/// Bytes of entries that are run in all. Many entries may share one long preamble, so the section's
/// size is not a bound.
const MAX_WORK_BYTES: usize = 64 << 20;
pub static ROWS: Bound = Bound::new(
    "unwind_rows_not_kept",
    MAX_ROWS as u64,
    "unwind rows of a file, 524288 functions and 64 MiB of instructions for them",
    "stacks that pass through the rest end there",
);
pub static SECTIONS: Bound = Bound::new(
    "unwind_tables_not_read",
    MAX_SECTION_BYTES,
    "bytes of a file's unwind table",
    "a file with more is walked by frame pointers",
);
/// The share of that work that a row counts for, pushed or not.
const ROW_WORK_BYTES: usize = 8;
/// Kept; a linker merges equal ones, so few are usual.
const MAX_CIES: usize = 4096;

/// gimli's own storage has room for the registers of all machines, and moving it
/// about takes longer than anything else.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

type Context = UnwindContext<usize, Storage>;
type Row = UnwindTableRow<usize, Storage>;
type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Cies<'a> = HashMap<usize, CommonInformationEntry<Bytes<'a>>>;

/// An entry: which code, and where in the section.
#[derive(Clone, Copy)]
struct CodeRange {
    start: u32,
    end: u32,
    offset: u32,
}

impl CodeRange {
    fn of(fde: &FrameDescriptionEntry<Bytes>) -> Option<Self> {
        let (start, end) = (u32::try_from(fde.initial_address()).ok()?, u32::try_from(fde.end_address()).ok()?);
        (start < end).then_some(Self { start, end, offset: u32::try_from(fde.offset()).ok()? })
    }
}

/// Of a file; empty if it has none.
pub fn section<A: Arch>(elf: &Elf<'_>) -> Result<Section, ElfError> {
    if !elf.is_of(A::MACHINE) {
        return Err(ElfError::Malformed("it is not of this machine's architecture"));
    }
    let section = elf.section(".eh_frame", MAX_SECTION_BYTES);
    SECTIONS.cut(u64::from(matches!(section, Err(ElfError::TooLarge { .. }))));
    Ok(section?.unwrap_or_default())
}

/// The rows of a section, sorted by address. What cannot be understood is left
/// out, and rows beyond [`MAX_ROWS`] are too.
pub fn rows<A: Arch>(section: &Section) -> Vec<UnwindRow> {
    let mut table = table::<A>(section);
    let entries = table.entries();
    let mut context = Context::new_in();
    for entry in entries {
        // Overlapping ones contradict each other: the first is as good as any.
        if u64::from(entry.start) >= table.rows.end && !table.run(entry, &mut context) {
            ROWS.cut(1);
            break;
        }
    }
    table.rows.finish()
}

/// Start and end of each function that it describes.
#[cfg(test)]
pub fn functions<A: Arch>(section: &Section) -> Vec<std::ops::Range<u32>> {
    table::<A>(section).entries().iter().map(|entry| entry.start..entry.end).collect()
}

fn table<A: Arch>(section: &Section) -> EhFrameTable<'_, A> {
    let mut frames = EhFrame::new(&section.bytes, LittleEndian);
    frames.set_vendor(A::VENDOR);
    EhFrameTable {
        frames,
        bases: BaseAddresses::default().set_eh_frame(section.address),
        cies: HashMap::new(),
        work: 0,
        rows: Rows::of::<A>(),
        arch: PhantomData,
    }
}

struct EhFrameTable<'a, A> {
    frames: EhFrame<Bytes<'a>>,
    bases: BaseAddresses,
    cies: Cies<'a>,
    work: usize,
    rows: Rows,
    arch: PhantomData<A>,
}

impl<'a, A: Arch> EhFrameTable<'a, A> {
    /// Sorted by address; those beyond 4 GiB have no room in a row.
    fn entries(&mut self) -> Vec<CodeRange> {
        let (frames, bases) = (self.frames, self.bases.clone());
        let mut entries = Vec::new();
        let mut all = frames.entries(&bases);
        // The list ends where it can no longer be followed.
        while let Ok(Some(entry)) = all.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(|_, _, offset| self.cie(offset)) else { continue };
            let Some(entry) = CodeRange::of(&fde) else { continue };
            if entries.len() < MAX_ENTRIES {
                entries.push(entry);
            } else {
                ROWS.cut(1);
            }
        }
        entries.shrink_to_fit();
        entries.sort_unstable_by_key(|entry| (entry.start, entry.offset));
        entries
    }

    /// Few, and shared by many entries each.
    fn cie(&mut self, offset: EhFrameOffset) -> gimli::Result<CommonInformationEntry<Bytes<'a>>> {
        if let Some(known) = self.cies.get(&offset.0) {
            return Ok(known.clone());
        }
        let cie = self.frames.cie_from_offset(&self.bases, offset)?;
        if self.cies.len() < MAX_CIES {
            self.cies.insert(offset.0, cie.clone());
        }
        Ok(cie)
    }

    /// Says whether there is room for more.
    fn run(&mut self, entry: CodeRange, context: &mut Context) -> bool {
        let (before, start) = (self.rows.count(), u64::from(entry.start));
        if self.run_entry(entry, context).is_none() {
            self.rows.truncate(before);
            self.rows.begin(start);
            self.rows.push(start, Rule::UNSUPPORTED);
        }
        self.rows.end = u64::from(entry.end);
        self.work <= MAX_WORK_BYTES && self.rows.count() < MAX_ROWS
    }

    fn run_entry(&mut self, entry: CodeRange, context: &mut Context) -> Option<()> {
        let (frames, bases) = (self.frames, self.bases.clone());
        let (start, end) = (u64::from(entry.start), u64::from(entry.end));
        let offset = EhFrameOffset(usize::try_from(entry.offset).ok()?);
        let fde = frames.fde_from_offset(&bases, offset, |_, _, offset| self.cie(offset)).ok()?;
        self.work = self.work.saturating_add(fde.entry_len()).saturating_add(fde.cie().entry_len());
        self.rows.begin(start);
        if fde.is_signal_trampoline() {
            self.rows.push(start, Rule::only(rule::SIGNAL));
            return Some(());
        }
        let return_address = fde.cie().return_address_register();
        let mut table = fde.rows(&frames, &bases, context).ok()?;
        while let Some(row) = table.next_row().ok()? {
            self.work = self.work.saturating_add(ROW_WORK_BYTES);
            if self.rows.count() >= MAX_ROWS || self.work > MAX_WORK_BYTES {
                return None;
            }
            let address = row.start_address();
            if address >= end {
                break;
            }
            match plt_pushes_at::<A>(row, &frames) {
                Some(plt::PUSHES_AT) => self.rows.push(address, Rule::only(rule::PLT)),
                Some(pushes_at) => {
                    let end = end.min(row.end_address());
                    let slots = push_plt(&mut self.rows, address, end, pushes_at);
                    self.work = self.work.saturating_add(slots.saturating_mul(2 * ROW_WORK_BYTES));
                }
                None => self.rows.push(address, A::table_rule(&table_row::<A>(row, return_address))),
            }
        }
        Some(())
    }
}

/// The byte of its slot from which the code of a linkage table has pushed a word, if this row is of
/// one.
fn plt_pushes_at<A: Arch>(row: &Row, frames: &EhFrame<Bytes>) -> Option<u64> {
    let CfaRule::Expression(expression) = row.cfa() else { return None };
    A::plt_pushes_at(expression.get(frames).ok()?.0.slice())
}

fn table_row<A: Arch>(row: &Row, return_address: Register) -> TableRow {
    let cfa = match *row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some((register.0, offset)),
        CfaRule::Expression(_) => None,
    };
    TableRow { cfa, return_address: saved(row, return_address), fp: saved(row, Register(A::DWARF_FP)) }
}

fn saved(row: &Row, register: Register) -> Saved {
    match row.register(register) {
        None | Some(RegisterRule::SameValue) => Saved::InRegister,
        Some(RegisterRule::Undefined) => Saved::Lost,
        Some(RegisterRule::Offset(offset)) => Saved::At(offset),
        _ => Saved::Otherwise,
    }
}

/// A linkage table whose slots push elsewhere than usual, slot by slot. Gives their number.
fn push_plt(rows: &mut Rows, start: u64, end: u64, pushes_at: u64) -> usize {
    let mut slots = 0;
    let mut slot = start - start % plt::SLOT_BYTES;
    while slot < end && rows.count() < MAX_ROWS {
        rows.push(slot.max(start), Rule::sp(1));
        rows.push((slot + pushes_at).clamp(start, end), Rule::sp(2));
        slot += plt::SLOT_BYTES;
        slots += 1;
    }
    slots
}

#[cfg(test)]
#[path = "eh_frame_aarch64_tests.rs"]
mod aarch64_tests;
#[cfg(test)]
#[path = "eh_frame_tests.rs"]
mod tests;
