//! Reads the data sets of a sweep, one for each value of a parameter, and fits the energy of a run and of each method.
//!
//! A method is the same in all data sets by its identity ([`crate::report::diff::identity`]). Where a method has no sample,
//! it needed so little that none hit it: 0 J, with the variance of one sample.

mod against;
mod drawing;
mod page;
mod render;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

pub use against::Judged;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Growth, GrowthError, Point};
use crate::{
    dataset::error::DataSetError,
    model::{domain::Label, target_text::TargetText},
    report::{
        Format,
        diff::{Choices, CompareBy, FailOn, Key, Per, Side, View, side::Spent},
        measure::Measure,
        profile::{App, Filter},
    },
};

/// Fewer samples, over all values, show no shape.
pub const LEAST_SAMPLES: u64 = 50;

/// Why a sweep cannot be read.
#[derive(Debug, Error)]
pub enum SweepError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(transparent)]
    Growth(#[from] GrowthError),
}

/// Something that needs energy, against the parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `total`, or a method with its class.
    pub name: TargetText,
    pub signature: Option<TargetText>,
    pub module: Option<TargetText>,
    /// A point for each run: J, or CPU seconds. An earlier joular-bpf has stored one of CPU time for each value.
    pub points: Vec<Point>,
    pub samples: u64,
    /// `None`: see `why_not`. It is fitted again when a sweep is read, so that the rules of today judge both.
    #[serde(skip_deserializing)]
    pub growth: Option<Growth>,
    /// Why nothing was fitted.
    pub why_not: Option<String>,
}

/// What a sweep showed. It has all that a later comparison needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Whether methods have the energy of what they call, too.
    pub with_callees: bool,
    pub total: Curve,
    /// CPU seconds of a run; not fitted where there are too few values.
    pub cpu: Curve,
    /// Those that need most at the largest value come first.
    pub methods: Vec<Curve>,
    /// How the energy came about: the weakest label of all runs.
    pub energy_label: Option<String>,
}

impl Curve {
    fn of(key: Key, points: Vec<Point>, samples: u64) -> Self {
        let Key { name, signature, module } = key;
        let mut curve = Self { name, signature, module, points, samples, growth: None, why_not: None };
        curve.fit();
        curve
    }

    fn fit(&mut self) {
        match Growth::of(&self.points) {
            Ok(growth) => self.growth = Some(growth),
            Err(why) => self.why_not = Some(why.to_string()),
        }
    }

    /// Mean energy of the runs at the largest value, J.
    #[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
    pub fn at_largest(&self) -> f64 {
        let largest = self.points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
        let there: Vec<f64> =
            self.points.iter().filter(|point| point.value >= largest).map(|point| point.joules).collect();
        there.iter().sum::<f64>() / there.len().max(1) as f64
    }
}

impl Sweep {
    /// How the energy came about, if the label is one of today.
    fn label(&self) -> Option<Label> {
        let name = self.energy_label.as_deref()?;
        Label::ALL.into_iter().find(|label| label.name() == name)
    }

    /// Reads what `filter` allows of each value's data set, as `app` sees it if given.
    ///
    /// # Errors
    /// If a data set cannot be read, or there are too few values or runs for the total.
    pub fn read(steps: &[(f64, PathBuf)], filter: &Filter, app: Option<&App>, view: View) -> Result<Self, SweepError> {
        let choices = Choices {
            measure: Measure::Energy,
            by: CompareBy::Method,
            view,
            per: Per::Run,
            margin: 0.0,
            fail_above: None,
            fail_on: FailOn::Total,
            top: None,
            format: Format::Text,
            again_in: None,
        };
        let read = |(value, path): &(f64, PathBuf)| Ok((*value, Side::read(path, filter, app, &choices)?));
        let sides: Vec<(f64, Side)> = steps.iter().map(read).collect::<Result<_, DataSetError>>()?;
        Self::of(&sides, view)
    }

    /// Reads what [`Self::write`] has written as JSON, and fits it.
    ///
    /// # Errors
    /// If it is no sweep.
    pub fn stored(json: &str) -> Result<Self, serde_json::Error> {
        let mut sweep: Self = serde_json::from_str(json)?;
        sweep.total.fit();
        sweep.cpu.fit();
        sweep.methods.iter_mut().filter(|curve| curve.samples >= LEAST_SAMPLES).for_each(Curve::fit);
        Ok(sweep)
    }

    fn of(sides: &[(f64, Side)], view: View) -> Result<Self, SweepError> {
        let mut points = Vec::new();
        let mut cpu = Vec::new();
        for (value, side) in sides {
            // Of paths that were selected only samples say anything; else threads' energy is exact.
            let least = if side.is_whole { 0.0 } else { one_sample(side) };
            points.extend(points_of(*value, side, &side.total, least));
            let runs = side.cpu_seconds_of_runs().into_iter();
            cpu.extend(runs.map(|seconds| Point { value: *value, joules: seconds, variance: 0.0 }));
        }
        let samples = sides.iter().fold(0, |sum: u64, (_, side)| sum.saturating_add(side.total.samples));
        Growth::of(&points)?;
        let total = Curve::of(named("total"), points, samples);
        let keys: BTreeSet<&Key> = sides.iter().flat_map(|(_, side)| side.rows.keys()).collect();
        let mut methods: Vec<Curve> = keys.into_iter().map(|key| method(key, sides)).collect();
        methods.sort_by(|a, b| b.at_largest().total_cmp(&a.at_largest()));
        let with_callees = view == View::Total;
        let label = sides.iter().filter_map(|(_, side)| side.overview.label).max();
        let energy_label = label.map(|label| label.name().to_owned());
        Ok(Self { with_callees, total, cpu: Curve::of(named("CPU seconds"), cpu, samples), methods, energy_label })
    }
}

fn named(name: &str) -> Key {
    Key { name: name.into(), signature: None, module: None }
}

fn method(key: &Key, sides: &[(f64, Side)]) -> Curve {
    let (mut points, mut samples) = (Vec::new(), 0_u64);
    for (value, side) in sides {
        let spent = side.spent(key, CompareBy::Method);
        samples = samples.saturating_add(spent.samples);
        points.extend(points_of(*value, side, &spent, one_sample(side)));
    }
    if samples >= LEAST_SAMPLES {
        return Curve::of(key.clone(), points, samples);
    }
    let why = format!("it has {samples} samples: from {LEAST_SAMPLES} on it is fitted");
    let Key { name, signature, module } = key.clone();
    Curve { name, signature, module, points, samples, growth: None, why_not: Some(why) }
}

/// Energy of each run. What sampling leaves open in all runs is shared by them in equal parts, and is not less
/// than `least_joules` squared.
#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
fn points_of(value: f64, side: &Side, spent: &Spent, least_joules: f64) -> Vec<Point> {
    let runs = side.runs_with_windows().max(1) as f64;
    let variance = (spent.sampling / 1e12 / runs).max(least_joules.powi(2));
    let energies: BTreeMap<usize, f64> = side.energies(spent, true).into_iter().collect();
    energies.into_values().map(|joules| Point { value, joules, variance }).collect()
}

/// Energy that a sample stands for, J.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
fn one_sample(side: &Side) -> f64 {
    side.total.energy.joules() / side.total.samples.max(1) as f64
}

#[cfg(test)]
mod tests;
