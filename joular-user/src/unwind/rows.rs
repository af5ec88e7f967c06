//! Collects the rows of one table, in the order of their addresses.

use joular_ebpf::abi::{UnwindRow, rule};

use crate::arch::Arch;
pub use crate::arch::Rule;

/// The rows made so far.
#[derive(Debug)]
pub struct Rows {
    rows: Vec<UnwindRow>,
    /// Of functions.
    alignment_bytes: u64,
    /// Of the code that they cover.
    pub end: u64,
}

impl Rows {
    /// None yet, of code for a processor.
    pub const fn of<A: Arch>() -> Self {
        Self { rows: Vec::new(), alignment_bytes: A::FUNCTION_ALIGNMENT_BYTES, end: 0 }
    }

    pub const fn count(&self) -> usize {
        self.rows.len()
    }

    /// Drops the last ones, down to this number.
    pub fn truncate(&mut self, count: usize) {
        self.rows.truncate(count);
    }

    /// Covers code from `start` on; the code between is uncovered. Padding before an aligned
    /// function never runs, and would be a fifth of all rows.
    pub fn begin(&mut self, start: u64) {
        let alignment_bytes = self.alignment_bytes;
        let is_padding = start.is_multiple_of(alignment_bytes) && start.saturating_sub(self.end) < alignment_bytes;
        if !self.rows.is_empty() && start > self.end && !is_padding {
            self.push(self.end, Rule::only(rule::NONE));
        }
    }

    /// A row that says what the one before says is left out.
    pub fn push(&mut self, address: u64, rule: Rule) {
        let Ok(address) = u32::try_from(address) else { return };
        let Rule { rule, cfa_words, fp_words } = rule;
        let row = UnwindRow { address, cfa_words, fp_words, rule };
        match self.rows.last_mut() {
            Some(last) if UnwindRow { address, ..*last } == row => {}
            Some(last) if last.address == address => *last = row,
            _ => self.rows.push(row),
        }
    }

    pub fn finish(mut self) -> Vec<UnwindRow> {
        self.begin(u64::MAX);
        self.rows.shrink_to_fit();
        self.rows
    }
}
