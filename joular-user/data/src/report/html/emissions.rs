//! Says what the energy emitted and cost, if that was asked for.

use serde::Serialize;

use super::strings::Strings;
use crate::report::{
    footprint::{Footprint, Footprints, statement},
    profile::Profile,
};

/// What the figures are made of, and which of them there are.
#[derive(Debug, Serialize)]
pub(super) struct Emissions {
    title: usize,
    /// What, and its value.
    lines: Vec<(usize, usize)>,
    /// All emissions in grams; `None` if only the cost was asked for.
    grams: Option<f64>,
    cost: Option<f64>,
    /// May be empty.
    currency: usize,
}

impl Emissions {
    pub(super) fn of(footprints: &Footprints<'_>, profile: &Profile, strings: &mut Strings) -> Self {
        let text = statement::text(footprints, &profile.overview);
        let mut lines = text.iter().map(String::as_str);
        let title = strings.place(lines.next().unwrap_or_default());
        let lines = lines.map(|line| {
            let (what, value) = line.split_once(": ").unwrap_or((line, ""));
            (strings.place(what), strings.place(value))
        });
        let lines = lines.collect();
        let (choices, whole) = (footprints.choices, footprints.whole);
        let price = choices.price.as_ref();
        Self {
            title,
            lines,
            grams: choices.carbon.as_ref().map(|_| whole.grams()),
            cost: price.map(|_| whole.cost),
            currency: strings.place(price.map_or("", |price| &price.currency)),
        }
    }
}

/// Of the entries that have each label as their leaf.
pub(super) fn of_labels(
    profile: &Profile,
    footprints: &Footprints<'_>,
    label_of: &[usize],
    labels: usize,
) -> Vec<Footprint> {
    let mut sums = vec![Footprint::default(); labels];
    for (entry, footprint) in profile.entries.iter().zip(&footprints.entries) {
        if let Some(leaf) = profile.catalog.paths.path(entry.path).last() {
            sums[label_of[leaf.index()]].plus(footprint);
        }
    }
    sums
}
