//! Makes a flame graph a page of its own, which can be searched, turned over and sent to others.
//!
//! Nothing is pruned that a reader could zoom into: the page has the tree, and its script draws what is wide enough.

use serde::Serialize;

use super::Drawn;
use crate::{
    model::domain::Label,
    report::{
        html::{
            columns::{self, PageMeasure, Pair, Tree},
            document,
            strings::Strings,
        },
        measure::{Measure, Unit},
        profile::Profile,
        tree::{Branches, Shape},
    },
};

/// Nodes of a graph that a server sends again and again.
const SERVED_NODES: usize = 16_000;
/// Nodes of a page: browsers draw so many without delay, in a file of a few megabytes.
const NODES: usize = 100_000;

#[derive(Debug, Serialize)]
pub(in crate::report) struct Figures {
    title: String,
    headline: String,
    /// How the energy came about.
    label: &'static str,
    duration_ns: u64,
    /// What widths are at first.
    measure: &'static str,
    is_icicle: bool,
    kinds: Vec<(&'static str, String)>,
    /// Beside energy, in the order of the tree's columns.
    measures: Vec<PageMeasure>,
    tree: Option<Tree>,
    /// Of a comparison.
    pair: Option<Pair>,
    strings: Vec<String>,
}

pub(super) fn of(drawn: &Drawn<'_>) -> Vec<u8> {
    document::page(&document::GRAPH, &figures(drawn))
}

fn figures(drawn: &Drawn<'_>) -> Figures {
    let (drawing, profile) = (drawn.drawing, &drawn.profile);
    let mut strings = Strings::default();
    let (mut tree, mut pair, mut measures) = (None, None, Vec::new());
    if let Some(base) = &drawn.base {
        let mut branches = Branches::new(drawing.shape, drawing.measure);
        branches.add(profile);
        branches.add_base(&base.profile);
        let (unit, factor) = unit(drawing.measure);
        let factors = [base.factor * factor, factor];
        pair = Some(Pair::of(&branches.tree(), NODES, factors, unit, &mut strings));
    } else {
        let (of_profile, beside) = tree_of(profile, drawing.shape, drawing.measure, NODES, &mut strings);
        (tree, measures) = (Some(of_profile), beside);
    }
    Figures {
        title: drawn.title.clone(),
        headline: drawn.subtitle.clone(),
        label: profile.overview.label.map_or("no energy source", Label::words),
        duration_ns: profile.overview.duration_ns,
        measure: drawing.measure.name(),
        is_icicle: drawing.is_icicle,
        kinds: columns::kinds(),
        measures,
        tree,
        pair,
        strings: strings.into_texts(),
    }
}

/// A tree of energy, with all other measures that there are.
fn tree_of(
    profile: &Profile,
    shape: Shape,
    measure: Measure,
    nodes: usize,
    strings: &mut Strings,
) -> (Tree, Vec<PageMeasure>) {
    let mut branches = Branches::new(shape, Measure::Energy);
    branches.add(profile);
    let mut beside: Vec<Measure> = profile.measures_apart().collect();
    if measure != Measure::Energy && !beside.contains(&measure) {
        beside.push(measure);
    }
    beside.iter().for_each(|measure| branches.add_beside(profile, *measure));
    (Tree::of(&branches.tree(), nodes, strings), beside.into_iter().map(PageMeasure::of).collect())
}

/// The figures of a profile's graph within another page; `None` if there is nothing of the measure.
pub(in crate::report) fn figures_of(profile: &Profile, measure: Measure) -> Option<Figures> {
    if super::whole(profile, measure) == 0 {
        return None;
    }
    let mut strings = Strings::default();
    let (tree, measures) = tree_of(profile, Shape::default(), measure, SERVED_NODES, &mut strings);
    Some(Figures {
        title: format!("{} by call branch", measure.title()),
        headline: super::headline_of(profile, measure),
        label: profile.overview.label.map_or("no energy source", Label::words),
        duration_ns: profile.overview.duration_ns,
        measure: measure.name(),
        is_icicle: true,
        kinds: columns::kinds(),
        measures,
        tree: Some(tree),
        pair: None,
        strings: strings.into_texts(),
    })
}

/// The unit of figures, and what makes them of amounts.
fn unit(measure: Measure) -> (String, f64) {
    match measure.unit() {
        Unit::MicroJoules => ("J".to_owned(), 1e-6),
        Unit::Bytes => ("MB".to_owned(), 1e-6),
        Unit::Count => (measure.name().to_owned(), 1.0),
    }
}
