//! Draws flame graphs as Pyroscope's clients read them: level by level, each bar by where it begins.
//!
//! A bar is a few numbers. The first says how far it begins behind the end of the bar before it in its level, the next two
//! what it has in total and itself, and the last one where its name is. Children begin where their parent does, one after
//! the other, and what the parent has itself is behind them. Comparisons have the first three for the left and for the
//! right.

use std::{collections::HashMap, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use joular_data::{
    dataset::DataSetError,
    fleet::choice::View,
    model::units::MicroJoules,
    report::{
        export::{ExportFormat, Selection as Exported},
        measure::Measure,
        profile::{Filter, Profile},
        tree::{Branches, CallTree, Levels, Node, Shape},
    },
};

use super::{
    super::{answer::Answer, question::Bounds},
    Reading,
    codec::{Codec, PROTO, unimplemented, written},
    messages::{
        DiffRequest, DiffResponse, FlameGraph, FlameGraphDiff, Level, SelectMergeProfileRequest,
        SelectMergeStacktracesRequest, SelectMergeStacktracesResponse, TREE,
    },
    selection::Selection,
    types::ProfileType,
    understood,
};
use crate::query::Refusal;

/// Nodes of a graph unless somebody says how many. The smallest ones are merged.
const NODES: usize = 16_000;
/// What the root is called, as by Pyroscope.
const ROOT: &str = "total";

/// What a flame graph is of.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// `None`: of nothing that there is.
    pub kind: Option<ProfileType>,
    selection: Selection,
    /// `None`: the selection allows nothing of this type.
    filter: Option<Filter>,
    nodes: usize,
}

/// A flame graph of one side, or of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn<const SIDES: usize> {
    pub names: Vec<String>,
    pub levels: Vec<Vec<i64>>,
    pub totals: [i64; SIDES],
    pub most_own: i64,
}

/// What a node has on a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Side {
    total: i64,
    own: i64,
}

impl Drawing {
    /// # Errors
    /// If the type is not one, or one without stacks, or the selection cannot be understood.
    pub fn new(
        kind: &str,
        selector: &str,
        (start, end): (i64, i64),
        nodes: i64,
        bounds: &Bounds<'_>,
    ) -> Result<Self, Refusal> {
        Self::showing(View::Tree(Levels::Frames), kind, selector, (start, end), nodes, bounds)
    }

    /// The same for another view.
    fn showing(
        view: View,
        kind: &str,
        selector: &str,
        (start, end): (i64, i64),
        nodes: i64,
        bounds: &Bounds<'_>,
    ) -> Result<Self, Refusal> {
        let kind = ProfileType::parse(kind)?;
        if kind == Some(ProfileType::Power) {
            let message = format!("stacks have no power: use {}", ProfileType::Energy.id());
            return Err(Refusal::bad(message));
        }
        let selection = Selection::new(&[selector], start, end)?;
        let filter = selection.filter_showing([view], kind, bounds);
        let nodes = usize::try_from(nodes).ok().filter(|nodes| *nodes > 0).unwrap_or(NODES);
        Ok(Self { kind, selection, filter, nodes: nodes.min(bounds.terms.most_nodes) })
    }

    /// Equal for what is drawn alike.
    pub fn key(&self) -> String {
        let Self { kind, selection, nodes, .. } = self;
        format!("{kind:?}#{selection:?}#{nodes}")
    }

    fn of(request: &SelectMergeStacktracesRequest, bounds: &Bounds<'_>) -> Result<Self, Refusal> {
        understood(&request.stack_trace_selector, &request.profile_id_selector)?;
        if request.format == TREE {
            return Err(unimplemented("format: there are flame graphs only".to_owned()));
        }
        let time = (request.start, request.end);
        Self::new(&request.profile_type, &request.label_selector, time, request.max_nodes, bounds)
    }

    /// Of what there can be anything.
    fn possible(&self) -> Option<(ProfileType, &Filter)> {
        self.kind.zip(self.filter.as_ref())
    }

    fn profile(&self, place: &Path) -> Result<Option<Profile>, DataSetError> {
        let Some((kind, filter)) = self.possible() else { return Ok(None) };
        let mut profile = filter.unreadable.reading(|| Profile::read(place, filter, None))?;
        for entry in &mut profile.entries {
            // Trees rank and compare by energy, so what is drawn takes its place.
            entry.energy = match kind {
                ProfileType::Cpu => MicroJoules(entry.cpu_ns),
                ProfileType::Samples => MicroJoules(entry.samples),
                _ => entry.energy,
            };
        }
        Ok(Some(profile))
    }

    fn measure(&self) -> Measure {
        self.kind.map_or(Measure::Energy, ProfileType::measure)
    }

    /// # Errors
    /// If the data set cannot be read.
    pub fn draw(&self, place: &Path) -> Result<Drawn<1>, DataSetError> {
        let measure = self.measure();
        let mut branches = Branches::new(Shape::default(), measure);
        if let Some(profile) = self.profile(place)? {
            branches.add(&profile);
        }
        let tree = branches.tree().largest(self.nodes);
        Ok(drawn(&tree, |node| [side(node.total.of(measure), node.own.of(measure))]))
    }

    /// Both sides are of the type on the left, and have as many nodes.
    ///
    /// # Errors
    /// If they are of different types, or the data set cannot be read.
    pub fn compare(&self, right: &Self, place: &Path) -> Result<Drawn<2>, Refusal> {
        if self.kind != right.kind {
            return Err(Refusal::bad("left and right are of different types of profiles".to_owned()));
        }
        let measure = self.measure();
        let mut branches = Branches::new(Shape::default(), measure);
        if let Some(profile) = self.profile(place)? {
            branches.add_base(&profile);
        }
        if let Some(profile) = right.profile(place)? {
            branches.add(&profile);
        }
        let tree = branches.tree().largest(self.nodes);
        Ok(drawn(&tree, |node| {
            [side(node.base_total, node.base_own), side(node.total.of(measure), node.own.of(measure))]
        }))
    }
}

fn side(total: u64, own: u64) -> Side {
    // 2^63 µJ are 292 years of 1 kW.
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Side { total: signed(total), own: signed(own) }
}

/// Nodes come depth first. Those without anything are left out, with all below them.
fn drawn<const SIDES: usize>(tree: &CallTree, of: impl Fn(&Node) -> [Side; SIDES]) -> Drawn<SIDES> {
    let names = tree.names();
    let mut drawn = Drawn { names: vec![ROOT.to_owned()], levels: Vec::new(), totals: [0; SIDES], most_own: 0 };
    let mut places: HashMap<usize, i64> = HashMap::new();
    // Of each node: its level, and where its next child begins.
    let mut nodes: Vec<(usize, [i64; SIDES])> = Vec::with_capacity(tree.nodes.len());
    // Where the last bar of each level ends.
    let mut ends: Vec<[i64; SIDES]> = Vec::new();
    for node in &tree.nodes {
        let sides = of(node);
        let parent = node.parent.and_then(|parent| nodes.get_mut(parent));
        let (level, begin, name) = match parent {
            None => {
                drawn.totals = sides.map(|side| side.total);
                (0, [0; SIDES], 0)
            }
            Some((level, next)) => {
                let begin = *next;
                next.iter_mut().zip(&sides).for_each(|(next, side)| *next = next.saturating_add(side.total));
                let new = i64::try_from(drawn.names.len()).unwrap_or(i64::MAX);
                let name = if sides.iter().any(|side| side.total > 0) {
                    *places.entry(node.label).or_insert_with(|| {
                        drawn.names.push(names.get(node.label).map_or_else(String::new, |name| name.raw().to_owned()));
                        new
                    })
                } else {
                    0
                };
                (*level + 1, begin, name)
            }
        };
        nodes.push((level, begin));
        if level > 0 && sides.iter().all(|side| side.total == 0) {
            continue;
        }
        if drawn.levels.len() <= level {
            drawn.levels.resize(level + 1, Vec::new());
            ends.resize(level + 1, [0; SIDES]);
        }
        let (Some(bars), Some(ends)) = (drawn.levels.get_mut(level), ends.get_mut(level)) else { continue };
        for ((side, begin), end) in sides.iter().zip(begin).zip(ends) {
            bars.extend([begin.saturating_sub(*end), side.total, side.own]);
            *end = begin.saturating_add(side.total);
            drawn.most_own = drawn.most_own.max(side.own);
        }
        bars.push(name);
    }
    drawn
}

impl From<Drawn<1>> for FlameGraph {
    fn from(Drawn { names, levels, totals: [total], most_own }: Drawn<1>) -> Self {
        Self { names, levels: levels_of(levels), total, max_self: most_own }
    }
}

impl From<Drawn<2>> for FlameGraphDiff {
    fn from(Drawn { names, levels, totals: [left, right], most_own }: Drawn<2>) -> Self {
        let (total, levels) = (left.saturating_add(right), levels_of(levels));
        Self { names, levels, total, max_self: most_own, left_ticks: left, right_ticks: right }
    }
}

fn levels_of(levels: Vec<Vec<i64>>) -> Vec<Level> {
    levels.into_iter().map(|values| Level { values }).collect()
}

pub fn stacktraces(
    request: &SelectMergeStacktracesRequest,
    bounds: &Bounds<'_>,
) -> Result<Reading<SelectMergeStacktracesResponse>, Refusal> {
    let drawing = Drawing::of(request, bounds)?;
    Ok(Box::new(move |place| Ok(SelectMergeStacktracesResponse { flamegraph: Some(drawing.draw(place)?.into()) })))
}

pub fn diff(request: &DiffRequest, bounds: &Bounds<'_>) -> Result<Reading<DiffResponse>, Refusal> {
    let side = |side: &Option<SelectMergeStacktracesRequest>, name: &str| {
        let request = side.as_ref().ok_or_else(|| Refusal::bad(format!("{name}: it is missing")))?;
        Drawing::of(request, bounds)
    };
    let (left, right) = (side(&request.left, "left")?, side(&request.right, "right")?);
    Ok(Box::new(move |place| Ok(DiffResponse { flamegraph: Some(left.compare(&right, place)?.into()) })))
}

/// A profile for pprof with all that it can hold, not only the type that is asked for. It is not gzipped.
pub fn pprof(
    request: &SelectMergeProfileRequest,
    codec: Codec,
    bounds: &Bounds<'_>,
) -> Result<Reading<Answer>, Refusal> {
    understood(&request.stack_trace_selector, &request.profile_id_selector)?;
    let time = (request.start, request.end);
    // It has processes and threads.
    let (kind, selector) = (&request.profile_type, &request.label_selector);
    let drawing = Drawing::showing(View::Labels, kind, selector, time, 0, bounds)?;
    if codec == Codec::Json {
        return Err(unimplemented(format!("a profile is answered as {PROTO} only")));
    }
    Ok(Box::new(move |place| {
        let Some((_, filter)) = drawing.possible() else { return Ok(written(Vec::new())) };
        let format = ExportFormat::of("pprof").ok_or_else(|| Refusal::broken("there is no pprof".to_owned()))?;
        let exported = Exported { data: place, filter, app: None, measure: Measure::Energy };
        let (mut packed, mut bytes) = (Vec::new(), Vec::new());
        format.write(&exported, &mut packed)?;
        let unpacked = GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes);
        unpacked.map_err(|error| Refusal::broken(error.to_string()))?;
        Ok(written(bytes))
    }))
}
