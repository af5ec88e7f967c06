//! Compares what a place and a database have of each run, to the microjoule, and the tables of a database with each other.

use std::{
    io::{self, Write},
    sync::Arc,
};

use serde::Serialize;

use super::{
    LoadError, Warehouse,
    batch::MOST_BUNDLES,
    bundle,
    listing::{self, GroupHour, Listed},
    warehouse::Database,
};
use crate::{
    dataset::{
        clickhouse::{Amount, RunFigures},
        store::Store,
    },
    model::units::UnixMicros,
    text::{count, escape},
};

/// A run that the database has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    pub run: String,
    /// What differs, in words.
    pub what: String,
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub runs: u64,
    /// Of these runs in the place.
    pub measured_uj: i64,
    pub differing: Vec<Differing>,
    /// Hours whose sums by hour are not those of their windows.
    pub hours: Vec<String>,
    /// Bundles that could not be read.
    pub unreadable: Vec<String>,
}

/// Compares the runs of hours that end after `since`.
///
/// # Errors
/// If the place or the database cannot be used.
pub fn check(
    store: &Arc<dyn Store>,
    warehouse: &dyn Warehouse,
    database: &str,
    since: Option<UnixMicros>,
) -> Result<Checked, LoadError> {
    let database = Database { warehouse, name: database };
    database.check_schema()?;
    let mut checked = Checked::default();
    let mut first: Option<i64> = None;
    for (group, bundles) in listing::groups(store, since)? {
        for part in bundles.chunks(MOST_BUNDLES) {
            let runs = read(store, &group, part, &mut checked)?;
            let starts = runs.iter().filter_map(|run| run.span).map(|(start, _)| start.0 / 1_000_000);
            first = first.into_iter().chain(starts).min();
            compare(&database, &runs, &mut checked)?;
        }
    }
    if let Some(first) = first {
        let hour = |(start, [methods, hourly, windows, paths]): (String, [i64; 4])| {
            format!(
                "{start}: methods have {methods} µJ and methods_hourly {hourly} µJ, windows {windows} µJ and paths_hourly \
                 {paths} µJ"
            )
        };
        checked.hours = database.differing_hours(first - first.rem_euclid(3600))?.into_iter().map(hour).collect();
    }
    Ok(checked)
}

fn read(
    store: &Arc<dyn Store>,
    group: &GroupHour,
    bundles: &[Listed],
    checked: &mut Checked,
) -> Result<Vec<RunFigures>, LoadError> {
    let mut runs = Vec::new();
    for listed in bundles {
        match bundle(store, group, &listed.name) {
            Ok(bundle) => runs.push(bundle.figures),
            Err(error) if error.file().is_some() => checked.unreadable.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(runs)
}

fn compare(database: &Database<'_>, runs: &[RunFigures], checked: &mut Checked) -> Result<(), LoadError> {
    if runs.is_empty() {
        return Ok(());
    }
    let found = database.figures(runs)?;
    for run in runs {
        checked.runs += 1;
        checked.measured_uj = checked.measured_uj.saturating_add(run.windows.energy_uj);
        if let Some(what) = difference(run, found.get(&run.run_id)) {
            checked.differing.push(Differing { run: run.run_id.clone(), what });
        }
    }
    Ok(())
}

/// What a database has otherwise of a run, in words; `None` if it has it whole.
pub(super) fn difference(run: &RunFigures, found: Option<&RunFigures>) -> Option<String> {
    let Some(found) = found else { return Some("it is not there".to_owned()) };
    let of = |rows: u64| Amount { rows, energy_uj: 0 };
    let tables = [
        ("runs", of(run.runs), of(found.runs)),
        ("processes", of(run.processes), of(found.processes)),
        ("windows", run.windows, found.windows),
        ("methods", run.methods, found.methods),
    ];
    let differing = tables.into_iter().filter(|(_, wanted, found)| wanted != found);
    let words: Vec<String> = differing
        .map(|(table, wanted, found)| match wanted.energy_uj == found.energy_uj {
            true => format!("{table} has {}, not {}", count(found.rows, "row"), wanted.rows),
            false => format!(
                "{table} has {} of {} µJ, not {} of {} µJ",
                count(found.rows, "row"),
                found.energy_uj,
                wanted.rows,
                wanted.energy_uj
            ),
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

impl Checked {
    /// Whether place and database have the same.
    pub fn is_well(&self) -> bool {
        self.differing.is_empty() && self.hours.is_empty() && self.unreadable.is_empty()
    }

    /// Writes it as text, a line for each run that differs, or as one JSON object.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, is_json: bool, out: &mut impl Write) -> io::Result<()> {
        if is_json {
            return writeln!(out, "{}", serde_json::to_string(self)?);
        }
        for Differing { run, what } in &self.differing {
            writeln!(out, "run {}: {what}", escape(run))?;
        }
        for hour in &self.hours {
            writeln!(out, "hour {hour}")?;
        }
        for problem in &self.unreadable {
            writeln!(out, "{}", escape(problem))?;
        }
        writeln!(
            out,
            "{} of {} µJ compared: {}",
            count(self.runs, "run"),
            self.measured_uj,
            match self.differing.len() {
                _ if self.is_well() => "place and database have the same".to_owned(),
                0 => "the runs are there, but see above".to_owned(),
                differing => format!("{} between them", count(differing as u64, "difference")),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunFigures {
        let amount = |rows, energy_uj| Amount { rows, energy_uj };
        RunFigures {
            run_id: "a\u{1b}".to_owned(),
            runs: 1,
            processes: 2,
            windows: amount(3, 40),
            methods: amount(5, 30),
            ..RunFigures::default()
        }
    }

    #[test]
    fn whatever_a_database_has_otherwise_is_named() {
        let run = run();
        assert_eq!(difference(&run, Some(&run)), None);
        assert_eq!(difference(&run, None).unwrap(), "it is not there");
        let less = RunFigures { methods: Amount { rows: 4, energy_uj: 29 }, processes: 1, ..run.clone() };
        assert_eq!(
            difference(&run, Some(&less)).unwrap(),
            "processes has 1 row, not 2; methods has 4 rows of 29 µJ, not 5 of 30 µJ"
        );
    }

    #[test]
    fn the_last_line_says_how_many_differ() {
        let said = |checked: &Checked| {
            let mut out = Vec::new();
            checked.say(false, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let mut checked = Checked { runs: 2, measured_uj: 7, ..Checked::default() };
        assert_eq!(said(&checked), "2 runs of 7 µJ compared: place and database have the same\n");
        assert!(checked.is_well());
        checked.differing.push(Differing { run: run().run_id, what: "it is not there".to_owned() });
        let text = said(&checked);
        assert_eq!(text, "run a\\x1b: it is not there\n2 runs of 7 µJ compared: 1 difference between them\n");
        assert!(!checked.is_well());
    }
}
