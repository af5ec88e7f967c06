//! Says how much of the selection has stacks without their root. Totals of the callers there lack it, which a ranking by
//! total does not show.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    model::{
        frame::{FrameKind, Marker},
        units::MicroJoules,
    },
    report::profile::Profile,
    text::share,
};

/// What stands for the root side of a stack.
const MARKERS: [Marker; 3] = [Marker::Truncated, Marker::Broken, Marker::Frozen];

/// Energy of paths whose root side is missing, by the marker that stands for it.
pub fn by_marker(profile: &Profile) -> BTreeMap<&'static str, MicroJoules> {
    let mut markers: BTreeMap<&str, MicroJoules> = BTreeMap::new();
    for entry in &profile.entries {
        let root = profile.catalog.paths.frames_of(entry.path).next().filter(|root| root.kind == FrameKind::Marker);
        if let Some(marker) = root.and_then(|root| MARKERS.into_iter().find(|marker| root.name == marker.name())) {
            let energy = markers.entry(marker.name()).or_default();
            *energy = energy.saturating_add(entry.energy);
        }
    }
    markers
}

/// The same for people, unless it is nothing that a figure would show.
pub fn line(profile: &Profile) -> Option<String> {
    let (markers, whole) = (by_marker(profile), profile.energy());
    let missing = share(markers.values().copied().sum(), whole);
    let mut ranked: Vec<_> = markers.into_iter().collect();
    ranked.sort_by_key(|(name, energy)| (Reverse(*energy), *name));
    let parts: Vec<String> =
        ranked.into_iter().map(|(name, energy)| format!("{name} {:.1} %", share(energy, whole))).collect();
    (missing >= 0.05).then(|| {
        format!(
            "Of the selection's energy {missing:.1} % has stacks without their root ({}): totals of the callers there lack it",
            parts.join(", ")
        )
    })
}
