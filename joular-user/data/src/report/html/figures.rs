//! Collects all figures of a page, as its scripts read them. Texts are places in `strings`, kinds
//! in `kinds`. Energies are µJ, times as their names say.

use serde::Serialize;

use super::{
    PageChoice,
    activity::Diagram,
    allocations::Allocations,
    collections::Collections,
    emissions::Emissions,
    facts::{self, Audit, Jvm, Quality},
    methods::{self, Method},
    moved::Moved,
    over_time::OverTime,
    power::Series,
    strings::Strings,
    timeline::{Said, Timeline},
};
use crate::{
    model::{counter::Counter, domain::Label as EnergyLabel, target_text::TargetText},
    report::{
        footprint::Footprints,
        headline::Headline,
        measure::{Measure, Unit},
        profile::{Amounts, Collected, Profile},
        tree::{Branches, CallTree, Kinds, Mix, NodeKind, palette},
    },
    text,
    totals::audit::model_note,
};

/// Nodes of the flame graph. Those narrower than half a pixel of the widest screens are left out.
const NODES: usize = 16_000;

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    headline: String,
    energy_uj: u64,
    duration_ns: u64,
    label: &'static str,
    ambiguous: u64,
    sources: Vec<usize>,
    /// Whose code is shown; -1: all code.
    app: i64,
    kinds: Vec<(&'static str, String)>,
    /// Whether the kinds of code of a method are nodes of their own.
    is_by_kind: bool,
    strings: Vec<String>,
    tree: Tree,
    time: Time,
    threads: Diagram,
    methods: Vec<Method>,
    /// Bytes and counts of the selection, in the order of the tree's columns.
    measures: Vec<PageMeasure>,
    /// What `--counters` counted.
    counters: Vec<&'static str>,
    /// What `--alloc` saw.
    allocated: Option<Allocations>,
    collected: Option<Collections>,
    /// What `--io` counted.
    moved: Option<Moved>,
    /// What intervals do not cover.
    interval_note: &'static str,
    emissions: Option<Emissions>,
    audit: Audit,
    jvm_parts: Vec<(&'static str, bool)>,
    jvms: Vec<Jvm>,
    qualities: Vec<Quality>,
    runs: Vec<Vec<(&'static str, usize)>>,
}

/// Nodes depth first, column by column; figures are a node's own.
#[derive(Debug, Default, Serialize)]
struct Tree {
    /// How many nodes, the smallest ones, became part of others.
    merged: usize,
    depth: Vec<u32>,
    name: Vec<usize>,
    /// The one that has most.
    kind: Vec<usize>,
    /// For a method that ran in several ways: kinds, each with its part of the node's total.
    mix: Vec<Vec<(usize, u64)>>,
    /// Signature or library; -1 for neither.
    detail: Vec<i64>,
    self_uj: Vec<u64>,
    self_cpu_us: Vec<u64>,
    self_samples: Vec<u64>,
    /// Part of the energy that is inferred from samples of other windows.
    self_inferred_uj: Vec<u64>,
    /// By measure, then node.
    self_beside: Vec<Vec<u64>>,
}

/// A measure that the flame graph can be drawn of.
#[derive(Debug, Serialize)]
struct PageMeasure {
    name: &'static str,
    title: String,
    is_bytes: bool,
}

impl PageMeasure {
    fn of(measure: Measure) -> Self {
        Self { name: measure.name(), title: measure.title().to_lowercase(), is_bytes: measure.unit() == Unit::Bytes }
    }
}

#[derive(Debug, Serialize)]
struct Time {
    start_us: i64,
    /// End of the span, within the last bucket.
    end_us: i64,
    width_us: u64,
    buckets: usize,
    series: Vec<Series>,
    said: Timeline,
}

/// What there is beside what threads and paths have.
pub(super) struct Beside {
    pub(super) said: Said,
    pub(super) collected: Collected,
}

pub(super) fn of(
    profile: &Profile,
    choice: &PageChoice,
    footprints: Option<&Footprints<'_>>,
    over_time: &OverTime<'_>,
    beside: &Beside,
) -> Figures {
    let mut strings = Strings::default();
    let overview = &profile.overview;
    let mut branches = Branches::new(choice.shape, Measure::Energy);
    branches.add(profile);
    profile.measures_apart().for_each(|measure| branches.add_beside(profile, measure));
    let tree = Tree::of(&branches.tree(), &mut strings);
    let OverTime { clock, power, activity, allocated, moved, .. } = over_time;
    let time = Time {
        start_us: clock.start_us,
        end_us: overview.span.map_or(clock.start_us, |(_, end)| end.0),
        width_us: clock.width_us,
        buckets: clock.buckets,
        series: power.series(&mut strings, kind_of),
        said: beside.said.timeline(clock.start_us, &mut strings),
    };
    let threads = activity.diagram(&profile.catalog, &mut strings);
    let methods = methods::of(profile, choice.shape.kinds, footprints, &mut strings, kind_of);
    Figures {
        headline: Headline::of(profile).text(),
        energy_uj: profile.energy().0,
        duration_ns: overview.duration_ns,
        label: overview.label.map_or("no energy source", EnergyLabel::words),
        ambiguous: overview.ambiguous,
        interval_note: model_note(overview.label).unwrap_or_default(),
        sources: overview.sources.iter().map(|source| strings.place(source)).collect(),
        app: strings.maybe(choice.app.is_some().then_some(text::escape(&choice.view)).as_deref()),
        kinds: NodeKind::ALL.map(|kind| (kind.name(), palette::hex(kind))).into(),
        is_by_kind: choice.shape.kinds == Kinds::Apart,
        tree,
        time,
        threads,
        methods,
        measures: profile.measures_apart().map(PageMeasure::of).collect(),
        counters: profile.measured.counters().map(Counter::name).collect(),
        allocated: Allocations::of(profile, &mut strings),
        collected: Collections::of(&beside.collected, allocated, *clock, &mut strings),
        moved: Moved::of(profile, moved, *clock, &mut strings),
        emissions: footprints.map(|footprints| Emissions::of(footprints, profile, &mut strings)),
        audit: Audit::of(overview),
        jvm_parts: facts::jvm_parts(),
        jvms: facts::jvms(profile, &mut strings),
        qualities: facts::qualities(overview, &mut strings),
        runs: profile.catalog.runs.iter().map(|run| facts::run(run, &choice.redaction, &mut strings)).collect(),
        strings: strings.into_texts(),
    }
}

/// Kinds with their parts, if there are several: parts of the energy, or without any of the CPU
/// time.
fn parts(mix: &Mix, has_energy: bool) -> Vec<(usize, u64)> {
    let part = |amounts: &Amounts| if has_energy { amounts.energy.0 } else { amounts.cpu_ns / 1000 };
    let kinds = mix.by_size();
    let parts: Vec<_> = kinds.iter().map(|(kind, amounts)| (kind_of(NodeKind::Frame(*kind)), part(amounts))).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

fn kind_of(kind: NodeKind) -> usize {
    NodeKind::ALL.iter().position(|one| *one == kind).unwrap_or(0)
}

impl Tree {
    fn of(whole: &CallTree, strings: &mut Strings) -> Self {
        let (pruned, has_energy) = (whole.largest(NODES), whole.total().energy.0 > 0);
        let mut tree = Self { merged: whole.nodes.len().saturating_sub(NODES), ..Self::default() };
        for node in &pruned.nodes {
            let label = pruned.label(node);
            let depth = node.parent.and_then(|parent| tree.depth.get(parent)).map_or(0, |depth| depth + 1);
            tree.depth.push(depth);
            tree.name.push(strings.place(label.name.raw()));
            tree.kind.push(kind_of(pruned.kind(node)));
            tree.mix.push(parts(&node.mix, has_energy));
            tree.detail.push(strings.maybe(label.detail().as_ref().map(TargetText::raw)));
            tree.self_uj.push(node.own.energy.0);
            tree.self_cpu_us.push(node.own.cpu_ns / 1000);
            tree.self_samples.push(node.own.samples);
            tree.self_inferred_uj.push(node.own.inferred.0);
        }
        tree.self_beside = pruned.beside.into_iter().map(|beside| beside.own).collect();
        tree
    }
}
