//! Makes the line that every picture says of itself: how much energy or how many bytes it shows, how that came about,
//! and of which runs.

use super::{
    measure::Measure,
    profile::{Profile, ReadFrom},
};
use crate::{
    model::{domain::Label, units::MicroJoules},
    text::{self, figures},
};

/// A selection's energy, and its share of the energy of all targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    pub energy: MicroJoules,
    pub duration_ns: u64,
    /// Part of it that is inferred from samples of other windows.
    pub inferred: MicroJoules,
    /// Part of it that is garbage collectors', at the paths that allocated.
    pub gc_charged: MicroJoules,
    pub label: Option<Label>,
    /// Readings of energy counters that were not certain.
    pub ambiguous: u64,
    /// Whether fitted watts weigh CPU time.
    pub is_fitted: bool,
    /// Ids of the runs.
    pub runs: Vec<String>,
    /// How many runs cannot be read, if any.
    pub skipped: Option<String>,
    /// What it was read from, if that has to be said.
    pub read_from: Option<String>,
}

impl Headline {
    pub fn of(profile: &Profile) -> Self {
        Self {
            energy: profile.energy(),
            duration_ns: profile.overview.duration_ns,
            inferred: profile.overview.inferred,
            gc_charged: profile.overview.gc_charged,
            label: profile.overview.label,
            ambiguous: profile.overview.ambiguous,
            is_fitted: !profile.overview.watts_by.is_empty(),
            runs: profile.catalog.runs.iter().map(|run| run.info.run_id.clone()).collect(),
            skipped: profile.overview.skipped.count(),
            read_from: read_from(profile),
        }
    }

    /// `12.345678 J (measured) in 60.0 s, 0.21 W · run node-1-…`; an estimate without digits that it does
    /// not have.
    pub fn text(&self) -> String {
        let label = self.label.map_or("no energy source", Label::words);
        let doubt = match self.ambiguous {
            0 => String::new(),
            readings => format!(", {} ambiguous", text::count(readings, "reading")),
        };
        let fitted = if self.is_fitted { ", divided by fitted watts" } else { "" };
        let watts = text::watts(self.energy, self.duration_ns);
        let joules = match self.label {
            Some(label) if label.is_estimate() => figures::figure(self.energy.joules(), self.label),
            _ => text::exact_joules(self.energy),
        };
        let seconds = text::seconds(self.duration_ns);
        let runs = runs(&self.runs);
        let inferred = match self.inferred.0 {
            0 => String::new(),
            _ => format!(", {:.1} % by samples of other windows", text::share(self.inferred, self.energy)),
        };
        let charged = match self.gc_charged.0 {
            0 => String::new(),
            _ => format!(", {:.1} % of garbage collectors", text::share(self.gc_charged, self.energy)),
        };
        let skipped = without(self.skipped.as_deref());
        let read_from = with_source(self.read_from.as_deref());
        format!(
            "{joules} J ({label}{doubt}{fitted}) in {seconds:.1} s, {watts:.2} W{inferred}{charged} · \
             {runs}{skipped}{read_from}"
        )
    }
}

/// Of a measure that is not energy: `12345.678 MB allocated in 60.0 s, 205.76 MB/s, by 8345 samples · run node-1-…`
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub fn of_measure(profile: &Profile, measure: Measure) -> String {
    let (mut amount, mut samples) = (0_u64, 0_u64);
    for fact in profile.facts(measure) {
        amount = amount.saturating_add(fact.amount);
        samples = samples.saturating_add(fact.sampled.samples);
    }
    let seconds = text::seconds(profile.overview.duration_ns);
    let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let megabytes = amount as f64 / 1e6;
    let (what, rate) = match measure {
        Measure::Allocated => (format!("{megabytes:.3} MB allocated"), format!("{:.2} MB/s", rate(megabytes))),
        Measure::Moved(way) => (format!("{megabytes:.3} MB {}", way.words()), format!("{:.2} MB/s", rate(megabytes))),
        measure => (format!("{amount} {}", measure.name()), format!("{:.2}/s", rate(amount as f64))),
    };
    let ids: Vec<String> = profile.catalog.runs.iter().map(|run| run.info.run_id.clone()).collect();
    let skipped = without(profile.overview.skipped.count().as_deref());
    let read_from = with_source(read_from(profile).as_deref());
    let samples = text::count(samples, "sample");
    format!("{what} in {seconds:.1} s, {rate}, by {samples} · {}{skipped}{read_from}", runs(&ids))
}

fn read_from(profile: &Profile) -> Option<String> {
    profile.overview.read_from.as_ref().and_then(ReadFrom::text)
}

fn with_source(read_from: Option<&str>) -> String {
    read_from.map(|text| format!(" · {text}")).unwrap_or_default()
}

fn without(skipped: Option<&str>) -> String {
    skipped.map(|count| format!(", without {count} that cannot be read")).unwrap_or_default()
}

fn runs(ids: &[String]) -> String {
    match ids {
        [run] => format!("run {}", text::escape(run)),
        runs => format!("{} runs", runs.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_has_three_digits_and_a_counter_all() {
        let text = |label| {
            let energy = MicroJoules(12_345_678);
            Headline {
                energy,
                duration_ns: 60_000_000_000,
                label,
                ambiguous: 0,
                is_fitted: false,
                inferred: MicroJoules(0),
                gc_charged: MicroJoules(0),
                skipped: None,
                read_from: None,
                runs: Vec::new(),
            }
            .text()
        };
        assert!(text(Some(Label::Measured)).starts_with("12.345678 J (measured) in 60.0 s"));
        assert!(text(Some(Label::Modelled)).starts_with("12.3 J (modelled) in"));
        assert!(text(Some(Label::ModelledByProcessor)).starts_with("12.3 J (modelled by the processor) in"));
    }
}
