//! Sums energy over time by method: the leaf of each sample, in each bucket.

use std::collections::HashMap;

use serde::Serialize;

use super::{clock::Clock, strings::Strings};
use crate::{
    model::frame::{Frame, FrameKind},
    report::{
        profile::{App, Catalog, EnergyRow, Filter, OUTSIDE_APP, PathIndex},
        tree::{Kinds, Label, Mix, NodeKind, OTHERS},
    },
};

/// Methods with a series of their own: as many as the heat map has rows.
pub(super) const SERIES: usize = 20;

pub(super) struct Power<'a> {
    clock: Clock,
    filter: &'a Filter,
    app: Option<&'a App>,
    kinds: Kinds,
    /// By path: whether the filter allows it.
    allowed: Vec<bool>,
    labels: Vec<Label>,
    /// Of each label, how it ran.
    mixes: Vec<Mix>,
    places: HashMap<Label, usize>,
    /// By path: whether it was looked at, and the label of its leaf unless it is filtered.
    leaves: Vec<Option<Option<(usize, FrameKind)>>>,
    /// µJ by label and bucket.
    sums: HashMap<(usize, usize), u64>,
}

impl<'a> Power<'a> {
    pub(super) fn new(clock: Clock, filter: &'a Filter, app: Option<&'a App>, kinds: Kinds) -> Self {
        let (labels, mixes, leaves) = (Vec::new(), Vec::new(), Vec::new());
        let (places, sums) = (HashMap::new(), HashMap::new());
        Self { clock, filter, app, kinds, allowed: Vec::new(), labels, mixes, places, leaves, sums }
    }

    /// Takes a row, and returns whether it is part of the selection.
    pub(super) fn take(&mut self, catalog: &Catalog, row: &EnergyRow) -> bool {
        let Some((label, kind)) = self.leaf(catalog, row.path) else { return false };
        let bucket = self.clock.bucket(row.window_start, row.window_ns);
        let sum = self.sums.entry((label, bucket)).or_default();
        *sum = sum.saturating_add(row.energy.0);
        self.mixes[label].add(kind, &row.amounts());
        true
    }

    fn leaf(&mut self, catalog: &Catalog, path: PathIndex) -> Option<(usize, FrameKind)> {
        if self.leaves.len() < catalog.paths.len() {
            self.leaves.resize(catalog.paths.len(), None);
        }
        if let Some(known) = self.leaves[path.index()] {
            return known;
        }
        let frames = || catalog.paths.frames_of(path);
        if self.allowed.len() < catalog.paths.len() {
            self.allowed = self.filter.allowed_paths(catalog);
        }
        let leaf = self.allowed[path.index()].then(|| {
            let seen = self.app.map_or_else(|| frames().next_back(), |app| app.leaf(frames().rev()));
            let outside = Frame::new(FrameKind::Marker, OUTSIDE_APP);
            let frame = seen.unwrap_or(&outside);
            (self.place(Label::of_frame(frame, self.kinds)), frame.kind)
        });
        self.leaves[path.index()] = Some(leaf);
        leaf
    }

    fn place(&mut self, label: Label) -> usize {
        let next = self.labels.len();
        let (labels, mixes) = (&mut self.labels, &mut self.mixes);
        *self.places.entry(label).or_insert_with_key(|label| {
            labels.push(label.clone());
            mixes.push(Mix::default());
            next
        })
    }

    /// The methods with most energy, each a series, and the others together.
    pub(super) fn series(&self, strings: &mut Strings, kind_of: impl Fn(NodeKind) -> usize) -> Vec<Series> {
        let mut totals = vec![0_u64; self.labels.len()];
        for ((label, _), energy) in &self.sums {
            totals[*label] = totals[*label].saturating_add(*energy);
        }
        let mut order: Vec<usize> = (0..self.labels.len()).filter(|label| totals[*label] > 0).collect();
        order.sort_by(|a, b| totals[*b].cmp(&totals[*a]).then_with(|| self.labels[*a].cmp(&self.labels[*b])));
        let mut ranks = vec![SERIES; self.labels.len()];
        for (rank, label) in order.iter().take(SERIES).enumerate() {
            ranks[*label] = rank;
        }
        let mut series: Vec<Series> = order
            .iter()
            .take(SERIES)
            .map(|label| Series {
                name: strings.place(self.labels[*label].name.raw()),
                kind: kind_of(self.mixes[*label].main().map_or(self.labels[*label].kind, NodeKind::Frame)),
                energy_uj: vec![0; self.clock.buckets],
            })
            .collect();
        if order.len() > SERIES {
            let kind = kind_of(NodeKind::Others);
            series.push(Series { name: strings.place(OTHERS), kind, energy_uj: vec![0; self.clock.buckets] });
        }
        for ((label, bucket), energy) in &self.sums {
            if let Some(series) = series.get_mut(ranks[*label]) {
                series.energy_uj[*bucket] = series.energy_uj[*bucket].saturating_add(*energy);
            }
        }
        series
    }
}

/// Energy of a method in each bucket.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    name: usize,
    kind: usize,
    energy_uj: Vec<u64>,
}
