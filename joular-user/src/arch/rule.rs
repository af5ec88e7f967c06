//! Says how to get from a frame to its caller: what a row of the kernel's table says, and what rows are made from.

use joular_ebpf::abi::{UnwindRow, rule};

/// What a row says, without its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub rule: u8,
    pub cfa_words: i16,
    pub fp_words: i8,
}

impl Rule {
    pub const UNSUPPORTED: Self = Self::only(rule::UNSUPPORTED);

    pub const fn only(rule: u8) -> Self {
        Self { rule, cfa_words: 0, fp_words: 0 }
    }

    pub const fn sp(cfa_words: i16) -> Self {
        Self { rule: rule::SP, cfa_words, fp_words: 0 }
    }

    /// What this row says.
    pub const fn of(row: &UnwindRow) -> Self {
        Self { rule: row.rule, cfa_words: row.cfa_words, fp_words: row.fp_words }
    }
}

/// Where a function has put a register's value that its caller had there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    InRegister,
    /// This many bytes from the frame address.
    At(i64),
    /// Nowhere: the caller had none.
    Lost,
    /// In a way that a row cannot say.
    Otherwise,
}

/// A row of an unwind table, as far as a walk needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The register that the frame address is counted from, by its DWARF number, and the bytes to add; `None`: it is
    /// given in another way.
    pub cfa: Option<(u16, i64)>,
    pub return_address: Saved,
    pub fp: Saved,
}

impl TableRow {
    /// The rule by the frame address's register, given those that stand for the stack and frame pointers, and the words
    /// from the register to it.
    pub fn base(&self, sp: u16, fp: u16) -> Option<(u8, i16)> {
        let (register, bytes) = self.cfa?;
        let rule = match register {
            _ if register == sp => rule::SP,
            _ if register == fp => rule::FP,
            _ => return None,
        };
        Some((rule, i16::try_from(words(bytes)?).ok()?))
    }
}

/// Whole words in so many bytes.
pub fn words(bytes: i64) -> Option<i64> {
    const WORD_BYTES: i64 = 8;
    (bytes % WORD_BYTES == 0).then_some(bytes / WORD_BYTES)
}
