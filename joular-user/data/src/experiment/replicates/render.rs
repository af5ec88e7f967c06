//! Writes what an experiment showed: a table for people, JSON, CSV, and Markdown as hyperfine has it.

use std::io::{self, Write};

use super::{Figure, Precision, Ranked, Stats, Summary, runs_of_each};
use crate::{
    experiment::cells::{sized, text_name},
    report::Format,
    text::{
        csv, harmless_json, latex,
        table::{Column, Table, code},
    },
};

impl Summary {
    /// Writes it in a format, as text as wide as the terminal if there is one.
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

    /// What a variant's comparison with the best one says, in the order of the ranking, and its figures.
    fn ranked(&self) -> impl Iterator<Item = (&Ranked, &Stats)> {
        let stats = |row: &Ranked| self.variants.get(row.variant)?.stats(self.ranking.figure);
        self.ranking.rows.iter().filter_map(move |row| Some((row, stats(row)?)))
    }

    fn unit(&self) -> (String, f64) {
        let largest = self.ranking.rows.iter().map(|row| row.mean).fold(0.0, f64::max);
        let (prefix, factor) = sized(largest);
        (format!("{prefix}{}", self.ranking.figure.unit()), factor)
    }

    fn text(&self, width: Option<usize>) -> String {
        let (unit, factor) = self.unit();
        let rows: Vec<(&Ranked, &Stats)> = self.ranked().collect();
        let figures = |heading: &str, cell: &dyn Fn(&Ranked, &Stats) -> String| {
            Column::figures(heading, &rows, |row| cell(row.0, row.1))
        };
        let sized = |value: f64| format!("{:.4}", value * factor);
        let mean = |figure| {
            move |row: &Ranked, _: &Stats| {
                let stats = self.variants.get(row.variant).and_then(|variant| variant.stats(figure));
                stats.map_or_else(|| "-".to_owned(), |stats| format!("{:.3}", stats.mean))
            }
        };
        let around = |row: &Ranked| row.ratio_interval.map_or_else(String::new, |of| interval(Some(of), 1.0, 3));
        let columns = vec![
            figures("runs", &|_, stats| stats.n.to_string()).expendable(5),
            figures(&format!("mean {unit}"), &|_, stats| sized(stats.mean)),
            figures("± σ", &|_, stats| sized(stats.stddev)).expendable(4),
            figures("95 % interval", &|_, stats| interval(stats.interval, factor, 4)).expendable(3),
            figures("min", &|_, stats| sized(stats.min)).expendable(8),
            figures("max", &|_, stats| sized(stats.max)).expendable(8),
            figures("W", &mean(Figure::Watts)).expendable(7),
            figures("s", &mean(Figure::Seconds)).expendable(6),
            figures("CPU s", &mean(Figure::CpuSeconds)).expendable(9),
            figures("ratio", &|row, _| ratio(row, 3)).expendable(1),
            figures("95 %", &|row, _| around(row)).expendable(2),
            verdicts(&rows).expendable(1),
        ];
        let said = self.table(columns).text(width);
        self.remarks().into_iter().fold(said, |said, line| said + &line + "\n")
    }

    fn table(&self, columns: Vec<Column>) -> Table {
        let names = self.ranked().map(|(row, _)| row.name.clone()).collect();
        Table { columns, heading: "variant".to_owned(), names }
    }

    /// What is to be known beside the figures, a sentence a line, with names escaped.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.label_line().into_iter().collect();
        for variant in self.variants.iter().filter(|variant| variant.stats(self.ranking.figure).is_none()) {
            let figure = self.ranking.figure.unit();
            lines.push(format!(
                "{}: not ranked: not all of its runs have a figure in {figure}",
                text_name(&variant.name)
            ));
        }
        lines.extend(self.precision.iter().map(Precision::sentence));
        for variant in &self.variants {
            for run in &variant.outliers {
                let (prefix, factor) = sized(run.median);
                lines.push(format!(
                    "outlier: run {} of {} needed {:.4} {prefix}{}, the others {:.4} in the middle: it counts all the same",
                    run.order + 1,
                    text_name(&variant.name),
                    run.value * factor,
                    run.figure.unit(),
                    run.median * factor,
                ));
            }
        }
        lines.extend(self.drifts.iter().map(|drift| format!("warning: {} (p = {:.1e})", drift.sentence, drift.p)));
        lines
    }

    fn csv(&self) -> String {
        const COLUMNS: [&str; 7] = ["mean", "stddev", "median", "min", "max", "low", "high"];
        let headings =
            Figure::ALL.iter().flat_map(|figure| COLUMNS.map(|column| format!("{}_{column}", figure.name())));
        let around = ["outliers", "ranked_by", "ratio", "ratio_low", "ratio_high", "p", "verdict", "energy_label"];
        let wanted = ["wanted_percent", "percent", "is_reached"].map(|column| format!("interval_{column}"));
        let start = ["variant", "runs"].map(String::from).into_iter();
        let mut said = csv::line(start.chain(headings).chain(around.map(String::from)).chain(wanted));
        for (at, variant) in self.variants.iter().enumerate() {
            let mut cells = vec![csv::name(variant.name.raw()), variant.runs.to_string()];
            for stats in Figure::ALL.map(|figure| variant.stats(figure)) {
                let (low, high) = stats.and_then(|stats| stats.interval).unzip();
                let plain = |of: fn(&Stats) -> f64| stats.map(of);
                cells.extend(
                    [
                        plain(|stats| stats.mean),
                        plain(|stats| stats.stddev),
                        plain(|stats| stats.median),
                        plain(|stats| stats.min),
                        plain(|stats| stats.max),
                        low,
                        high,
                    ]
                    .map(csv::figure),
                );
            }
            let ranked = self.ranking.rows.iter().find(|row| row.variant == at);
            let (low, high) = ranked.and_then(|row| row.ratio_interval).unzip();
            cells.extend([variant.outliers.len().to_string(), self.ranking.figure.name().to_owned()]);
            cells.extend([ranked.and_then(|row| row.ratio), low, high, ranked.and_then(|row| row.p)].map(csv::figure));
            cells.push(ranked.map_or_else(String::new, |row| row.standing.name().to_owned()));
            cells.push(self.energy_label.clone().unwrap_or_default());
            let precision = self.precision.as_ref();
            cells.push(csv::figure(precision.map(|precision| precision.wanted_percent)));
            cells.push(csv::figure(precision.and_then(|precision| precision.percent)));
            cells.push(precision.map_or_else(String::new, |precision| precision.is_reached.to_string()));
            said.push_str(&csv::line(cells));
        }
        said
    }

    /// What is published: fewer columns than there are on a terminal.
    fn published(&self) -> Table {
        let (unit, factor) = self.unit();
        let rows: Vec<(&Ranked, &Stats)> = self.ranked().collect();
        let figures = |heading: &str, cell: &dyn Fn(&Ranked, &Stats) -> String| {
            Column::figures(heading, &rows, |row| cell(row.0, row.1))
        };
        let sized = |value: f64| format!("{:.3}", value * factor);
        let relative = |row: &Ranked| {
            let around = row.ratio_interval.map(|around| format!(" ({})", interval(Some(around), 1.0, 2)));
            ratio(row, 2) + &around.unwrap_or_default()
        };
        let columns = vec![
            figures(&format!("mean ± σ [{unit}]"), &|_, stats| {
                format!("{} ± {}", sized(stats.mean), sized(stats.stddev))
            }),
            figures("95 %", &|_, stats| interval(stats.interval, factor, 3)),
            figures("min", &|_, stats| sized(stats.min)),
            figures("max", &|_, stats| sized(stats.max)),
            figures("relative", &|row, _| relative(row)),
            verdicts(&rows),
        ];
        self.table(columns)
    }

    fn markdown(&self) -> String {
        let said = self.published().markdown(true);
        let remarks = self.remarks().into_iter().map(|line| format!("- {}\n", code(&line.as_str().into())));
        let remarks: String = remarks.collect();
        if remarks.is_empty() { said } else { said + "\n" + &remarks }
    }

    /// A table of LaTeX with all that is to be known beside it.
    pub fn latex(&self) -> String {
        let (of, runs) = (self.ranking.figure.title(), runs_of_each(&self.variants));
        let remarks =
            self.remarks().into_iter().map(|line| format!("  \\par\\footnotesize {}\n", latex::escape(&line)));
        format!(
            "% Needs \\usepackage{{booktabs}}.\n\\begin{{table}}\n  \\centering\n  \\caption{{{of} of each variant over {runs}: mean \
             and standard deviation of runs, 95\\,\\% interval of the mean, least and most, and the mean as a multiple of the \
             best one's.}}\n  \\label{{tab:energy}}\n{}{}\\end{{table}}\n",
            latex::tabular(&self.published()),
            remarks.collect::<String>()
        )
    }
}

fn verdicts(rows: &[(&Ranked, &Stats)]) -> Column {
    Column::words("verdict", rows, |(row, _)| row.standing.name().to_owned())
}

fn ratio(row: &Ranked, places: usize) -> String {
    row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.places$}"))
}

/// `1.23–1.45`; a question mark if it is not known.
fn interval(interval: Option<(f64, f64)>, factor: f64, places: usize) -> String {
    interval
        .map_or_else(|| "?".to_owned(), |(low, high)| format!("{:.places$} … {:.places$}", low * factor, high * factor))
}
