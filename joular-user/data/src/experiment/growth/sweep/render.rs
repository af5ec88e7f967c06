//! Writes a sweep: a table for people, JSON from which it can be read again, CSV and Markdown.

use std::io::{self, Write};

use super::{Curve, Sweep};
use crate::{
    experiment::{
        cells::{sized, text_name},
        growth::{Fit, Interval},
    },
    model::{domain::Label, target_text::TargetText},
    report::Format,
    text::{
        csv, escape, figures, harmless_json,
        signature::{Method, told_apart},
        table::{Column, Table},
    },
};

impl Sweep {
    /// Writes it, of methods at most `top` where it is for people, as text as wide as the terminal if there is one.
    /// JSON and CSV have all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(
        &self,
        format: Format,
        top: Option<usize>,
        width: Option<usize>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let text = match format {
            Format::Text => self.text(top, width),
            Format::Json => harmless_json(&(serde_json::to_string_pretty(self)? + "\n")),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(top),
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Total and methods with their names, signatures where names are equal.
    pub(super) fn named(&self, top: Option<usize>) -> Vec<(TargetText, &Curve)> {
        let keys =
            self.methods.iter().map(|curve| Method::new(&curve.name, curve.signature.as_ref(), curve.module.as_ref()));
        let names = told_apart(&keys.collect::<Vec<_>>());
        let shown = names.into_iter().zip(&self.methods).take(top.unwrap_or(usize::MAX));
        std::iter::once((self.total.name.clone(), &self.total)).chain(shown).collect()
    }

    fn text(&self, top: Option<usize>, width: Option<usize>) -> String {
        let mut notes: Vec<String> = self.label_line().into_iter().collect();
        for (name, curve) in self.named(top) {
            if let Some(growth) = curve.growth.as_ref().filter(|growth| !growth.is_certain) {
                notes.push(format!("{}: {}", text_name(&name), growth.described()));
            }
        }
        notes.extend(self.hidden(top));
        notes.extend(self.cpu_line());
        let said = self.table(top, |_, row| row.class.clone()).text(width);
        notes.into_iter().fold(said, |said, note| said + &note + "\n")
    }

    /// What grows how; classes are said by `class`.
    fn table(&self, top: Option<usize>, class: impl Fn(&Curve, &Row) -> String) -> Table {
        let named = self.named(top);
        let rows: Vec<(&Curve, Row)> = named.iter().map(|(_, curve)| (*curve, row(curve, self.label()))).collect();
        let figures =
            |heading, cell: fn(&Row) -> &String| Column::figures(heading, &rows, |(_, row)| cell(row).clone());
        Table {
            columns: vec![
                figures("J at largest n", |row| &row.joules),
                Column::figures("samples", &rows, |(curve, _)| curve.samples.to_string()).expendable(5),
                Column::words("class", &rows, |(curve, row)| class(curve, row)).expendable(1),
                figures("sure", |row| &row.sure).expendable(3),
                figures("R²", |row| &row.r_squared).expendable(4),
                Column::words("formula", &rows, |(_, row)| row.formula.clone()).expendable(2),
            ],
            heading: if self.with_callees { "method, with what it calls" } else { "method" }.to_owned(),
            names: named.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    fn hidden(&self, top: Option<usize>) -> Option<String> {
        let hidden = self.methods.len().saturating_sub(top.unwrap_or(usize::MAX));
        (hidden > 0).then(|| format!("and {hidden} more methods that need less: --top 0 shows all"))
    }

    pub(super) fn label_line(&self) -> Option<String> {
        self.energy_label.as_ref().map(|label| format!("energy is {}", escape(label)))
    }

    /// CPU time in one line, if it was fitted.
    fn cpu_line(&self) -> Option<String> {
        let growth = self.cpu.growth.as_ref()?;
        Some(format!("CPU time of a run: {}, {:.3} s at the largest n", growth.described(), self.cpu.at_largest()))
    }

    fn markdown(&self, top: Option<usize>) -> String {
        let described = |curve: &Curve, row: &Row| {
            curve.growth.as_ref().map_or_else(|| row.class.clone(), super::Growth::described)
        };
        let notes = self.label_line().into_iter().chain(self.hidden(top)).chain(self.cpu_line());
        self.table(top, described).markdown(true) + &notes.map(|line| format!("\n{line}.\n")).collect::<String>()
    }

    fn csv(&self) -> String {
        let mut said = csv::line(
            [
                "row",
                "name",
                "signature",
                "module",
                "samples",
                "joules_at_largest",
                "class",
                "certain",
                "weight",
                "alternatives",
                "constant_j",
                "constant_low",
                "constant_high",
                "grown_j",
                "grown_low",
                "grown_high",
                "exponent",
                "exponent_low",
                "exponent_high",
                "noise",
                "r_squared",
                "formula",
                "why_not",
                "energy_label",
            ]
            .map(String::from),
        );
        let rows = [("total", &self.total), ("cpu", &self.cpu)].into_iter();
        for (kind, curve) in rows.chain(self.methods.iter().map(|curve| ("method", curve))) {
            let mut cells = cells(kind, curve);
            cells.push(self.energy_label.as_deref().map_or_else(String::new, escape));
            said.push_str(&csv::line(cells));
        }
        said
    }
}

fn cells(kind: &str, curve: &Curve) -> Vec<String> {
    let optional = |text: &Option<TargetText>| text.as_ref().map_or_else(String::new, |text| csv::name(text.raw()));
    let growth = curve.growth.as_ref();
    let fit = growth.and_then(super::Growth::fit);
    let alternatives = growth.map(|growth| growth.alternatives.iter().map(|class| class.name()).collect::<Vec<_>>());
    let figures = |of: fn(&Fit) -> Option<Interval>| {
        let found = fit.and_then(of);
        [found.map(|found| found.value), found.map(|found| found.low), found.map(|found| found.high)].map(csv::figure)
    };
    let mut cells = vec![
        kind.to_owned(),
        csv::name(curve.name.raw()),
        optional(&curve.signature),
        optional(&curve.module),
        curve.samples.to_string(),
        curve.at_largest().to_string(),
        growth.map_or_else(String::new, |growth| growth.class.name().to_owned()),
        growth.map_or_else(String::new, |growth| growth.is_certain.to_string()),
        csv::figure(growth.map(|growth| growth.weight)),
        alternatives.unwrap_or_default().join(" "),
    ];
    cells.extend(figures(|fit| Some(fit.constant)));
    cells.extend(figures(|fit| Some(fit.grown)));
    cells.extend(figures(|fit| fit.exponent));
    cells.extend([fit.map(|fit| fit.noise), fit.map(|fit| fit.r_squared)].map(csv::figure));
    cells.push(fit.map_or_else(String::new, Fit::formula));
    cells.push(curve.why_not.as_deref().map_or_else(String::new, escape));
    cells
}

/// Cells of a table for people.
pub(super) struct Row {
    pub(super) joules: String,
    pub(super) class: String,
    pub(super) sure: String,
    pub(super) r_squared: String,
    pub(super) formula: String,
}

pub(super) fn row(curve: &Curve, label: Option<Label>) -> Row {
    let energy = curve.at_largest();
    let (prefix, factor) = sized(energy);
    let joules = format!("{} {prefix}J", figures::figure(energy * factor, label));
    let Some((growth, fit)) = curve.growth.as_ref().and_then(|growth| Some((growth, growth.fit()?))) else {
        let none = || "-".to_owned();
        let why = curve.why_not.as_deref().map_or_else(none, escape);
        return Row { joules, class: none(), sure: none(), r_squared: none(), formula: why };
    };
    let class = match growth.local {
        _ if growth.has_class && growth.is_certain => growth.described(),
        _ if growth.has_class => fit.class_text(),
        Some(local) => format!("none, about n^{:.2}", local.exponent.value),
        None => "none".to_owned(),
    };
    Row {
        joules,
        class,
        sure: if growth.is_certain { "yes".to_owned() } else { "no".to_owned() },
        r_squared: format!("{:.3}", fit.r_squared),
        formula: fit.formula(),
    }
}
