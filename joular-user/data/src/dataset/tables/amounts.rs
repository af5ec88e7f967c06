//! Defines what processes have of other measures than energy, as a rollup keeps them: bytes and counts, a row each.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, allocations, int, joined, kind, process_columns,
    window_columns,
    work::{CATEGORY, STACK_ID},
};
use crate::{
    attribution::{
        allocated::SampledBy,
        window_report::{Category, ProcessRef},
    },
    model::{measure::Measure, units::MicroJoules},
    sampling::Sampled,
};

pub(crate) const MEASURE: Column<kind::Name> =
    Column::new("measure", "rollup", "allocated, a way of bytes such as remote-sent or read, or a counter's name");
pub(crate) const AMOUNT: Column<kind::Int> =
    Column::quantity("amount", "rollup", "bytes, or how often it happened, on the call path itself");
pub(crate) const SAMPLES: Column<kind::Int> =
    Column::new("samples", "kernel", "samples that say which call path it is of").unit("samples");
pub(crate) const MILLI_PER_SAMPLE: Column<kind::Int> = Column::new(
    "milli_per_sample",
    "rollup",
    "thousandths of the unit that a sample stands for, averaged over the amount",
)
.null("no sample");
const SAMPLED_BY: Column<kind::Name> = allocations::SAMPLED_BY.null("no sample");
const CLASS: Column<kind::Name> =
    allocations::CLASS.null("other measures, no sample, or the class is not known any more");

pub struct Amounts;

pub struct AmountRecord<'a> {
    pub(crate) key: WindowKey<'a>,
    pub(crate) process: &'a ProcessRef,
    pub(crate) category: Category,
    pub(crate) stack_id: i64,
    pub(crate) measure: Measure,
    pub(crate) class: Option<&'a str>,
    pub(crate) sampled_by: Option<SampledBy>,
    pub(crate) amount: u64,
    pub(crate) samples: u64,
    pub(crate) milli_per_sample: Option<u64>,
}

impl InWindow for Amounts {
    fn key<'r>(row: &'r AmountRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Amounts {
    fn process<'r>(row: &'r AmountRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl Table for Amounts {
    const NAME: &'static str = "amounts";
    const ROW: &'static str = "what all threads of a category in a process have of a measure on a call path, in a window of a \
                               rollup: it has this table in place of allocations, io and counters";
    const BY_POLICY: bool = false;
    type Row<'a> = AmountRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let own = vec![
            CATEGORY.of::<Self>(|r| Some(r.category.name().into())),
            STACK_ID.of::<Self>(|r| Some(r.stack_id)),
            MEASURE.of::<Self>(|r| Some(r.measure.name().into())),
            CLASS.of::<Self>(|r| r.class.map(Into::into)),
            AMOUNT.of::<Self>(|r| int(r.amount)),
            SAMPLES.of::<Self>(|r| int(r.samples)),
            MILLI_PER_SAMPLE.of::<Self>(|r| r.milli_per_sample.and_then(int)),
            SAMPLED_BY.of::<Self>(|r| r.sampled_by.map(|by| by.name().into())),
        ];
        joined([window_columns(), process_columns(), own])
    }
}

/// [`Sampled::squares`] as the table has them: thousandths of what a sample stands for; `None` if there is no sample.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "an estimate")]
pub(crate) fn milli_per_sample(amount: u64, sampled: &Sampled) -> Option<u64> {
    let per_sample = sampled.squares / amount as f64;
    (sampled.squares > 0.0 && amount > 0).then(|| ((per_sample * 1000.0).round() as u64).max(1))
}

/// The other way round.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
pub(crate) fn sampled(amount: u64, samples: u64, milli_per_sample: Option<u64>) -> Sampled {
    let Some(per_sample) = milli_per_sample else { return Sampled::default() };
    Sampled::standing_for(MicroJoules(amount), samples, per_sample as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sample_stands_for_survives_a_rollup() {
        for (amount, samples) in [(1_u64, 1_u64), (3, 40), (7_000, 1), (1 << 40, 12)] {
            let before = Sampled::of(MicroJoules(amount), samples);
            let after = sampled(amount, samples, milli_per_sample(amount, &before));
            assert!((after.squares / before.squares - 1.0).abs() < 0.01, "{amount} {samples}: {after:?}");
        }
        assert_eq!(milli_per_sample(7, &Sampled::default()), None);
        assert_eq!(milli_per_sample(0, &Sampled { squares: 1.0, ..Sampled::default() }), None);
        assert_eq!(sampled(7, 0, None), Sampled::default());
    }
}
