//! Sums what windows ran under: how busy and how fast the CPUs were, what the hypervisor took.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::dataset::{
    error::Result,
    read::columns::{Columns, Names, Numbers},
    tables::{context, windows},
};

/// Sums over the windows of a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    window_ns: u64,
    busy_ns: u64,
    /// Window length × CPUs, of windows of which it is known what the hypervisor took.
    steal_cpu_ns: u64,
    steal_ns: u64,
    /// Frequency × busy time, kHz · ns, and the busy time of windows whose frequency is known.
    frequency: u128,
    frequency_ns: u64,
    /// Governors that CPUs had.
    pub governors: BTreeSet<String>,
    /// Windows in which the machine was suspended.
    pub suspended: u64,
}

impl Load {
    /// CPUs that were busy on average; `None` without windows.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub fn busy_cpus(&self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.busy_ns as f64 / self.window_ns as f64)
    }

    /// Mean frequency of busy CPUs, where it is known.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub fn gigahertz(&self) -> Option<f64> {
        (self.frequency_ns > 0).then(|| self.frequency as f64 / self.frequency_ns as f64 / 1e6)
    }

    /// Share of the CPUs' time that the hypervisor took, where it is known.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub fn stolen(&self) -> Option<f64> {
        (self.steal_cpu_ns > 0).then(|| self.steal_ns as f64 / self.steal_cpu_ns as f64)
    }

    /// Takes the windows of another recording, too.
    pub(in crate::report) fn add(&mut self, other: Self) {
        self.window_ns = self.window_ns.saturating_add(other.window_ns);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.steal_cpu_ns = self.steal_cpu_ns.saturating_add(other.steal_cpu_ns);
        self.steal_ns = self.steal_ns.saturating_add(other.steal_ns);
        self.frequency = self.frequency.saturating_add(other.frequency);
        self.frequency_ns = self.frequency_ns.saturating_add(other.frequency_ns);
        self.governors.extend(other.governors);
        self.suspended = self.suspended.saturating_add(other.suspended);
    }

    /// Takes one row of a window.
    pub(super) fn take(&mut self, rows: &LoadColumns<'_>, row: usize, window_ns: u64) -> Result<()> {
        let busy_ns = rows.busy.natural::<u64>(row)?.saturating_add(rows.unslotted.natural(row)?);
        self.window_ns = self.window_ns.saturating_add(window_ns);
        self.busy_ns = self.busy_ns.saturating_add(busy_ns);
        if let Some(khz) = rows.frequencies.maybe_natural::<u64>(row)? {
            self.frequency = self.frequency.saturating_add(u128::from(khz) * u128::from(busy_ns));
            self.frequency_ns = self.frequency_ns.saturating_add(busy_ns);
        }
        if let Some(steal_ns) = rows.steals.maybe_natural::<u64>(row)? {
            self.steal_ns = self.steal_ns.saturating_add(steal_ns);
            self.steal_cpu_ns = self.steal_cpu_ns.saturating_add(rows.elapsed.natural(row)?);
        }
        if let Some(governor) = rows.governors.maybe(row)?
            && !self.governors.contains(governor)
        {
            self.governors.insert(governor.to_owned());
        }
        self.suspended += u64::from(rows.suspends.maybe(row).is_some_and(|ns| ns > 0));
        Ok(())
    }
}

/// The columns that [`Load`] is made of.
pub(super) struct LoadColumns<'a> {
    busy: Numbers<'a>,
    unslotted: Numbers<'a>,
    elapsed: Numbers<'a>,
    frequencies: Numbers<'a>,
    governors: Names<'a>,
    steals: Numbers<'a>,
    suspends: Numbers<'a>,
}

impl<'a> LoadColumns<'a> {
    pub(super) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        Ok(Self {
            busy: columns.ints(windows::CPU_BUSY_NS)?,
            unslotted: columns.ints(windows::CPU_UNSLOTTED_NS)?,
            elapsed: columns.ints(windows::CPU_ELAPSED_NS)?,
            frequencies: columns.ints(context::MEAN_FREQUENCY_KHZ)?,
            governors: columns.names(context::GOVERNOR)?,
            steals: columns.ints(context::STEAL_NS)?,
            suspends: columns.ints(context::SUSPENDED_NS)?,
        })
    }

    /// Time that all CPUs had in a window.
    pub(super) fn elapsed_cpu_ns(&self, row: usize) -> Result<u64> {
        self.elapsed.natural(row)
    }
}

#[cfg(test)]
pub(crate) mod made_up {
    use super::Load;

    /// A second of a machine with four CPUs.
    pub(crate) fn load(busy_cpus: f64, gigahertz: f64, governor: &str, stolen: f64) -> Load {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small figures")]
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let busy_ns = ns(busy_cpus);
        Load {
            window_ns: ns(1.0),
            busy_ns,
            steal_cpu_ns: ns(4.0),
            steal_ns: ns(4.0 * stolen),
            frequency: u128::from(busy_ns) * u128::from(ns(gigahertz) / 1_000),
            frequency_ns: if gigahertz > 0.0 { busy_ns } else { 0 },
            governors: std::iter::once(governor.to_owned()).filter(|governor| !governor.is_empty()).collect(),
            suspended: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        dataset::fixture,
        model::policy::Policy,
        report::profile::{DataSet, Filter},
    };

    #[test]
    fn the_load_of_a_data_set_is_that_of_its_windows() {
        let root = tempfile::tempdir().unwrap();
        fixture::write(root.path(), Policy::default());
        let filter = Filter::default();
        let load = DataSet::open(root.path(), &filter).unwrap().overview(&filter).unwrap().load;
        assert_eq!(load.governors.iter().map(String::as_str).collect::<Vec<_>>(), ["mixed", "schedutil"]);
        assert_eq!(load.suspended, 1);
        let (gigahertz, stolen) = (load.gigahertz().unwrap(), load.stolen().unwrap());
        assert!((1.0..=4.0).contains(&gigahertz), "{gigahertz}");
        // 10 ms more in each of 30 windows of four CPUs.
        assert!((stolen - 0.01 * 29.0 * 15.0 / 120.0).abs() < 1e-9, "{stolen}");
        let busy = load.busy_cpus().unwrap();
        assert!(busy > 0.5 && busy < 4.0, "{busy}");
    }
}
