//! Writes a comparison for people and programs.

mod json;
mod junit;
mod page;
mod summary;
mod tables;
mod text;

use std::{io, io::Write};

use super::{Choices, Compared, Comparison, Format, Measure, Per, Side, Unit, sessions::Sessions};
use crate::{
    dataset::error::DataSetError,
    model::target_text::TargetText,
    report::{
        html::Markup,
        profile::{App, Filter},
    },
    text::{
        count, figures, share,
        signature::{Method, told_apart},
    },
};

impl Comparison {
    /// Writes it in the format of the choices, as text as wide as the terminal if there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, choices: &Choices, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let text = match choices.format {
            Format::Text => text::text(self, choices, width),
            Format::Json => json::text(self, choices)?,
            Format::Csv => tables::csv(self, choices),
            Format::Markdown => summary::markdown(self, choices),
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// The comparison as an object of JSON, with the keys that [`Self::write`] writes.
    ///
    /// # Errors
    /// If it cannot be one, which does not happen.
    pub fn value(&self, choices: &Choices) -> io::Result<serde_json::Value> {
        json::value(self, choices)
    }

    fn shown(&self, choices: &Choices) -> &[Compared] {
        let top = choices.top.unwrap_or(self.rows.len());
        self.rows.get(..top).unwrap_or(&self.rows)
    }

    /// The comparison as JUnit XML, for the list of tests that a CI system shows.
    pub fn junit(&self, choices: &Choices) -> String {
        junit::text(self, choices)
    }

    /// The comparison as a page, with flame graphs of both sides: of the parts that were compared.
    ///
    /// # Errors
    /// If a data set cannot be read again.
    pub fn page(&self, choices: &Choices, filter: &Filter, app: Option<&App>) -> Result<Vec<u8>, DataSetError> {
        page::page(self, choices, [filter; 2], app, &Markup::default())
    }

    /// The page of [`super::run_parts`], with what a server puts before it.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub fn served_page(
        &self,
        choices: &Choices,
        filters: [&Filter; 2],
        app: Option<&App>,
        before: &Markup,
    ) -> Result<Vec<u8>, DataSetError> {
        page::page(self, choices, filters, app, before)
    }

    fn shown_phases(&self, choices: &Choices) -> &[Compared] {
        let top = choices.top.unwrap_or(self.phases.len());
        self.phases.get(..top).unwrap_or(&self.phases)
    }

    /// The unit of phases, and the factor for it.
    fn unit_of_phases(&self, choices: &Choices) -> (String, f64) {
        let largest = self.phases.iter().map(|row| row.change.a.max(row.change.b)).fold(0.0, f64::max);
        sized(&choices.unit_of_phases(), choices.measure, largest)
    }

    /// Names of the rows, in their order, with signatures where rows have the same name.
    fn names(&self) -> Vec<TargetText> {
        let keys = self.rows.iter().map(|row| &row.key);
        let methods = keys.map(|key| Method::new(&key.name, key.signature.as_ref(), None));
        told_apart(&methods.collect::<Vec<_>>())
    }

    /// What intervals rest on.
    fn basis(&self) -> String {
        if self.total.change.interval.is_none() {
            "no intervals, see the warning".to_owned()
        } else {
            let rest = if self.sessions.are_left_out() { ", without what differs between sessions" } else { "" };
            let (a, b) = (&self.a, &self.b);
            if let Some([a, b]) = self.times {
                return format!("95 % intervals from {a} and {b} times in which requests were counted{rest}");
            }
            match (self.sessions, self.of_runs) {
                (Sessions::Known(_), _) => {
                    format!("95 % intervals from {} and {} runs", a.counted(), b.runs_with_windows())
                }
                (_, true) => {
                    format!("95 % intervals from {} and {} runs{rest}", a.runs_with_windows(), b.runs_with_windows())
                }
                (_, false) => format!("95 % intervals from {} and {} windows{rest}", a.window_count, b.window_count),
            }
        }
    }
}

impl Side {
    /// What it has of the measure.
    fn amount(&self, measure: Measure) -> String {
        let amount = self.total.energy;
        let title = || measure.title().to_lowercase();
        match measure.unit() {
            Unit::MicroJoules => format!("{} J", figures::figure(amount.joules(), self.overview.label)),
            Unit::Bytes => format!("{:.1} MB of {}", amount.joules(), title()),
            Unit::Count => format!("{}, {}", title(), amount.0),
        }
    }

    /// `30 runs`, or `3 sessions with 30 runs`.
    fn counted(&self) -> String {
        let runs = count(self.runs_with_windows(), "run");
        match self.sessions_with_windows() {
            0 | 1 => runs,
            sessions => format!("{sessions} sessions with {runs}"),
        }
    }

    /// `, 40.1 % by samples of other windows, 3.0 % of garbage collectors`, if there is such energy.
    fn moved(&self) -> String {
        let parts = [
            (self.total.inferred, "by samples of other windows"),
            (self.overview.gc_charged, "of garbage collectors, at paths that allocated"),
        ];
        let said = parts.iter().filter(|(energy, _)| energy.0 > 0);
        said.map(|(energy, what)| format!(", {:.1} % {what}", share(*energy, self.total.energy))).collect()
    }
}

impl Choices {
    /// What figures are, in words: `Energy of a run`.
    fn figure(&self) -> String {
        let per = match self.per {
            Per::Time => "per second of recorded time",
            Per::Cpu => "per CPU second",
            Per::Run => "of a run",
            Per::Nothing => "of all runs",
            Per::Work { .. } => "per unit of work",
            Per::Request { .. } => "per request",
        };
        format!("{} {per}", self.measure.title())
    }
}

/// A unit that makes the figures of a table readable, and the factor for it.
fn sized(unit: &str, measure: Measure, largest: f64) -> (String, f64) {
    let (prefix, factor) = match (measure.unit(), largest) {
        (Unit::MicroJoules, size) if size >= 1.0 || size <= 0.0 => ("", 1.0),
        (Unit::MicroJoules, size) if size >= 1e-3 => ("m", 1e3),
        (Unit::MicroJoules, _) => ("µ", 1e6),
        (Unit::Bytes, size) if size >= 1e9 => ("G", 1e-9),
        (Unit::Bytes, size) if size >= 1e6 => ("M", 1e-6),
        (Unit::Bytes, size) if size >= 1e3 => ("k", 1e-3),
        (Unit::Bytes | Unit::Count, _) => ("", 1.0),
    };
    (format!("{prefix}{unit}"), factor)
}

/// A ratio in percent with its sign.
fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "new".to_owned(), |ratio| format!("{:+.1}", ratio * 100.0))
}

/// An interval of ratios in percent, with a question mark for an open end.
fn percents(interval: Option<(f64, f64)>) -> String {
    interval.map_or_else(|| "?".to_owned(), |(low, high)| format!("{:+.1} … {:+.1}", low * 100.0, high * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_in_a_unit_that_fits_them() {
        let energy = |unit, size| sized(unit, Measure::Energy, size);
        assert_eq!(energy("W", 12.0), ("W".to_owned(), 1.0));
        assert_eq!(energy("J/unit", 0.012), ("mJ/unit".to_owned(), 1e3));
        assert_eq!(energy("J/unit", 3e-5), ("µJ/unit".to_owned(), 1e6));
        assert_eq!(energy("W", 0.0).0, "W");
        assert_eq!(sized("B/s", Measure::Allocated, 2.5e7), ("MB/s".to_owned(), 1e-6));
        assert_eq!(sized("B/s", Measure::Allocated, 0.0), ("B/s".to_owned(), 1.0));
        assert_eq!((percent(Some(0.051)), percent(None)), ("+5.1".to_owned(), "new".to_owned()));
        assert_eq!((percents(Some((-0.01, 0.1))), percents(None)), ("-1.0 … +10.0".to_owned(), "?".to_owned()));
    }
}
