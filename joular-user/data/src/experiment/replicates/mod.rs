//! Sums up variants of a command that ran several times each.
//!
//! Each run is one replicate. A figure of a variant is the mean of its runs' own figures, as where whole
//! runs are compared ([`crate::report::diff::estimate`]): joules per unit of work are the mean of
//! each run's joules per unit. Runs vary in duration and work, and the mean of runs is the figure
//! whose variance they show. Its 95 % interval is Student's, with one degree of freedom less than
//! there are runs.
//!
//! [`outliers`] points at runs that differ from the others, [`drift`] at changes while the experiment ran,
//! and [`ranking`] says which variant needs the least and whether that is more than chance. [`precision`] says whether
//! there are runs enough.

mod drawing;
pub mod drift;
pub mod outliers;
pub mod precision;
pub mod ranking;
mod render;
#[cfg(test)]
mod simulation;
pub(in crate::experiment) mod stats;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::{
    drawing::drawing,
    drift::{Covariate, Drift},
    outliers::Outlier,
    precision::Precision,
    ranking::{Ranked, Ranking, Standing},
    stats::Stats,
};
use crate::{
    model::{domain::Label, target_text::TargetText},
    text::{count, escape},
};

/// What one measured run needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replicate {
    /// Place in the order of all measured runs of all variants, from 0.
    pub order: u32,
    pub joules: f64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Units of work that the run did, more than 0; `None` if nobody counted.
    pub work: Option<f64>,
    /// Mean temperature of the processor.
    pub temperature_celsius: Option<f64>,
    /// Mean frequency of its cores.
    pub frequency_mhz: Option<f64>,
}

/// A command in one of its forms, with its measured runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    pub name: String,
    pub replicates: Vec<Replicate>,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    Joules,
    Watts,
    Seconds,
    CpuSeconds,
    JoulesPerWork,
}

impl Figure {
    pub const ALL: [Self; 5] = [Self::Joules, Self::Watts, Self::Seconds, Self::CpuSeconds, Self::JoulesPerWork];

    /// As columns of CSV begin and JSON says.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Joules => "joules",
            Self::Watts => "watts",
            Self::Seconds => "seconds",
            Self::CpuSeconds => "cpu_seconds",
            Self::JoulesPerWork => "joules_per_work",
        }
    }

    pub const fn unit(self) -> &'static str {
        match self {
            Self::Joules => "J",
            Self::Watts => "W",
            Self::Seconds => "s",
            Self::CpuSeconds => "CPU-s",
            Self::JoulesPerWork => "J/unit",
        }
    }

    /// What it is, as titles begin.
    const fn title(self) -> &'static str {
        match self {
            Self::JoulesPerWork => "Energy per unit of work",
            Self::Joules => "Energy",
            Self::Watts => "Power",
            Self::Seconds => "Duration",
            Self::CpuSeconds => "CPU time",
        }
    }

    /// The figure of a run; `None` if it has none, such as watts of a run without a duration.
    pub fn of(self, run: &Replicate) -> Option<f64> {
        let value = match self {
            Self::Joules => run.joules,
            Self::Watts => run.joules / run.seconds,
            Self::Seconds => run.seconds,
            Self::CpuSeconds => run.cpu_seconds,
            Self::JoulesPerWork => run.joules / run.work.filter(|work| *work > 0.0)?,
        };
        value.is_finite().then_some(value)
    }

    /// The figure of each run; `None` if a run has none, or there is no run.
    fn of_all(self, runs: &[Replicate]) -> Option<Vec<f64>> {
        let values: Option<Vec<f64>> = runs.iter().map(|run| self.of(run)).collect();
        values.filter(|values| !values.is_empty())
    }
}

/// What an experiment showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// In the order in which they were given.
    pub variants: Vec<VariantSummary>,
    pub ranking: Ranking,
    /// Only what is significant: see [`drift`].
    pub drifts: Vec<Drift>,
    /// How the energy came about, if it is known: the weakest label of all runs.
    pub energy_label: Option<String>,
    /// If runs were to go on until intervals are narrow.
    pub precision: Option<Precision>,
}

impl Summary {
    /// The same with the label of its energy.
    #[must_use]
    pub fn labelled(self, label: Option<Label>) -> Self {
        Self { energy_label: label.map(|label| label.name().to_owned()), ..self }
    }

    /// How its energy came about, in words.
    fn label_line(&self) -> Option<String> {
        self.energy_label.as_ref().map(|label| format!("energy is {}", escape(label)))
    }

    /// The same with what its intervals were to be.
    #[must_use]
    pub fn with_precision(self, precision: Option<Precision>) -> Self {
        Self { precision, ..self }
    }
}

/// What a variant needed. A figure that not each of its runs has is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantSummary {
    pub name: TargetText,
    pub runs: usize,
    pub joules: Option<Stats>,
    pub watts: Option<Stats>,
    pub seconds: Option<Stats>,
    pub cpu_seconds: Option<Stats>,
    pub joules_per_work: Option<Stats>,
    /// Runs whose ranked figure differs from that of the variant's other runs.
    pub outliers: Vec<Outlier>,
}

impl VariantSummary {
    fn of(variant: &Variant, ranked: Figure) -> Self {
        let runs = &variant.replicates;
        let stats = |figure: Figure| figure.of_all(runs).map(|values| Stats::of(&values));
        Self {
            name: variant.name.as_str().into(),
            runs: runs.len(),
            joules: stats(Figure::Joules),
            watts: stats(Figure::Watts),
            seconds: stats(Figure::Seconds),
            cpu_seconds: stats(Figure::CpuSeconds),
            joules_per_work: stats(Figure::JoulesPerWork),
            outliers: outliers::of(runs, ranked),
        }
    }

    pub const fn stats(&self, figure: Figure) -> Option<&Stats> {
        match figure {
            Figure::Joules => self.joules.as_ref(),
            Figure::Watts => self.watts.as_ref(),
            Figure::Seconds => self.seconds.as_ref(),
            Figure::CpuSeconds => self.cpu_seconds.as_ref(),
            Figure::JoulesPerWork => self.joules_per_work.as_ref(),
        }
    }
}

/// How many runs each variant has: `1 run`, `2 to 3 runs`.
pub(in crate::experiment) fn runs_of_each(variants: &[VariantSummary]) -> String {
    let runs = || variants.iter().map(|variant| variant.runs);
    let (least, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
    if least == most { count(most, "run") } else { format!("{least} to {most} runs") }
}

/// What variants are ranked by: joules per unit of work where every run has work, else joules.
pub fn ranked_figure(variants: &[Variant]) -> Figure {
    let mut runs = variants.iter().flat_map(|variant| &variant.replicates).peekable();
    let has_work = runs.peek().is_some() && runs.all(|run| Figure::JoulesPerWork.of(run).is_some());
    if has_work { Figure::JoulesPerWork } else { Figure::Joules }
}

/// Sums variants up and ranks them by [`ranked_figure`].
pub fn summarize(variants: &[Variant]) -> Summary {
    summarize_by(variants, ranked_figure(variants))
}

/// Sums variants up and ranks them by a figure, of which less is better.
pub fn summarize_by(variants: &[Variant], figure: Figure) -> Summary {
    let summaries: Vec<VariantSummary> = variants.iter().map(|variant| VariantSummary::of(variant, figure)).collect();
    Summary {
        ranking: Ranking::of(&summaries, figure),
        drifts: drift::of(variants, figure),
        variants: summaries,
        energy_label: None,
        precision: None,
    }
}
