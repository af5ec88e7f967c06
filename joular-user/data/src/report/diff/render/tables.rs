//! Writes a comparison as CSV.

use crate::{
    model::{target_text::TargetText, units::MicroJoules},
    report::diff::{Choices, Comparison, Measure, Side},
    text::csv,
};

const COLUMNS: [&str; 29] = [
    "row",
    "name",
    "signature",
    "module",
    "unit",
    "a_uj",
    "b_uj",
    "a_samples",
    "b_samples",
    "a",
    "b",
    "change",
    "change_low",
    "change_high",
    "percent",
    "percent_low",
    "percent_high",
    "p",
    "q",
    "verdict",
    "a_label",
    "b_label",
    "a_ambiguous",
    "b_ambiguous",
    "a_inferred_uj",
    "b_inferred_uj",
    "measure",
    "a_amount",
    "b_amount",
];

/// A row per method, after one for the total.
pub fn csv(comparison: &Comparison, choices: &Choices) -> String {
    let mut said = csv::line(COLUMNS.map(String::from));
    let label = |side: &Side| side.overview.label.map_or("", |label| label.name());
    let (a, b) = (&comparison.a, &comparison.b);
    // Columns of energy are empty if another measure is compared.
    let energy = |energy: MicroJoules| match choices.measure {
        Measure::Energy => energy.to_string(),
        _ => String::new(),
    };
    let rows = std::iter::once(("total", &comparison.total));
    for (kind, row) in rows.chain(comparison.shown(choices).iter().map(|row| (choices.row(), row))) {
        let change = &row.change;
        let ends = |interval: Option<(f64, f64)>| {
            [interval.map(|(low, _)| low), interval.map(|(_, high)| high)].map(csv::figure)
        };
        let in_percent = |(low, high)| (low * 100.0, high * 100.0);
        let optional = |text: &Option<TargetText>| text.as_ref().map_or_else(String::new, |text| csv::name(text.raw()));
        let [change_low, change_high] = ends(change.interval);
        let [percent_low, percent_high] = ends(change.relative.map(in_percent));
        let cells: [String; COLUMNS.len()] = [
            kind.to_owned(),
            csv::name(row.key.name.raw()),
            optional(&row.key.signature),
            optional(&row.key.module),
            choices.unit(),
            energy(row.a.energy),
            energy(row.b.energy),
            row.a.samples.to_string(),
            row.b.samples.to_string(),
            change.a.to_string(),
            change.b.to_string(),
            change.difference().to_string(),
            change_low,
            change_high,
            csv::figure(change.ratio().map(|ratio| ratio * 100.0)),
            percent_low,
            percent_high,
            csv::figure(change.p),
            csv::figure(change.q),
            change.verdict.name().to_owned(),
            label(a).to_owned(),
            label(b).to_owned(),
            (a.overview.ambiguous > 0).to_string(),
            (b.overview.ambiguous > 0).to_string(),
            energy(row.a.inferred),
            energy(row.b.inferred),
            choices.measure.name().to_owned(),
            row.a.energy.0.to_string(),
            row.b.energy.0.to_string(),
        ];
        said.push_str(&csv::line(cells));
    }
    said
}
