//! Collects all figures of a page, as its scripts read them. Texts are places in `strings`, kinds
//! in `kinds`. Energies are µJ, times as their names say.

use serde::Serialize;

use super::{
    PageChoice,
    activity::Diagram,
    allocations::Allocations,
    collections::Collections,
    columns::{PageMeasure, Tree, kind_of, kinds},
    emissions::Emissions,
    facts::{self, Audit, Jvm, Quality},
    flight::{Flight, FlightFile},
    methods::{self, Method},
    moved::Moved,
    over_time::OverTime,
    power::Series,
    strings::Strings,
    timeline::{Said, Timeline},
};
use crate::{
    model::{counter::Counter, domain::Label as EnergyLabel},
    report::{
        footprint::Footprints,
        headline::Headline,
        measure::Measure,
        profile::{Collected, Profile},
        tree::{Branches, Kinds},
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
    /// Whether processes and threads stand before the frames at first.
    is_apart: bool,
    strings: Vec<String>,
    tree: Tree,
    time: Time,
    threads: Diagram,
    /// In the view of the page.
    methods: Vec<Method>,
    /// In the Java view, if that is another one.
    java_methods: Option<Vec<Method>>,
    /// Bytes and counts of the selection, in the order of the tree's columns.
    measures: Vec<PageMeasure>,
    /// What `--counters` counted.
    counters: Vec<&'static str>,
    /// What `--alloc` saw.
    allocated: Option<Allocations>,
    collected: Option<Collections>,
    /// Recordings of Flight Recorder.
    flights: Vec<FlightFile>,
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
    pub(super) java_methods: Option<Vec<Method>>,
    pub(super) flights: Vec<Flight>,
}

pub(super) fn of(
    profile: &Profile,
    choice: &PageChoice,
    footprints: Option<&Footprints<'_>>,
    over_time: &OverTime<'_>,
    beside: Beside,
    mut strings: Strings,
) -> Figures {
    let overview = &profile.overview;
    let mut branches = Branches::new(choice.shape, Measure::Energy);
    branches.add(profile);
    profile.measures_apart().for_each(|measure| branches.add_beside(profile, measure));
    let tree = Tree::of(&branches.tree(), NODES, &mut strings);
    let OverTime { clock, power, activity, allocated, moved, windows, .. } = over_time;
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
        kinds: kinds(),
        is_by_kind: choice.shape.kinds == Kinds::Apart,
        is_apart: choice.is_apart,
        tree,
        time,
        threads,
        methods,
        java_methods: beside.java_methods,
        measures: profile.measures_apart().map(PageMeasure::of).collect(),
        counters: profile.measured.counters().map(Counter::name).collect(),
        allocated: Allocations::of(profile, &mut strings),
        collected: Collections::of(&beside.collected, allocated, *clock, &mut strings),
        flights: beside
            .flights
            .iter()
            .map(|flight| flight.shown(&profile.catalog, *clock, windows, &mut strings))
            .collect(),
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
