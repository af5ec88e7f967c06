//! All figures of a page, as its scripts read them. Texts are places in `strings`,
//! kinds in `kinds`; energies are µJ, times as their names say.

use serde::Serialize;

use super::{
    PageChoice,
    activity::{Activity, Diagram},
    facts::{self, Audit, Jvm, Quality},
    methods::{self, Method},
    power::{Power, Series},
    strings::Strings,
};
use crate::{
    model::domain::Label as EnergyLabel,
    report::{
        headline::Headline,
        profile::Profile,
        tree::{Branches, CallTree, NodeKind, palette},
    },
    text,
};

/// Nodes of the flame graph: what is narrower than half a pixel of the widest
/// screens is none of them.
const NODES: usize = 16_000;

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    headline: String,
    energy_uj: u64,
    duration_ns: u64,
    label: &'static str,
    ambiguous: u64,
    sources: Vec<usize>,
    /// Packages of the application whose view this is; -1: all code.
    app: i64,
    kinds: Vec<(&'static str, String)>,
    strings: Vec<String>,
    tree: Tree,
    time: Time,
    threads: Diagram,
    methods: Vec<Method>,
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
    kind: Vec<usize>,
    /// Signature or library; -1 for neither.
    detail: Vec<i64>,
    self_uj: Vec<u64>,
    self_cpu_us: Vec<u64>,
    self_samples: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct Time {
    start_us: i64,
    /// Of the last bucket as much as the span has.
    end_us: i64,
    width_us: u64,
    buckets: usize,
    series: Vec<Series>,
}

pub(super) fn of(profile: &Profile, choice: &PageChoice, power: &Power<'_>, activity: &Activity) -> Figures {
    let mut strings = Strings::default();
    let overview = &profile.overview;
    let mut branches = Branches::default();
    branches.add(profile, choice.levels);
    let tree = Tree::of(&branches.tree(), &mut strings);
    let clock = power.clock();
    let time = Time {
        start_us: clock.start_us,
        end_us: overview.span.map_or(clock.start_us, |(_, end)| end.0),
        width_us: clock.width_us,
        buckets: clock.buckets,
        series: power.series(&mut strings, kind_of),
    };
    let threads = activity.diagram(&profile.catalog, &mut strings);
    let methods = methods::of(profile, &mut strings, kind_of);
    Figures {
        headline: Headline::of(profile).text(),
        energy_uj: profile.energy().0,
        duration_ns: overview.duration_ns,
        label: overview.label.map_or("no energy source", EnergyLabel::name),
        ambiguous: overview.ambiguous,
        sources: overview.sources.iter().map(|source| strings.place(source)).collect(),
        app: strings.maybe(choice.app.is_some().then_some(text::escape(&choice.view)).as_deref()),
        kinds: NodeKind::ALL.map(|kind| (kind.name(), palette::hex(kind))).into(),
        tree,
        time,
        threads,
        methods,
        audit: Audit::of(overview),
        jvm_parts: facts::jvm_parts(),
        jvms: facts::jvms(profile, &mut strings),
        qualities: facts::qualities(overview, &mut strings),
        runs: profile.catalog.runs.iter().map(|run| facts::run(run, &mut strings)).collect(),
        strings: strings.into_texts(),
    }
}

fn kind_of(kind: NodeKind) -> usize {
    NodeKind::ALL.iter().position(|one| *one == kind).unwrap_or(0)
}

impl Tree {
    fn of(whole: &CallTree, strings: &mut Strings) -> Self {
        let pruned = whole.largest(NODES);
        let mut tree = Self { merged: whole.nodes.len().saturating_sub(NODES), ..Self::default() };
        for node in &pruned.nodes {
            let label = pruned.label(node);
            let depth = node.parent.and_then(|parent| tree.depth.get(parent)).map_or(0, |depth| depth + 1);
            tree.depth.push(depth);
            tree.name.push(strings.place(&label.name));
            tree.kind.push(kind_of(label.kind));
            tree.detail.push(strings.maybe(label.detail()));
            tree.self_uj.push(node.own.energy.0);
            tree.self_cpu_us.push(node.own.cpu_ns / 1000);
            tree.self_samples.push(node.own.samples);
        }
        tree
    }
}
