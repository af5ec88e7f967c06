//! What threads counted is divided among their paths without loss, and every view has it.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::{
    dataset::{
        fixture,
        read::{columns::TableFile, files},
        store,
        tables::{Counters, counters},
    },
    model::{counter::Counter, policy::Policy},
    report::{
        Format,
        measure::Measure,
        profile::{Filter, Profile},
        ranking::{By, Look, Request, Sort, TableOf, command},
    },
};

/// By thread id, what table `counters` has of targets' threads.
fn of_threads(root: &Path) -> BTreeMap<u32, [u64; 3]> {
    let mut sums = BTreeMap::new();
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Counters>()) {
            let batches = TableFile::open(file).unwrap().batches(|columns| {
                let (tids, counts) = (columns.ints(counters::TID)?, columns.ints(counters::COUNT)?);
                let names = columns.names(counters::COUNTER)?;
                for row in (0..columns.rows()).filter(|row| tids.maybe(*row).is_some()) {
                    let counter: Counter = names.get(row).unwrap().parse().unwrap();
                    let place = WANTED.iter().position(|one| *one == counter).unwrap();
                    sums.entry(tids.natural(row)?).or_insert([0; 3])[place] += counts.natural::<u64>(row)?;
                }
                Ok(())
            });
            batches.unwrap();
        }
    }
    sums.retain(|_, counts| *counts != [0; 3]);
    sums
}

const WANTED: [Counter; 3] = [Counter::CacheMisses, Counter::MajorFaults, Counter::ContextSwitches];

fn of_profile(profile: &Profile) -> BTreeMap<u32, [u64; 3]> {
    let mut sums = BTreeMap::new();
    for entry in &profile.entries {
        let sum: &mut [u64; 3] = sums.entry(profile.catalog.thread(entry.thread).tid.0).or_default();
        let counts = WANTED.map(|counter| profile.measured.of_entry(Measure::Counted(counter), entry));
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    sums.retain(|_, counts| *counts != [0; 3]);
    sums
}

#[test]
fn each_threads_counts_are_all_among_its_paths() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let expected = of_threads(root.path());
    assert!(expected.len() > 3 && expected.values().any(|counts| counts[0] > 0), "{expected:?}");
    for no_infer in [false, true] {
        let profile = Profile::read(root.path(), &Filter { no_infer, ..Filter::default() }, None).unwrap();
        assert_eq!(profile.measured.counters().collect::<Vec<_>>(), WANTED);
        assert_eq!(of_profile(&profile), expected, "no_infer: {no_infer}");
    }
}

#[test]
fn a_path_has_counts_in_proportion_to_its_time() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    // Page faults are a thousandth of the nanoseconds here, in each window and so on each path, but for rounding.
    let mut checked = 0;
    for entry in &profile.entries {
        let faults = profile.measured.of_entry(Measure::Counted(WANTED[0]), entry);
        if faults > 0 {
            let expected = entry.cpu_ns / 1_000;
            assert!(faults.abs_diff(expected) <= fixture::WINDOWS, "{faults} {expected}");
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn tables_have_counts_that_sum_to_those_of_the_selection() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let request = |format| Request {
        filter: Filter::default(),
        app: None,
        tables: vec![TableOf::of_energy(By::Method)],
        top: 3,
        sort: Sort::Own,
        activations: false,
        footprint: None,
        format,
    };
    let written = |format| {
        let mut out = Vec::new();
        command::run(root.path(), &request(format), Look::default(), &mut out).unwrap().written.unwrap();
        String::from_utf8(out).unwrap()
    };
    let all: u64 = of_threads(root.path()).values().map(|counts| counts[0]).sum();
    let json: Value = serde_json::from_str(&written(Format::Json)).unwrap();
    assert_eq!(json["counted"]["cache-misses"], all);
    let table = &json["tables"][0];
    let rows = table["rows"].as_array().unwrap().iter().chain([&table["others"]]);
    assert_eq!(rows.map(|row| row["self_cache_misses"].as_u64().unwrap()).sum::<u64>(), all);
    let csv = written(Format::Csv);
    let mut lines = csv.lines();
    let place = lines.next().unwrap().split(',').position(|name| name == "self_cache_misses").unwrap();
    // Names have commas; the figures behind them have none.
    let from_end = csv.lines().next().unwrap().split(',').count() - place;
    let sum = lines.map(|line| line.rsplit(',').nth(from_end - 1).unwrap().parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(sum, all);
    let text = written(Format::Text);
    assert!(text.contains(&format!("counted {all} cache-misses, ")), "{text}");
    assert!(text.contains("SELF CACHE-MISSES"), "{text}");
    assert!(written(Format::Markdown).contains("SELF CONTEXT-SWITCHES"));
}
