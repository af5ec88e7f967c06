//! Tells how many watts groups of threads draw per CPU second, for `joular-bpf report --watts`.
//!
//! Energy is divided by CPU time: equal time, equal energy. That is a convention, and threads that use the processor in
//! different ways draw different power. Windows in which they ran for different times tell how much: [`observed`] reads
//! them, [`mod@fit`] finds the watts, and [`render`] shows them. docs/watts.md explains the result to users.

mod fit;
mod matrix;
mod observed;
mod render;
#[cfg(test)]
mod simulation;

use std::{collections::HashMap, path::Path, slice};

use thiserror::Error;

pub use self::fit::Watts;
use self::{
    fit::{LEAST_WINDOWS, WINDOWS_PER_GROUP, fit},
    observed::{Observed, Quality},
};
use super::{
    Format,
    profile::{Filter, Profile},
    ranking::{by::By, groups::Groups},
};
use crate::{
    attribution::work::Factor,
    dataset::{
        error::{DataSetError, OfDataSet},
        reattribute::{FittedFactors, ThreadFactors},
    },
    events::MachineKey,
    model::{cores::ONE_PERMILLE, domain::Label, target_text::TargetText},
    text::escape,
};

/// Groups are said to differ where chance alone makes them look so different less often than this.
pub const LEVEL: f64 = 0.05;
/// An interval that reaches farther than this part of the mean watts tells nothing of a group.
const WIDEST: f64 = 0.5;
/// Weights are 64-bit numbers of half nanoseconds or cycles, so factors have a bound: a thousand times the mean.
const MOST_RELATIVE: u32 = 1000 * ONE_PERMILLE;

/// Why there is nothing to tell.
#[derive(Debug, Error)]
pub enum WattsError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(
        "watts per CPU second are learnt from energy that was measured at the processor, and this data set's is {}",
        label.name()
    )]
    NotMeasured { label: Label },
    #[error(
        "watts per CPU second are learnt from table weights, and there is no file of it for {path}: a rollup has none, \
         so ask the data set that it was made of"
    )]
    NoWeights { path: String },
    #[error(
        "{windows} windows with energy are too few for {groups} groups, {needed} are needed: record for longer, or with \
         shorter windows (--interval)"
    )]
    TooFew { windows: usize, groups: usize, needed: usize },
    #[error("no window of the selection has CPU time, and energy beyond idling")]
    Nothing,
    #[error(
        "these windows do not show that groups by {by} draw different power (p = {equal:.2}), so the joules by time are as good"
    )]
    Equal { by: &'static str, equal: f64 },
    #[error("the groups ran for the same times in all windows, so windows do not tell them apart")]
    Alike,
}

impl OfDataSet for WattsError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Data(error) => Some(error),
            _ => None,
        }
    }
}

impl WattsError {
    fn of_part(error: DataSetError) -> Self {
        match error {
            DataSetError::NoWeights { path } => Self::NoWeights { path: escape(&path.display().to_string()) },
            error => Self::Data(error),
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct WattsRequest {
    /// What it leaves out of windows counts as everything else.
    pub filter: Filter,
    /// What rows are about, of each table; all are about threads.
    pub by: Vec<By>,
    pub format: Format,
}

/// All that is shown.
#[derive(Clone, Debug)]
pub struct WattsTables {
    tables: Vec<WattsTable>,
    format: Format,
}

/// Reads a data set.
///
/// # Errors
/// If the data set cannot be read, or tells nothing about watts.
pub fn read(data: &Path, request: &WattsRequest) -> Result<WattsTables, WattsError> {
    request.filter.unreadable.reading(|| tables(data, request))
}

fn tables(data: &Path, request: &WattsRequest) -> Result<WattsTables, WattsError> {
    let profile = Profile::read(data, &request.filter, None)?;
    let groups: Vec<Groups> = request.by.iter().map(|by| Groups::of(*by, &profile)).collect();
    let (observed, quality) = observed::read(data, &request.filter, &profile.catalog, &groups)?;
    let tables = groups.iter().zip(&observed).map(|(groups, observed)| WattsTable::of(groups, observed, quality));
    Ok(WattsTables { tables: tables.collect::<Result<_, _>>()?, format: request.format })
}

/// What the time of threads counts for, so that a data set can be divided by what they draw.
///
/// # Errors
/// As [`read`], and if the groups do not certainly differ.
pub fn factors(data: &Path, by: By) -> Result<FittedFactors, WattsError> {
    let filter = Filter::default();
    let catalog = Profile::read(data, &filter, None)?.catalog;
    let groups = Groups::of_catalog(by, &catalog);
    let (mut observed, quality) = observed::read(data, &filter, &catalog, slice::from_ref(&groups))?;
    let observed = observed.pop().unwrap_or_default();
    let table = WattsTable::of(&groups, &observed, quality)?;
    if !table.differs() {
        return Err(WattsError::Equal { by: by.name(), equal: table.equal });
    }
    let factor = |group: Option<usize>| {
        let place = observed.groups.iter().position(|told| *told == group)?;
        Some(relative(table.rows.get(place)?.watts.value / table.mean))
    };
    let others = factor(None).unwrap_or(Factor::ONE);
    let mut threads: HashMap<MachineKey, ThreadFactors> = HashMap::new();
    for (index, thread) in catalog.threads.iter().enumerate() {
        let process = catalog.process(thread.process);
        let own = groups.of_thread(index).and_then(|group| factor(Some(group))).unwrap_or(others);
        let of_host = threads.entry(catalog.run_of(process).info.machine().key()).or_default();
        of_host.insert((process.pid, thread.tid, thread.start), own);
    }
    Ok(FittedFactors { by: by.name().to_owned(), threads, others })
}

/// In thousandths. Not 0: a group that draws nothing has the energy of windows in which it runs alone.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
fn relative(part: f64) -> Factor {
    Factor((part * f64::from(ONE_PERMILLE)).round().clamp(1.0, f64::from(MOST_RELATIVE)) as u32)
}

/// What a group draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: TargetText,
    pub cpu_s: f64,
    /// Part of the energy beyond idling that it has by CPU time, and by its watts.
    pub by_time: f64,
    pub by_watts: f64,
    pub watts: Watts,
    /// Whether windows tell anything about it.
    pub is_told: bool,
}

/// What groups of threads draw.
#[derive(Clone, Debug, PartialEq)]
pub struct WattsTable {
    pub by: By,
    /// The group with most CPU time first; everything else that ran is the last.
    pub rows: Vec<Row>,
    /// Watts per CPU second of all together: energy beyond idling, divided by CPU time.
    pub mean: f64,
    /// How likely chance alone makes groups as different as they look, if all draw the same.
    pub equal: f64,
    /// Observations: windows, of each socket that has a meter.
    pub windows: usize,
    /// Groups that are summed as everything else.
    pub summed: usize,
    quality: Quality,
}

impl WattsTable {
    /// Whether groups differ by more than chance explains.
    pub fn differs(&self) -> bool {
        self.equal < LEVEL
    }

    fn of(groups: &Groups, observed: &Observed, quality: Quality) -> Result<Self, WattsError> {
        let Observed { groups: told, observations, summed } = observed;
        let joules: f64 = observations.iter().map(|window| window.joules).sum();
        let all_cpu_s: f64 = observations.iter().flat_map(|window| &window.cpu_s).sum();
        if joules <= 0.0 || all_cpu_s <= 0.0 {
            return Err(WattsError::Nothing);
        }
        let mean = joules / all_cpu_s;
        let (windows, needed) = (observations.len(), LEAST_WINDOWS.max(WINDOWS_PER_GROUP * told.len()));
        if windows < needed {
            return Err(WattsError::TooFew { windows, groups: told.len(), needed });
        }
        let fitted = fit(observations).ok_or(WattsError::Alike)?;
        let values: Vec<f64> = fitted.groups.iter().map(|watts| watts.value).collect();
        let [by_time, by_watts] = [None, Some(&values[..])].map(|watts| fit::shares(observations, watts));
        let row = |(place, watts): (usize, &Watts)| Row {
            name: told[place]
                .and_then(|group| groups.name(group).cloned())
                .unwrap_or_else(|| "[everything else]".into()),
            cpu_s: observations.iter().map(|of| of.cpu_s[place]).sum(),
            by_time: by_time[place],
            by_watts: by_watts[place],
            watts: *watts,
            is_told: watts.high - watts.value <= WIDEST * mean,
        };
        let rows = fitted.groups.iter().enumerate().map(row).collect();
        let (by, summed) = (groups.by, *summed);
        Ok(Self { by, rows, mean, equal: fitted.equal, windows, summed, quality })
    }
}
