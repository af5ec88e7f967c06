//! Writes watts per CPU second in the formats of reports.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Row, WattsTable, WattsTables};
use crate::{
    report::Format,
    text::{
        csv, harmless_json,
        table::{Column, Table},
    },
};

/// Below this, probabilities are not told apart.
const LEAST_PROBABILITY: f64 = 0.001;

impl WattsTables {
    /// Writes them, as text as wide as the terminal if there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let text = match self.format {
            Format::Json => {
                let tables: Vec<Value> = self.tables.iter().map(WattsTable::json).collect();
                harmless_json(&serde_json::to_string_pretty(&tables).map_err(io::Error::from)?) + "\n"
            }
            Format::Csv => self.tables.iter().map(WattsTable::csv).collect(),
            Format::Markdown => self.paragraphs(|table| table.sentences().join(" "), |table| table.markdown(true)),
            Format::Text => self.paragraphs(|table| table.sentences().join("\n"), |table| table.text(width)),
        };
        out.write_all(text.as_bytes())
    }

    fn paragraphs(&self, said: impl Fn(&WattsTable) -> String, table: impl Fn(&Table) -> String) -> String {
        let tables = self.tables.iter().map(|of| format!("{}\n\n{}", said(of), table(&of.table())));
        tables.collect::<Vec<_>>().join("\n")
    }
}

impl WattsTable {
    fn sentences(&self) -> Vec<String> {
        let p = match self.equal {
            p if p < LEAST_PROBABILITY => format!("p < {LEAST_PROBABILITY}"),
            p => format!("p = {p:.3}"),
        };
        let verdict = match self.differs() {
            true => format!("The groups draw different power ({p})."),
            false => format!("These windows do not show that the groups draw different power ({p})."),
        };
        let left_out = match self.quality.windows_left_out {
            0 => String::new(),
            left_out => format!(", {left_out} without a good reading left out"),
        };
        let mut said = vec![
            format!("{:.2} W per CPU second on average, from {} windows{left_out}.", self.mean, self.windows),
            verdict,
        ];
        if !self.quality.has_idle_apart {
            said.push(
                "Idle power is not set apart, so watts contain it: give --idle-watts, or calibrate the machine."
                    .to_owned(),
            );
        }
        if self.quality.runs_left_out > 0 {
            said.push(format!("Runs without measured energy are left out: {}.", self.quality.runs_left_out));
        }
        if self.summed > 0 {
            let groups = if self.summed == 1 { "group" } else { "groups" };
            said.push(format!("[everything else] contains {} smaller {groups} of the selection.", self.summed));
        }
        if self.rows.iter().any(|row| !row.is_told) {
            said.push(
                "Groups marked ? seldom run without the others, or too little: these windows say little of them."
                    .to_owned(),
            );
        }
        said
    }

    fn table(&self) -> Table {
        let rows = || self.rows.iter();
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let columns = vec![
            Column::figures("CPU s", rows(), |row| format!("{:.2}", row.cpu_s)).expendable(2),
            Column::figures("W/CPU s", rows(), |row| {
                format!("{:.2}{}", row.watts.value, if row.is_told { "" } else { "?" })
            }),
            Column::figures("95 %", rows(), |row| format!("{:.2}–{:.2}", row.watts.low, row.watts.high)).expendable(1),
            Column::figures("× MEAN", rows(), |row| format!("{:.2}", row.watts.value / self.mean)).expendable(3),
            Column::figures("% BY TIME", rows(), |row| percent(row.by_time)).expendable(5),
            Column::figures("% BY WATTS", rows(), |row| percent(row.by_watts)).expendable(4),
        ];
        let names = rows().map(|row| row.name.clone()).collect();
        Table { columns, heading: self.by.name().to_uppercase(), names }
    }

    fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "name": row.name,
                "cpu_s": row.cpu_s,
                "watts": row.watts.value,
                "low_watts": row.watts.low,
                "high_watts": row.watts.high,
                "is_told": row.is_told,
                "part_by_time": row.by_time,
                "part_by_watts": row.by_watts,
            })
        };
        json!({
            "by": self.by.name(),
            "mean_watts": self.mean,
            "probability_of_equal_watts": self.equal,
            "differs": self.differs(),
            "windows": self.windows,
            "windows_left_out": self.quality.windows_left_out,
            "runs_left_out": self.quality.runs_left_out,
            "is_idle_set_apart": self.quality.has_idle_apart,
            "groups_summed": self.summed,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> String {
        let heading =
            [self.by.name(), "cpu_s", "watts", "low_watts", "high_watts", "is_told", "part_by_time", "part_by_watts"];
        let row = |row: &Row| {
            let figures =
                [row.cpu_s, row.watts.value, row.watts.low, row.watts.high].map(|value| csv::figure(Some(value)));
            let parts = [row.by_time, row.by_watts].map(|value| csv::figure(Some(value)));
            let name = [csv::name(row.name.raw())];
            csv::line(name.into_iter().chain(figures).chain([row.is_told.to_string()]).chain(parts))
        };
        let lines = self.rows.iter().map(row);
        [csv::line(heading.map(str::to_owned))].into_iter().chain(lines).collect()
    }
}
