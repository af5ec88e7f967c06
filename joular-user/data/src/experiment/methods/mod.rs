//! Says how an experiment was made, as a paragraph for a paper: on what it ran, how its energy came about, in which
//! order runs were made and by which statistics they are compared.
//!
//! Everything in it was recorded: with each run in the data sets ([`Recorded`]), or by who conducted the experiment
//! ([`Conduct`]). A fact that is not known is not left out: the paragraph says that it was not recorded.

mod markup;
#[cfg(test)]
mod tests;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

pub use self::markup::Markup;
use super::replicates::Summary;
use crate::{
    dataset::error::Result,
    model::target_text::TargetText,
    report::profile::{DataSet, Filter, Run},
};

/// What is known of how an experiment was made.
#[derive(Clone, Debug)]
pub struct Methods<'a> {
    pub summary: &'a Summary,
    pub conduct: Conduct,
    /// `None`: there is no data set.
    pub recorded: Option<Recorded>,
}

/// How runs were made. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conduct {
    pub machine: Option<Machine>,
    pub seed: u64,
    /// Runs of each variant before those that count.
    pub warmup: Option<u32>,
    /// Of the mean, and the least number of runs, if runs went on until intervals were narrow.
    pub until: Option<(f64, u32)>,
    /// The most runs of each variant then.
    pub most: u32,
    /// Options by their names, each with what was given: pauses, and commands before and after runs, one for all variants or
    /// one for each.
    pub options: Option<BTreeMap<String, Vec<String>>>,
    /// How work is counted, in words.
    pub work: Option<String>,
    /// How many runs do not count for this reason.
    pub left_out: BTreeMap<String, usize>,
}

/// What an experiment knows of its machine even without a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub cpu_model: String,
    pub online_cpus: u32,
    pub kernel: String,
    /// Of joular-bpf.
    pub version: String,
}

/// What data sets say of their runs.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub runs: Vec<Run>,
    /// Of all windows.
    pub governors: BTreeSet<String>,
    /// Versions and collectors of the JVMs that were measured, as far as they are known.
    pub jvms: BTreeSet<(Option<TargetText>, Option<TargetText>)>,
}

impl Recorded {
    /// Reads it from a data set, or those of an experiment.
    ///
    /// # Errors
    /// If there is no run, or a file cannot be read or is damaged.
    pub fn read(root: &Path) -> Result<Self> {
        let filter = Filter::default();
        let mut data = DataSet::open(root, &filter)?;
        let overview = data.overview(&filter)?;
        let jvms = overview.jvms.keys().map(|jvm| {
            let process = data.catalog.process(*jvm);
            (process.jvm_version.clone(), process.collector.clone())
        });
        let jvms = jvms.collect();
        Ok(Self { runs: data.catalog.runs, governors: overview.load.governors, jvms })
    }

    /// A fact of all runs, each value once.
    fn each<T: Ord>(&self, of: impl Fn(&Run) -> T) -> BTreeSet<T> {
        self.runs.iter().map(of).collect()
    }
}
