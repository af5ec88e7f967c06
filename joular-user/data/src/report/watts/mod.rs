//! Tells how many watts groups of threads draw per CPU second, for `joular-bpf report --watts`.
//!
//! Energy is divided by CPU time: equal time, equal energy. That is a convention, and threads that use the processor in
//! different ways draw different power. Windows in which they ran for different times tell how much: [`observed`] reads
//! them, [`fit`] finds the watts, and [`render`] shows them. docs/watts.md explains the result to users.

mod fit;
mod matrix;
mod observed;
mod render;
#[cfg(test)]
mod simulation;

use std::path::Path;

use thiserror::Error;

pub use self::fit::Watts;
use self::{
    fit::{LEAST_WINDOWS, WINDOWS_PER_GROUP, fit},
    observed::Observed,
};
use super::{
    Format,
    profile::{Filter, Profile},
    ranking::{by::By, groups::Groups},
};
use crate::{
    dataset::error::DataSetError,
    model::{domain::Label, target_text::TargetText},
};

/// Groups are said to differ where chance alone makes them look so different less often than this.
pub const LEVEL: f64 = 0.05;
/// An interval that reaches farther than this part of the common watts to either side tells nothing of a group.
const WIDEST: f64 = 0.5;

/// Why there is nothing to tell.
#[derive(Debug, Error)]
pub enum WattsError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(
        "watts per CPU second are learnt from energy that was measured where the processor is, and this data set's is \
         {}: a model made it of CPU time, so it tells nothing about who drew more",
        label.name()
    )]
    NotMeasured { label: Label },
    #[error(
        "{windows} windows with energy are too few for {groups} groups, {needed} are needed: record for longer, or with \
         shorter windows (--interval)"
    )]
    TooFew { windows: usize, groups: usize, needed: usize },
    #[error("no window has CPU time of the selection")]
    Nothing,
    #[error("the groups ran for the same times in all windows, so windows do not tell them apart")]
    Alike,
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
    let profile = Profile::read(data, &request.filter, None)?;
    let tables = request.by.iter().map(|by| WattsTable::read(data, &request.filter, &profile, *by));
    Ok(WattsTables { tables: tables.collect::<Result<_, _>>()?, format: request.format })
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
    /// Watts per CPU second of all together, as far as windows tell.
    pub common: f64,
    /// How likely chance alone makes groups as different as they look, if all draw the same.
    pub equal: f64,
    /// Observations: windows, of each socket that has a meter.
    pub windows: usize,
    /// Windows without a good reading.
    pub left_out: usize,
}

impl WattsTable {
    /// Whether groups differ by more than chance explains.
    pub fn differs(&self) -> bool {
        self.equal < LEVEL
    }

    fn read(data: &Path, filter: &Filter, profile: &Profile, by: By) -> Result<Self, WattsError> {
        let groups = Groups::of(by, profile);
        let observed = Observed::read(data, filter, &profile.catalog, &groups)?;
        let Observed { groups: told, observations, left_out } = &observed;
        if observations.is_empty() {
            return Err(WattsError::Nothing);
        }
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
            is_told: watts.high - watts.value <= WIDEST * fitted.common,
        };
        let rows = fitted.groups.iter().enumerate().map(row).collect();
        Ok(Self { by, rows, common: fitted.common, equal: fitted.equal, windows, left_out: *left_out })
    }
}
