//! Writes joules per request: a table for people, JSON, CSV and Markdown.

use std::io::{self, Write};

use super::{PerRequest, PerRoute, Route};
use crate::{
    model::units::MicroJoules,
    report::Format,
    text::{
        csv,
        figures::{self, Places},
        harmless_json, share,
        table::{Column, Table},
    },
};

impl PerRoute {
    /// Writes them, as text as wide as the terminal if there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let text = match self.format {
            Format::Text => self.notes().into_iter().fold(self.table().text(width), |said, note| said + &note + "\n"),
            Format::Json => harmless_json(&(serde_json::to_string_pretty(self)? + "\n")),
            Format::Csv => self.csv(),
            Format::Markdown => {
                let notes = self.notes().into_iter().map(|note| format!("\n{}\n", note.replace('|', "\\|")));
                self.table().markdown(true) + &notes.collect::<String>()
            }
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn table(&self) -> Table {
        let rows = || self.routes.iter();
        let direct = |row: &Route| row.needs.map(|needs| needs.direct);
        let loaded = |row: &Route| row.needs.map(|needs| needs.loaded);
        let joules = |row: &Route| figures::figure(MicroJoules(row.energy_uj).joules(), self.label);
        Table {
            columns: vec![
                Column::figures("mJ/request", rows(), |row| cell(direct(row))),
                Column::figures("95 % FROM–TO", rows(), |row| interval(direct(row))).expendable(2),
                Column::figures("mJ loaded", rows(), |row| cell(loaded(row))).expendable(1),
                Column::figures("95 % FROM–TO", rows(), |row| interval(loaded(row))).expendable(3),
                Column::figures("requests", rows(), |row| row.requests.to_string()).expendable(4),
                Column::figures("J", rows(), joules).expendable(5),
                Column::figures("samples", rows(), |row| row.samples.to_string()).expendable(6),
            ],
            heading: "route".to_owned(),
            names: rows().map(|row| row.route.clone()).collect(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let missing = self.routes.iter().filter_map(|row| Some(format!("{}: {}", row.route, row.why_not.as_ref()?)));
        let [none, other] = [self.no_handler_uj, self.other_handlers_uj]
            .map(|part| share(MicroJoules(part), MicroJoules(self.processes_uj)));
        let whole = figures::figure(MicroJoules(self.processes_uj).joules(), self.label);
        let shared = (self.processes_uj > 0).then(|| {
            format!(
                "Of {whole} J of processes that have handlers, {none:.1} % is of no handler, which loaded figures share out, and \
                 {other:.1} % is of handlers of no route here"
            )
        });
        missing
            .chain(self.coverage.notes())
            .chain(shared)
            .chain(self.label.map(|label| format!("Energy is {}", label.words())))
            .collect()
    }

    fn csv(&self) -> String {
        let mut said = csv::line(
            [
                "route",
                "requests",
                "joules_per_request",
                "joules_per_request_low",
                "joules_per_request_high",
                "loaded_joules_per_request",
                "loaded_joules_per_request_low",
                "loaded_joules_per_request_high",
                "energy_uj",
                "samples",
                "why_not",
                "energy_label",
            ]
            .map(String::from),
        );
        for row in &self.routes {
            let figures = [row.needs.map(|needs| needs.direct), row.needs.map(|needs| needs.loaded)];
            let [direct, loaded] =
                figures.map(|of| [of.map(|of| of.joules), of.map(|of| of.low), of.map(|of| of.high)].map(csv::figure));
            let mut cells = vec![csv::name(row.route.raw()), row.requests.to_string()];
            cells.extend(direct.into_iter().chain(loaded));
            cells.extend([row.energy_uj.to_string(), row.samples.to_string()]);
            cells.extend([row.why_not.clone().unwrap_or_default(), self.energy_label.unwrap_or_default().to_owned()]);
            said.push_str(&csv::line(cells));
        }
        said
    }
}

/// Where a figure ends that may be off by half its interval, in mJ.
fn places(of: PerRequest) -> Places {
    Places::derived(of.joules * 1e3, (of.high - of.low) / 2.0 * 1e3)
}

fn cell(of: Option<PerRequest>) -> String {
    of.map_or_else(|| "-".to_owned(), |of| places(of).write(of.joules * 1e3))
}

fn interval(of: Option<PerRequest>) -> String {
    of.map_or_else(String::new, |of| format!("{}–{}", places(of).write(of.low * 1e3), places(of).write(of.high * 1e3)))
}
