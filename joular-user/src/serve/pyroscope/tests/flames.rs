//! Tests flame graphs by reading them as Grafana does: a bar is a child of the bar above it that it lies within.

use std::{collections::BTreeMap, ops::Range};

use super::{
    super::messages::{
        DiffRequest, DiffResponse, FlameGraph, SelectMergeStacktracesRequest, SelectMergeStacktracesResponse,
    },
    *,
};

/// Methods from the root on, without it, and what their node has itself.
type Paths = BTreeMap<Vec<String>, i64>;

struct Bar {
    begin: i64,
    total: i64,
    own: i64,
    children: i64,
    path: Vec<String>,
}

/// Reads levels of which each bar has so many numbers; three of them, from `side` on, are of the side that is looked at.
fn bars(names: &[String], levels: impl IntoIterator<Item = Vec<i64>>, width: usize, side: usize) -> Vec<Bar> {
    let mut all: Vec<Bar> = Vec::new();
    let mut above: Range<usize> = 0..0;
    for (depth, level) in levels.into_iter().enumerate() {
        let (first, mut end) = (all.len(), 0);
        let mut parents = above.clone();
        assert_eq!(level.len() % width, 0);
        for numbers in level.chunks(width) {
            let (begin, total, own) = (end + numbers[side], numbers[side + 1], numbers[side + 2]);
            let name = &names[usize::try_from(numbers[width - 1]).unwrap()];
            end = begin + total;
            assert!(begin >= 0 && total >= 0 && own >= 0 && numbers[side] >= 0, "{numbers:?}");
            // A bar without width, which this side has where the other one has some, is within any neighbour.
            let ends_before = |bar: &Bar| bar.begin + bar.total < end;
            while parents.start + 1 < parents.end && ends_before(&all[parents.start]) {
                parents.start += 1;
            }
            let mut path = Vec::new();
            if depth > 0 {
                let parent = &mut all[parents.start];
                assert!(begin >= parent.begin && end <= parent.begin + parent.total, "{name} is within no bar");
                parent.children += total;
                path.clone_from(&parent.path);
                path.push(name.clone());
            }
            all.push(Bar { begin, total, own, children: 0, path });
        }
        above = first..all.len();
    }
    all
}

fn own_of(bars: &[Bar]) -> Paths {
    assert_eq!(bars.iter().filter(|bar| bar.path.is_empty()).count(), 1, "there is one root");
    let mut paths = Paths::new();
    for bar in bars {
        assert_eq!(bar.total, bar.own + bar.children, "{:?}", bar.path);
        *paths.entry(bar.path.clone()).or_default() += bar.own;
    }
    paths.retain(|_, own| *own > 0);
    paths
}

/// The same of a profile, which knows nothing of bars.
fn expected(profile: &Profile, of: impl Fn(&joular_data::report::profile::ThreadPath) -> u64) -> Paths {
    let mut paths = Paths::new();
    for entry in &profile.entries {
        let frames = profile.catalog.paths.frames_of(entry.path);
        let path = frames.map(|frame| frame.method().raw().to_owned()).collect();
        *paths.entry(path).or_default() += i64::try_from(of(entry)).unwrap();
    }
    paths.retain(|_, own| *own > 0);
    paths
}

fn request(kind: &str, selector: &str, max_nodes: i64) -> SelectMergeStacktracesRequest {
    SelectMergeStacktracesRequest {
        profile_type: kind.to_owned(),
        label_selector: selector.to_owned(),
        max_nodes,
        ..SelectMergeStacktracesRequest::default()
    }
}

fn graph(data: &Data, kind: &str, selector: &str, max_nodes: i64) -> FlameGraph {
    let request = request(kind, selector, max_nodes);
    let answer: SelectMergeStacktracesResponse = data.call("SelectMergeStacktraces", &request).unwrap();
    answer.flamegraph.unwrap()
}

fn read(graph: &FlameGraph) -> Vec<Bar> {
    bars(&graph.names, graph.levels.iter().map(|level| level.values.clone()), 4, 0)
}

#[test]
fn a_flame_graph_has_what_the_data_set_has_on_every_path() {
    let data = Data::new();
    let profile = data.profile();
    type Of = fn(&joular_data::report::profile::ThreadPath) -> u64;
    let of: [(&str, Of); 3] = [
        (ENERGY, |entry| entry.energy.0),
        ("joular:cpu:nanoseconds:cpu:nanoseconds", |entry| entry.cpu_ns),
        ("joular:samples:count:cpu:nanoseconds", |entry| entry.samples),
    ];
    for (kind, of) in of {
        let whole: u64 = profile.entries.iter().map(of).sum();
        let graph = graph(&data, kind, "{}", 100_000);
        let bars = read(&graph);
        assert!(bars.len() > 100 && graph.names[0] == "total", "{kind}");
        assert_eq!(u64::try_from(graph.total).unwrap(), whole, "{kind}");
        assert_eq!(graph.max_self, bars.iter().map(|bar| bar.own).max().unwrap(), "{kind}");
        assert!(bars.iter().all(|bar| bar.total > 0), "{kind}");
        assert_eq!(own_of(&bars), expected(&profile, of), "{kind}");
    }
}

#[test]
fn the_smallest_nodes_are_merged_and_take_nothing_away() {
    let data = Data::new();
    let whole = i64::try_from(data.profile().energy().0).unwrap();
    for nodes in [1, 20, 300] {
        let graph = graph(&data, ENERGY, "", nodes);
        let bars = read(&graph);
        // Each of them may have one node for its smallest children.
        assert!(bars.len() <= 2 * usize::try_from(nodes).unwrap(), "{nodes}: {}", bars.len());
        let own = own_of(&bars);
        assert_eq!(own.values().sum::<i64>(), whole, "{nodes}");
        assert!(own.keys().any(|path| path.last().is_some_and(|name| name == "[others]")), "{nodes}");
    }
}

#[test]
fn a_comparison_has_both_sides() {
    let data = Data::new();
    let [java, gc] = ["{jvm_part=\"java\"}", "{jvm_part=\"gc\"}"];
    let sides = [java, gc].map(|selector| own_of(&read(&graph(&data, ENERGY, selector, 100_000))));
    assert!(sides[0] != sides[1] && !sides[0].is_empty() && !sides[1].is_empty());
    let request = DiffRequest { left: Some(request(ENERGY, java, 100_000)), right: Some(request(ENERGY, gc, 100_000)) };
    let diff = data.call::<DiffResponse>("Diff", &request).unwrap().flamegraph.unwrap();
    let levels: Vec<Vec<i64>> = diff.levels.iter().map(|level| level.values.clone()).collect();
    let totals = sides.each_ref().map(|side| side.values().sum::<i64>());
    assert_eq!([diff.left_ticks, diff.right_ticks, diff.total], [totals[0], totals[1], totals[0] + totals[1]]);
    // Each side by itself: where the other one alone has a bar, its own has no width, and who is above it is not told.
    for (place, total) in totals.into_iter().enumerate() {
        let bars = bars(&diff.names, levels.clone(), 7, 3 * place);
        assert_eq!(bars[0].total, total);
        assert_eq!(bars.iter().map(|bar| bar.own).sum::<i64>(), total);
    }
    let shown = data
        .get(&format!(
            "/pyroscope/render-diff?leftQuery={ENERGY}%7Bjvm_part%3D%22java%22%7D&rightQuery={ENERGY}%7Bjvm_part%3D%22gc%22%7D\
             &leftFrom=0&rightUntil=now&max-nodes=100000&format=json"
        ))
        .unwrap();
    assert_eq!(shown["flamebearer"]["names"], serde_json::json!(diff.names));
    assert_eq!(shown["flamebearer"]["levels"], serde_json::json!(levels));
    assert_eq!(["leftTicks", "rightTicks"].map(|name| shown[name].as_i64().unwrap()), totals);
    assert_eq!(shown["metadata"]["format"], "double");
}

#[test]
fn a_graph_can_be_asked_for_by_address() {
    let data = Data::new();
    let graph = graph(&data, ENERGY, "", 100_000);
    let shown = data.get(&format!("/pyroscope/render?query={ENERGY}&max-nodes=100000&from=now-48h&until=now")).unwrap();
    assert_eq!(shown["flamebearer"]["names"], serde_json::json!(graph.names));
    assert_eq!(shown["flamebearer"]["numTicks"], graph.total);
    assert_eq!(shown["metadata"]["format"], "single");
    // Half of it, in Unix milliseconds.
    let middle = (fixture::START.0 + 30_000_000) / 1000;
    let half = |ends: &str| {
        let shown = data.get(&format!("/pyroscope/render?query={ENERGY}&{ends}={middle}")).unwrap();
        shown["flamebearer"]["numTicks"].as_i64().unwrap()
    };
    assert!(half("from") > 0 && half("until") > 0 && half("from") + half("until") == graph.total);
    for (path, words) in [
        ("/pyroscope/render", "query: it is missing"),
        ("/pyroscope/render?query=x", "'x' is not a type of profiles"),
        ("/pyroscope/render?query=joular:energy:microjoules:cpu:nanoseconds%7Bx", "selector"),
        ("/pyroscope/render?query=joular:energy:microjoules:cpu:nanoseconds&from=noon", "from: 'noon' is not a time"),
        ("/pyroscope/render?query=joular:energy:microjoules:cpu:nanoseconds&from=12:00", "a time needs its date"),
        ("/pyroscope/render-diff?leftQuery=a:b:c:d:e", "rightQuery: it is missing"),
    ] {
        let refusal = data.get(path).unwrap_err();
        assert!(refusal.status == 400 && refusal.message.contains(words), "{path}: {refusal:?}");
    }
}
