//! Makes the line that every picture says of itself: how much energy it shows, how that came about,
//! and of which runs.

use super::profile::Profile;
use crate::{
    model::{domain::Label, units::MicroJoules},
    text,
};

/// A selection's energy, and its share of the energy of all targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    pub energy: MicroJoules,
    pub duration_ns: u64,
    pub label: Option<Label>,
    /// Readings of energy counters that were not certain.
    pub ambiguous: u64,
    /// Ids of the runs.
    pub runs: Vec<String>,
}

impl Headline {
    pub fn of(profile: &Profile) -> Self {
        Self {
            energy: profile.energy(),
            duration_ns: profile.overview.duration_ns,
            label: profile.overview.label,
            ambiguous: profile.overview.ambiguous,
            runs: profile.catalog.runs.iter().map(|run| run.info.run_id.clone()).collect(),
        }
    }

    /// `12.345678 J (measured) in 60.0 s, 0.21 W · run node-1-…`
    pub fn text(&self) -> String {
        let label = self.label.map_or("no energy source", Label::name);
        let doubt = match self.ambiguous {
            0 => String::new(),
            1 => ", 1 reading ambiguous".to_owned(),
            count => format!(", {count} readings ambiguous"),
        };
        let (joules, watts) = (text::exact_joules(self.energy), text::watts(self.energy, self.duration_ns));
        let seconds = text::seconds(self.duration_ns);
        let runs = match &self.runs[..] {
            [run] => format!("run {}", text::escape(run)),
            runs => format!("{} runs", runs.len()),
        };
        format!("{joules} J ({label}{doubt}) in {seconds:.1} s, {watts:.2} W · {runs}")
    }
}
