//! What was allocated is in every view, to the byte.

use std::{cell::Cell, collections::BTreeMap, path::Path};

use serde_json::Value;

use super::inference::{did, write};
use crate::{
    attribution::allocated::SampledBy,
    dataset::{DataSetError, OutputDirectory, ParquetOutput, fixture},
    events::{BufferEnds, Event},
    model::{
        policy::Policy,
        units::{MicroJoules, Pid},
    },
    report::{
        Format,
        flamegraph::{self, Drawing},
        footprint::FootprintError,
        measure::Measure,
        profile::{Filter, Names, Profile},
        ranking::{By, Look, Request, Sort, TableOf, command},
        tree::{Branches, NodeKind, Shape},
    },
};

fn data_set() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    root
}

fn of_profile(profile: &Profile) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for fact in profile.measured.facts(Measure::Allocated) {
        *all.entry(profile.catalog.thread(fact.thread).tid.0).or_default() += fact.amount;
    }
    all
}

fn named(methods: &[&str]) -> Filter {
    let names: Vec<String> = methods.iter().map(ToString::to_string).collect();
    Filter { methods: Names::parse(&names).unwrap(), ..Filter::default() }
}

const BY_CLASS: TableOf = TableOf { by: By::ClassAllocated, measure: Measure::Allocated };
const BY_METHOD: TableOf = TableOf { by: By::Method, measure: Measure::Allocated };
const BOTH: [TableOf; 2] = [BY_CLASS, BY_METHOD];

fn written(root: &Path, filter: Filter, tables: &[TableOf], format: Format) -> Result<String, FootprintError> {
    let request = Request {
        filter,
        app: None,
        tables: tables.to_vec(),
        top: 1,
        sort: Sort::Own,
        activations: false,
        footprint: None,
        format,
    };
    let mut out = Vec::new();
    command::run(root, &request, Look::default(), &mut out)?.written.unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn threads_have_their_bytes_whatever_is_selected() {
    let root = data_set();
    let read = |filter: &Filter| Profile::read(root.path(), filter, None).unwrap();
    let whole = read(&Filter::default());
    assert_eq!(of_profile(&whole), fixture::allocated_by_thread());
    assert!(whole.measured.samples(Measure::Allocated) > 0 && !whole.measured.classes.is_empty());
    let tid = *fixture::allocated_by_thread().keys().next().unwrap();
    let name = whole.catalog.threads.iter().find(|thread| thread.tid.0 == tid).unwrap().name.raw().to_owned();
    let one = read(&Filter { threads: Names::parse(&[name]).unwrap(), ..Filter::default() });
    let [of_one, of_all] = [&one, &whole].map(|profile| profile.measured.amount(Measure::Allocated));
    assert!(of_one > 0 && of_one <= of_all);
    assert!(!read(&named(&["no.such.method"])).has(Measure::Allocated));
}

#[test]
fn rows_of_tables_and_what_was_cut_sum_to_all_bytes() {
    let root = data_set();
    let all: u64 = fixture::allocated_by_thread().values().sum();
    let json: Value =
        serde_json::from_str(&written(root.path(), Filter::default(), &BOTH, Format::Json).unwrap()).unwrap();
    assert_eq!(json["allocated"]["bytes"], all);
    let tables = json["tables"].as_array().unwrap();
    assert_eq!(
        tables.iter().map(|table| table["by"].as_str().unwrap()).collect::<Vec<_>>(),
        ["class-allocated", "allocating-method"]
    );
    for table in tables {
        let rows: Vec<&Value> = table["rows"].as_array().unwrap().iter().chain([&table["others"]]).collect();
        assert_eq!(rows.iter().map(|row| row["self_bytes"].as_u64().unwrap()).sum::<u64>(), all, "{table:#}");
        for row in rows {
            let [low, bytes, high] =
                ["self_low_bytes", "self_bytes", "self_high_bytes"].map(|key| row[key].as_u64().unwrap());
            assert!(low <= bytes && bytes <= high, "{row}");
            assert!(row["total_bytes"].as_u64().is_none_or(|total| total >= bytes), "{row}");
        }
    }
    for by in BOTH {
        let csv = written(root.path(), Filter::default(), &[by], Format::Csv).unwrap();
        let mut reader = csv.lines();
        let place = reader.next().unwrap().split(',').position(|name| name == "self_bytes").unwrap();
        // Names have commas; the figures behind them have none.
        let from_end = csv.lines().next().unwrap().split(',').count() - place;
        let sum: u64 = reader.map(|line| line.rsplit(',').nth(from_end - 1).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(sum, all, "{csv}");
    }
}

#[test]
fn people_read_megabytes_with_what_is_not_certain_of_them() {
    let root = data_set();
    let text = written(root.path(), Filter::default(), &BOTH, Format::Text).unwrap();
    let markdown = written(root.path(), Filter::default(), &BOTH, Format::Markdown).unwrap();
    for text in [&text, &markdown] {
        assert!(text.contains("allocated ") && text.contains(" MB/s, by "), "{text}");
        assert!(text.contains("SELF MB") && text.contains("TOTAL MB") && text.contains("95 % FROM–TO"), "{text}");
    }
    assert!(text.contains("CLASS-ALLOCATED") && text.contains("ALLOCATING-METHOD"), "{text}");
    assert!(markdown.contains("### Allocated bytes by class"), "{markdown}");
}

#[test]
fn without_allocations_a_table_of_them_is_refused_and_the_others_do_not_speak_of_them() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, &[vec![did(100, "main", 300_000, &[(1, 1), (2, 2)])]]);
    let error = written(root.path(), Filter::default(), &[BY_CLASS], Format::Text).unwrap_err();
    assert!(matches!(error, FootprintError::Data(DataSetError::NothingMeasured { .. })), "{error}");
    assert!(error.to_string().contains("--alloc"), "{error}");
    assert!(!written(root.path(), Filter::default(), &[], Format::Text).unwrap().contains("allocated"));
}

#[test]
fn a_call_tree_has_bytes_beside_joules_and_classes_below_the_methods_that_allocated() {
    let root = data_set();
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    let all: u64 = fixture::allocated_by_thread().values().sum();
    let tree = |measure| {
        let mut branches = Branches::new(Shape::default(), measure);
        branches.add(&profile);
        branches
    };
    let allocated = tree(Measure::Allocated).tree();
    assert_eq!((allocated.total().beside, allocated.total().energy), (all, MicroJoules(0)));
    let mut classes = 0;
    for node in &allocated.nodes {
        if allocated.label(node).kind == NodeKind::Class {
            classes += node.own.beside;
            let method = &allocated.nodes[node.parent.unwrap()];
            assert_eq!(allocated.label(method).kind, NodeKind::Method);
        }
    }
    let unseen: u64 =
        fixture::allocated_by_thread().iter().filter(|(tid, _)| *tid % 3 == 0).map(|(_, bytes)| bytes).sum();
    assert_eq!(classes, all - unseen);
    // The tree of energy, with all other measures beside it.
    let mut whole = tree(Measure::Energy);
    let measures: Vec<Measure> = profile.measures_apart().collect();
    measures.iter().for_each(|measure| whole.add_beside(&profile, *measure));
    let whole = whole.tree();
    for few in [whole.largest(8), whole.pruned(u64::MAX), whole] {
        assert_eq!(few.total().energy, profile.energy());
        assert_eq!(few.beside.iter().map(|beside| beside.measure).collect::<Vec<_>>(), measures);
        for beside in &few.beside {
            assert_eq!(beside.own.len(), few.nodes.len());
            let sum: u64 = beside.own.iter().sum();
            assert_eq!(sum, profile.measured.amount(beside.measure), "{}", beside.measure.name());
        }
    }
}

#[test]
fn a_flame_graph_of_allocations_has_classes_bytes_and_a_title_that_says_so() {
    let root = data_set();
    let drawing = Drawing {
        data: root.path().to_owned(),
        base: None,
        filter: Filter::default(),
        app: None,
        shape: Shape::default(),
        measure: Measure::Allocated,
        is_icicle: false,
        min_share: None,
        picture: flamegraph::Picture::Svg,
    };
    let (svg, headline) = flamegraph::draw(&drawing).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.contains("Allocated bytes by call branch") && svg.contains(" [class] ("), "{svg}");
    assert!(!svg.contains("µJ") && !svg.contains(" J, "), "{svg}");
    assert!(headline.contains(" MB allocated in 30.0 s"), "{headline}");
    let compared = Drawing { base: Some((root.path().to_owned(), flamegraph::Normalise::Time)), ..drawing.clone() };
    let svg = String::from_utf8(flamegraph::draw(&compared).unwrap().0).unwrap();
    assert!(svg.contains("compared by rate") && !svg.contains("%; +0.0"), "{svg}");
    let nothing = Drawing { filter: named(&["no.such.method"]), ..drawing };
    assert!(matches!(flamegraph::draw(&nothing), Err(DataSetError::NothingMeasured { .. })));
}

#[test]
fn tables_of_energy_have_what_their_rows_allocated_beside_it() {
    let root = data_set();
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    let (energy, all) = (profile.energy().0, fixture::allocated_by_thread().values().sum::<u64>());
    let request = |top, format| Request {
        filter: Filter::default(),
        app: None,
        tables: By::ALL.map(TableOf::of_energy).to_vec(),
        top,
        sort: Sort::Own,
        activations: false,
        footprint: None,
        format,
    };
    let written = |request: &Request| {
        let mut out = Vec::new();
        command::run(root.path(), request, Look::default(), &mut out).unwrap().written.unwrap();
        String::from_utf8(out).unwrap()
    };
    for top in [0, 2] {
        let json: Value = serde_json::from_str(&written(&request(top, Format::Json))).unwrap();
        for table in json["tables"].as_array().unwrap() {
            let others = Some(&table["others"]).filter(|others| !others.is_null());
            let rows: Vec<&Value> = table["rows"].as_array().unwrap().iter().chain(others).collect();
            let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!((sum("self_uj"), sum("self_allocated_bytes")), (energy, all), "{}", table["by"]);
            assert!(rows.iter().all(|row| {
                row["total_allocated_bytes"].as_u64() >= row["self_allocated_bytes"].as_u64()
                    && row["total_allocated_bytes"].as_u64() <= Some(all)
            }));
        }
    }
    let text = written(&request(2, Format::Text));
    assert!(text.contains("SELF ALLOC MB") && text.contains("TOTAL ALLOC MB") && text.contains("  ALLOC MB"), "{text}");
    let csv = written(&Request { tables: vec![TableOf::of_energy(By::Thread)], ..request(0, Format::Csv) });
    let place = csv.lines().next().unwrap().split(',').position(|name| name == "self_allocated_bytes").unwrap();
    let of_row = |line: &str| line.split(',').nth(place).unwrap().parse::<u64>().unwrap();
    let sum: u64 = csv.lines().skip(1).map(of_row).sum();
    assert_eq!(sum, all);
}

/// A JVM whose allocations could not be sampled; an event of the run makes room for that.
#[test]
fn where_samples_of_cpu_time_tell_of_allocations_it_is_said_and_has_their_error() {
    let root = tempfile::tempdir().unwrap();
    let is_known = Cell::new(false);
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), fixture::FLUSH_NS);
    fixture::play_changed(output, Policy::default(), |event| {
        if matches!(event, Event::Context(_)) && !is_known.replace(true) {
            *event = Event::AllocationsUnsampled { pid: Pid(1), start_boottime_ns: 0 };
        }
    });
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    assert_eq!(of_profile(&profile), fixture::allocated_by_thread());
    assert!(profile.measured.classes.is_empty());
    let facts = profile.measured.facts(Measure::Allocated);
    let told: u64 = facts.iter().filter(|fact| fact.sampled.samples > 0).map(|fact| fact.amount).sum();
    assert!(facts.iter().all(|fact| (fact.sampled_by == SampledBy::CpuTime) == (fact.sampled.samples > 0)));
    let by_method = [BY_METHOD];
    let json: Value =
        serde_json::from_str(&written(root.path(), Filter::default(), &by_method, Format::Json).unwrap()).unwrap();
    assert!(told > 0 && json["allocated"]["by_cpu_time_bytes"] == told, "{}", json["allocated"]);
    let rows = json["tables"].as_array().unwrap().last().unwrap()["rows"].as_array().unwrap();
    let method = rows.iter().find(|row| row["self_samples"].as_u64() > Some(0)).unwrap();
    assert!(method["self_low_bytes"].as_u64() < method["self_high_bytes"].as_u64(), "{method}");
    let text = written(root.path(), Filter::default(), &by_method, Format::Text).unwrap();
    assert!(text.contains(" MB the place is inferred from samples of CPU time, and the class is unknown"), "{text}");
}

/// A thread of which all ends of buffers were foreseen; an event of the run makes room for that.
#[test]
fn where_a_thread_allocates_in_step_with_its_buffers_it_is_said_and_intervals_are_wide() {
    let root = tempfile::tempdir().unwrap();
    let allocations = fixture::events(Policy::default()).into_iter().find_map(|event| match event {
        Event::Allocations(allocations) => Some(allocations),
        _ => None,
    });
    let thread_key = allocations.unwrap().samples[0].thread_key;
    let is_known = Cell::new(false);
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), fixture::FLUSH_NS);
    fixture::play_changed(output, Policy::default(), |event| {
        if matches!(event, Event::Context(_)) && !is_known.replace(true) {
            let ends = BufferEnds { pid: Pid(1), thread_key, seen: 100, foreseen: 100, by_chance: 0 };
            *event = Event::BufferEnds(vec![ends]);
        }
    });
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    assert_eq!(of_profile(&profile), fixture::allocated_by_thread());
    let in_step: Vec<_> = profile
        .measured
        .facts(Measure::Allocated)
        .iter()
        .filter(|fact| fact.sampled_by == SampledBy::AllocationInStep)
        .collect();
    assert!(!in_step.is_empty() && in_step.iter().all(|fact| fact.thread == in_step[0].thread), "{in_step:?}");
    // All of it together is worth a tenth of a sample: it is the run's only thread in step.
    let (bytes, squares) =
        in_step.iter().fold((0.0, 0.0), |sum, fact| (sum.0 + fact.amount as f64, sum.1 + fact.sampled.squares));
    let worth = bytes * bytes / squares;
    assert!((0.05..0.2).contains(&worth), "{worth}");
    let told: u64 = in_step.iter().map(|fact| fact.amount).sum();
    let json: Value =
        serde_json::from_str(&written(root.path(), Filter::default(), &[BY_METHOD], Format::Json).unwrap()).unwrap();
    assert_eq!(json["allocated"]["in_step_bytes"], told);
    let text = written(root.path(), Filter::default(), &[BY_METHOD], Format::Text).unwrap();
    assert!(text.contains(" MB threads allocated in step with their buffers, so intervals are wide"), "{text}");
}
