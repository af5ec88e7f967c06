//! Makes the table of methods: self and total energy of each, with the interval that sampling
//! leaves open ([`crate::sampling`]).

use std::collections::HashMap;

use serde::Serialize;

use super::{emissions, strings::Strings};
use crate::{
    model::{target_text::TargetText, units::MicroJoules},
    report::{
        footprint::{Footprint, Footprints},
        measure::Measure,
        profile::{Amounts, Profile},
        ranking::{groups::Groups, rows::amounts, slots::Slots, sums},
        tree::{Kinds, Label, Mix, NodeKind, OTHERS},
    },
    text::count,
};

/// Methods with a row of their own: more than anyone looks through.
const ROWS: usize = 2_000;

/// Lower and upper end, µJ.
type Interval = [u64; 2];

/// A row of the table.
#[derive(Debug, Serialize)]
pub(super) struct Method {
    name: usize,
    /// The kind with most self energy, or without any with most total energy.
    kind: usize,
    /// `c2 83 %, interpreted 17 %`; -1 for one kind.
    mix: i64,
    /// Signature or library; -1 for neither.
    detail: i64,
    self_uj: u64,
    /// 95 %; both ends are the same if the figure is exact. `None` for several methods.
    self_interval_uj: Option<Interval>,
    /// `None` for several methods: a branch may have more than one of them.
    total_uj: Option<u64>,
    total_interval_uj: Option<Interval>,
    self_cpu_ns: u64,
    self_samples: u64,
    /// Part of `self_uj` that is inferred from samples of other windows.
    self_inferred_uj: u64,
    /// Of the page's counters, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    self_counts: Vec<u64>,
    /// Emissions and cost of `self_uj`, if they were asked for.
    #[serde(flatten)]
    footprint: Option<SelfFootprint>,
}

#[derive(Debug, Serialize)]
struct SelfFootprint {
    self_g: f64,
    self_cost: f64,
}

impl From<Footprint> for SelfFootprint {
    fn from(footprint: Footprint) -> Self {
        Self { self_g: footprint.grams(), self_cost: footprint.cost }
    }
}

/// The methods with most energy, by self and total, and the others together.
pub(super) fn of(
    profile: &Profile,
    kinds: Kinds,
    footprints: Option<&Footprints<'_>>,
    strings: &mut Strings,
    kind_of: impl Fn(NodeKind) -> usize,
) -> Vec<Method> {
    let (labels, label_of) = labels(profile, kinds);
    let mixes = mixes(profile, &label_of, labels.len());
    let footprints = footprints.map(|known| emissions::of_labels(profile, known, &label_of, labels.len()));
    let groups = Groups::numbered(label_of, labels.len());
    let slots = Slots::each(profile, &groups);
    let (amounts, cells) = (amounts(profile, &slots), sums::cells(profile, Measure::Energy, &slots, true));
    let counters = profile.measured.counters();
    let counted: Vec<_> = counters.map(|one| sums::amounts(profile, Measure::Counted(one), &slots)).collect();
    let counts = |label: usize| counted.iter().map(|sums| sums[label][0]).collect::<Vec<u64>>();
    let mut order: Vec<usize> = (0..labels.len()).filter(|label| amounts[*label][1] != Amounts::default()).collect();
    let weight = |label: &usize| {
        let [own, total] = &amounts[*label];
        (own.energy.max(MicroJoules(total.energy.0 / 4)), total.cpu_ns)
    };
    order.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| labels[*a].cmp(&labels[*b])));
    let rest = order.split_off(order.len().min(ROWS));
    let mut rows: Vec<Method> = Vec::with_capacity(order.len() + 1);
    for label in order {
        let footprint = footprints.as_ref().map(|sums| sums[label].into());
        let self_counts = counts(label);
        let ([own, total], cell) = (&amounts[label], &cells[label]);
        let (label, mix) = (&labels[label], &mixes[label]);
        let is_mixed = label.kind == NodeKind::Method && mix.by_size().len() > 1;
        rows.push(Method {
            name: strings.place(label.name.raw()),
            kind: kind_of(mix.main().map_or(label.kind, NodeKind::Frame)),
            mix: strings.maybe(is_mixed.then(|| mix.text(Measure::Energy)).as_deref()),
            detail: strings.maybe(label.detail().as_ref().map(TargetText::raw)),
            self_uj: own.energy.0,
            self_interval_uj: Some([cell.own.low, cell.own.high]),
            total_uj: Some(total.energy.0),
            total_interval_uj: Some([cell.total.low, cell.total.high]),
            self_cpu_ns: own.cpu_ns,
            self_samples: own.samples,
            self_inferred_uj: own.inferred.0,
            self_counts,
            footprint,
        });
    }
    if !rest.is_empty() {
        let mut all = Amounts::default();
        let mut self_counts = vec![0_u64; counted.len()];
        for label in &rest {
            all.plus(&amounts[*label][0]);
            self_counts.iter_mut().zip(counts(*label)).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let footprint = footprints.as_ref().map(|sums| {
            let mut all = Footprint::default();
            rest.iter().for_each(|label| all.plus(&sums[*label]));
            all.into()
        });
        rows.push(Method {
            name: strings.place(&format!("{OTHERS} ({})", count(rest.len(), "method"))),
            kind: kind_of(NodeKind::Others),
            mix: -1,
            detail: -1,
            self_uj: all.energy.0,
            self_interval_uj: None,
            total_uj: None,
            total_interval_uj: None,
            self_cpu_ns: all.cpu_ns,
            self_samples: all.samples,
            self_inferred_uj: all.inferred.0,
            self_counts,
            footprint,
        });
    }
    rows
}

/// The distinct labels, and which each frame has.
fn labels(profile: &Profile, kinds: Kinds) -> (Vec<Label>, Vec<usize>) {
    let mut labels: Vec<Label> = Vec::new();
    let mut places: HashMap<Label, usize> = HashMap::new();
    let place = |frame| {
        *places.entry(Label::of_frame(frame, kinds)).or_insert_with_key(|label| {
            labels.push(label.clone());
            labels.len() - 1
        })
    };
    let label_of = profile.catalog.paths.frames().iter().map(place).collect();
    (labels, label_of)
}

/// How each label ran where it was the leaf; if it never was, how it ran on the whole path.
fn mixes(profile: &Profile, label_of: &[usize], labels: usize) -> Vec<Mix> {
    let frames = profile.catalog.paths.frames();
    let (mut own, mut anywhere) = (vec![Mix::default(); labels], vec![Mix::default(); labels]);
    for entry in &profile.entries {
        let amounts = entry.amounts();
        let path = profile.catalog.paths.path(entry.path);
        for frame in path {
            anywhere[label_of[frame.index()]].add(frames[frame.index()].kind, &amounts);
        }
        if let Some(leaf) = path.last() {
            own[label_of[leaf.index()]].add(frames[leaf.index()].kind, &amounts);
        }
    }
    own.into_iter().zip(anywhere).map(|(own, anywhere)| if own == Mix::default() { anywhere } else { own }).collect()
}
