//! Reads what a window lost, by cause.

use joular_ebpf::abi::Loss;

use crate::{
    dataset::{
        error::Result,
        read::{
            columns::{Columns, Numbers},
            lists::TextLists,
        },
        tables::windows::{self, LOST_OTHER, OTHER_LOSSES},
    },
    events::LossCount,
};

/// The columns of table `windows` that say it.
pub(crate) struct LossColumns<'a> {
    of_kernel: Vec<(Loss, Numbers<'a>)>,
    others: Numbers<'a>,
    causes: TextLists,
}

impl<'a> LossColumns<'a> {
    pub(crate) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        let numbers = |cause| Ok((cause, columns.ints(windows::lost_by(cause))?));
        Ok(Self {
            of_kernel: Loss::ALL.into_iter().map(numbers).collect::<Result<_>>()?,
            others: columns.ints(LOST_OTHER)?,
            causes: columns.text_lists(OTHER_LOSSES)?,
        })
    }

    /// What a row says was lost.
    ///
    /// # Errors
    /// If the causes outside the kernel do not sum to their column.
    pub(crate) fn of_row(&self, columns: &Columns<'_>, row: usize) -> Result<Vec<LossCount>> {
        let mut losses = Vec::new();
        for (cause, counts) in &self.of_kernel {
            let count: u64 = counts.natural(row)?;
            if count > 0 {
                losses.push(LossCount { cause: cause.name().to_owned(), count });
            }
        }
        let others: Option<Vec<LossCount>> = self.causes.of(row).into_iter().map(windows::read_loss).collect();
        let expected: u64 = self.others.natural(row)?;
        let sum = |losses: &[LossCount]| losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.count));
        match others.filter(|others| sum(others) == expected) {
            Some(others) => losses.extend(others),
            None => return Err(columns.damaged("other_losses does not sum to lost_other")),
        }
        Ok(losses)
    }
}
