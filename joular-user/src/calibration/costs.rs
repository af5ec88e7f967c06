//! Defines what joular-bpf itself costs, by category.

use joular_data::model::policy::InstrumentCosts;
use serde::{Deserialize, Serialize};

use super::statistics::Summary;

/// A category of cost. Each has a load that provokes it: see [`super::trainer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A sample while its CPU is idle.
    SampleIdle,
    /// A sample of a thread whose stack is not wanted.
    SampleOther,
    /// A sample of a target with few frames.
    SampleShallow,
    /// A sample of a target with many frames.
    SampleDeep,
    /// A context switch on a machine where little happens.
    SwitchQuiet,
    /// A context switch among very many.
    SwitchBusy,
    /// Passing a window's boundary, on one CPU.
    Boundary,
    /// CPU time of user space for a window: boundary and draining the
    /// counts. Names, files and the screen come on top.
    Window,
    /// One reading of the clock, as user space sees it. The kernel's run times
    /// contain about one: they are taken between two readings.
    Clock,
}

impl Category {
    pub const ALL: [Self; 9] = [
        Self::SampleIdle,
        Self::SampleOther,
        Self::SampleShallow,
        Self::SampleDeep,
        Self::SwitchQuiet,
        Self::SwitchBusy,
        Self::Boundary,
        Self::Window,
        Self::Clock,
    ];

    pub const fn meaning(self) -> &'static str {
        match self {
            Self::SampleIdle => "sample of an idle CPU",
            Self::SampleOther => "sample of another thread",
            Self::SampleShallow => "sample of a target, few frames",
            Self::SampleDeep => "sample of a target, many frames",
            Self::SwitchQuiet => "context switch, few of them",
            Self::SwitchBusy => "context switch, very many",
            Self::Boundary => "window boundary, per CPU",
            Self::Window => "window, in user space",
            Self::Clock => "reading the clock",
        }
    }

    /// Whether it interrupts a thread that works.
    const fn is_sample_of_a_thread(self) -> bool {
        matches!(self, Self::SampleOther | Self::SampleShallow | Self::SampleDeep)
    }

    const fn is_switch(self) -> bool {
        matches!(self, Self::SwitchQuiet | Self::SwitchBusy)
    }
}

/// Cost of one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    pub category: Category,
    /// Cost of one run: the means of the batches.
    pub nanoseconds: Summary,
    /// Runs over all batches.
    pub runs: u64,
}

/// One batch of a category: runs of a program, and the time of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub category: Category,
    pub runs: u64,
    pub total_ns: u64,
}

/// The cost of each category that ran at all, in the order of [`Category::ALL`].
pub fn costs(batches: &[Batch]) -> Vec<Cost> {
    let cost = |category: Category| {
        let mine = || batches.iter().filter(move |batch| batch.category == category && batch.runs > 0);
        let nanoseconds = Summary::of(mine().map(|batch| batch.total_ns / batch.runs))?;
        Some(Cost { category, nanoseconds, runs: mine().map(|batch| batch.runs).sum() })
    };
    Category::ALL.into_iter().filter_map(cost).collect()
}

/// What attribution may subtract from a thread for each sample and each switch.
///
/// One figure is taken off whatever was interrupted, target or not, with any
/// stack: so it is the least of all categories that interrupt a thread, and
/// never more than was really spent. A reading of the clock is taken off,
/// because the statistics that measured the figure have added about one.
pub fn instrument_costs(costs: &[Cost]) -> InstrumentCosts {
    let least = |wanted: fn(Category) -> bool| {
        costs.iter().filter(|cost| wanted(cost.category)).map(|cost| cost.nanoseconds.least).min().unwrap_or(0)
    };
    let clock_ns = least(|category| category == Category::Clock);
    InstrumentCosts {
        sample_ns: least(Category::is_sample_of_a_thread).saturating_sub(clock_ns),
        switch_ns: least(Category::is_switch).saturating_sub(clock_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(category: Category, runs: u64, total_ns: u64) -> Batch {
        Batch { category, runs, total_ns }
    }

    #[test]
    fn a_batch_counts_as_its_mean_and_without_runs_not_at_all() {
        let batches = [
            batch(Category::SwitchBusy, 1000, 200_000),
            batch(Category::SampleIdle, 10, 4_000),
            batch(Category::SampleIdle, 0, 0),
            batch(Category::SampleIdle, 20, 12_000),
            batch(Category::SampleDeep, 0, 0),
        ];
        let found = costs(&batches);
        let found: Vec<_> = found
            .iter()
            .map(|cost| {
                (cost.category, cost.runs, cost.nanoseconds.count, cost.nanoseconds.least, cost.nanoseconds.typical)
            })
            .collect();
        assert_eq!(found, [(Category::SampleIdle, 30, 2, 400, 500), (Category::SwitchBusy, 1000, 1, 200, 200)]);
    }

    #[test]
    fn attribution_takes_the_least_that_any_thread_paid() {
        let single = |category, ns| batch(category, 1, ns);
        let batches = [
            single(Category::SampleIdle, 300),
            single(Category::SampleOther, 900),
            single(Category::SampleOther, 800),
            single(Category::SampleShallow, 2_000),
            single(Category::SampleDeep, 4_000),
            single(Category::SwitchQuiet, 500),
            single(Category::SwitchBusy, 200),
            single(Category::Boundary, 100),
            single(Category::Clock, 30),
        ];
        assert_eq!(instrument_costs(&costs(&batches)), InstrumentCosts { sample_ns: 770, switch_ns: 170 });
        assert_eq!(instrument_costs(&[]), InstrumentCosts::default());
        let slow_clock = costs(&[single(Category::SwitchBusy, 200), single(Category::Clock, 900)]);
        assert_eq!(instrument_costs(&slow_clock).switch_ns, 0);
    }
}
