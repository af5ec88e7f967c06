//! Writes joules per operation: a table for people, JSON, CSV and Markdown.

use std::io::{self, Write};

use super::{BenchmarkRow, Benchmarks, Operation};
use crate::{
    experiment::{cells::sized, replicates::stats::Stats},
    model::target_text::TargetText,
    report::Format,
    text::{
        csv, escape, harmless_json,
        table::{Column, Table},
    },
};

/// A mode is a word like `thrpt`, but a file may say anything, and cells of words are plain text in Markdown.
const MARKUP: [char; 9] = ['|', '`', '<', '>', '&', '[', ']', '*', '_'];

/// What is shown of a benchmark.
struct Cells {
    joules: String,
    interval: String,
    watts: String,
    rate: String,
    vm: String,
}

impl Benchmarks {
    /// Writes them in a format, as text as wide as the terminal if there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, format: Format, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let text = match format {
            Format::Text => self.text(width),
            Format::Json => harmless_json(&(serde_json::to_string_pretty(self)? + "\n")),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(),
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn text(&self, width: Option<usize>) -> String {
        self.notes().into_iter().fold(self.table().text(width), |said, note| said + &note + "\n")
    }

    fn markdown(&self) -> String {
        let notes = self.notes().into_iter().map(|note| format!("\n{}\n", note.replace('|', "\\|")));
        self.table().markdown(true) + &notes.collect::<String>()
    }

    fn table(&self) -> Table {
        let rows = || self.rows.iter();
        let cells: Vec<Cells> = rows().map(cells).collect();
        let figures = |heading, cell: fn(&Cells) -> &String| Column::figures(heading, &cells, |row| cell(row).clone());
        Table {
            columns: vec![
                figures("J/op", |cells| &cells.joules),
                figures("95 % FROM–TO", |cells| &cells.interval).expendable(2),
                figures("W", |cells| &cells.watts).expendable(5),
                figures("ops/s", |cells| &cells.rate).expendable(3),
                figures("VM %", |cells| &cells.vm).expendable(4),
                Column::figures("forks", rows(), |row| row.forks.to_string()).expendable(6),
                Column::words("mode", rows(), |row| row.mode.to_string().replace(MARKUP, "?")).expendable(1),
            ],
            heading: "benchmark".to_owned(),
            names: rows().map(BenchmarkRow::name).collect(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let missing = self.rows.iter().filter_map(|row| Some(format!("{}: {}", row.name(), row.why_not.as_ref()?)));
        let single = self.rows.iter().any(|row| row.operation.as_ref().is_some_and(|found| found.joules.n == 1));
        let single = single.then(|| "one fork has no interval: use -f 5 or more".to_owned());
        let label = self.energy_label.as_ref().map(|label| format!("energy is {}", escape(label)));
        missing.chain(single).chain(label).collect()
    }

    fn csv(&self) -> String {
        let names = [
            "benchmark",
            "parameters",
            "mode",
            "forks",
            "joules_per_op",
            "joules_per_op_low",
            "joules_per_op_high",
            "watts",
            "ops_per_second",
            "vm_share",
            "measured_s",
            "why_not",
            "energy_label",
        ];
        let mut said = csv::line(names.map(String::from));
        for row in &self.rows {
            let found = row.operation.as_ref();
            let interval = found.and_then(|found| found.joules.interval);
            said.push_str(&csv::line([
                csv::name(row.benchmark.raw()),
                csv::name(row.parameters.raw()),
                csv::name(row.mode.raw()),
                row.forks.to_string(),
                csv::figure(found.map(|found| found.joules.mean)),
                csv::figure(interval.map(|(low, _)| low)),
                csv::figure(interval.map(|(_, high)| high)),
                csv::figure(found.map(|found| found.watts.mean)),
                csv::figure(found.map(|found| found.rate.mean)),
                csv::figure(found.map(|found| found.vm_share)),
                csv::figure(found.map(|found| found.measured_s)),
                row.why_not.clone().unwrap_or_default(),
                self.energy_label.as_deref().map_or_else(String::new, escape),
            ]));
        }
        said
    }
}

impl BenchmarkRow {
    /// `acme.Sums.sum (n=1000)`
    fn name(&self) -> TargetText {
        let (name, parameters) = (self.benchmark.raw(), self.parameters.raw());
        if parameters.is_empty() { self.benchmark.clone() } else { format!("{name} ({parameters})").into() }
    }
}

fn cells(row: &BenchmarkRow) -> Cells {
    let Some(Operation { joules, watts, rate, vm_share, .. }) = &row.operation else {
        let none = || "–".to_owned();
        return Cells { joules: none(), interval: none(), watts: none(), rate: none(), vm: none() };
    };
    let (prefix, factor) = sized(joules.mean);
    Cells {
        joules: format!("{} {prefix}J", digits(joules.mean * factor)),
        interval: interval(joules, factor),
        watts: digits(watts.mean),
        rate: digits(rate.mean),
        vm: format!("{:.1}", 100.0 * vm_share),
    }
}

/// In the unit of the mean. No figure is below nothing.
fn interval(stats: &Stats, factor: f64) -> String {
    let shown = |(low, high): (f64, f64)| format!("{}–{}", digits(low.max(0.0) * factor), digits(high * factor));
    stats.interval.map_or_else(|| "–".to_owned(), shown)
}

/// Three significant digits, and no fraction from 100 on.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
