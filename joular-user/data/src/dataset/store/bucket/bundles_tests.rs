//! Tests that bundles of a bucket are found by few requests, and read by one each.

use std::{num::NonZeroU32, path::Path, sync::Arc};

use super::requests_tests::{Seen, at, names, recorded, with_files};
use crate::{
    dataset::{
        bundle::{BundlePlace, FLEET, Groups, encode, init},
        fixture::{SECOND, STARTED},
        read::{files, run_row},
        store::{LocalDirectory, Store, open},
    },
    model::units::UnixMicros,
    redact::Redaction,
    report::profile::{DataSet, Filter, Moment},
    rollup,
};

/// A bucket with these hosts' rollups as bundles, in groups of 64, and what it sees.
fn bucket(hosts: &[(&str, i64)], at_once: usize) -> (Arc<dyn Store>, Arc<Seen>) {
    let (recorded, tables, place) = (recorded(hosts), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    rollup::run(recorded.path(), tables.path(), 60 * SECOND, None, &Redaction::default()).unwrap();
    let to: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
    init(&to, NonZeroU32::new(64 * 32).unwrap(), UnixMicros(STARTED)).unwrap();
    let groups = Groups::read(&to).unwrap();
    for run in files::find(&open(tables.path()).unwrap()).unwrap() {
        let of_run = BundlePlace::of(&run_row::read(&run.row).unwrap().info);
        let bytes = encode(&run, &Redaction::default()).unwrap();
        to.publish_new(&of_run.folder(&groups), &of_run.name, &bytes).unwrap();
    }
    let (bucket, seen) = with_files(place.path(), at_once);
    bucket.publish(Path::new(""), FLEET, &std::fs::read(place.path().join(FLEET)).unwrap()).unwrap();
    (bucket, seen)
}

#[test]
fn each_bundle_is_asked_for_once_however_many_tables_are_read() {
    let hosts: Vec<String> = (0..40).map(|number| format!("web-{number}")).collect();
    let hosts: Vec<(&str, i64)> = hosts.iter().map(|host| (host.as_str(), 0)).collect();
    let (bucket, seen) = bucket(&hosts, 32);
    let mut data = DataSet::of_store(&bucket, &Filter::default()).unwrap();
    let mut rows = 0;
    data.scan(&Filter::default(), &mut |_, _| rows += 1).unwrap();
    assert!(data.catalog.runs.len() == 40 && rows > 0);
    let mut gets = seen.gets.lock().unwrap().clone();
    gets.sort();
    gets.dedup();
    assert_eq!((gets.len(), seen.gets.lock().unwrap().len()), (40, 40), "{gets:?}");
    let folders = seen.folders.lock().unwrap().clone();
    assert_eq!(folders, ["energy", "energy/raw", "energy/raw/date=2026-03-01"]);
    assert_eq!(*seen.lists.lock().unwrap(), ["energy/raw/date=2026-03-01/hour=23"], "no table is listed");
}

#[test]
fn a_host_and_a_time_have_only_their_prefixes_listed() {
    let (bucket, seen) = bucket(&[("web-1", 0), ("web-2", 0), ("web-1b", 30), ("web_3", 60)], 0);
    let runs = |filter: Filter| {
        seen.lists.lock().unwrap().clear();
        seen.gets.lock().unwrap().clear();
        DataSet::of_store(&bucket, &filter).map_or(0, |data| data.catalog.runs.len())
    };
    let lists = || seen.lists.lock().unwrap().clone();
    // As Python's xxhash has it: xxhash.xxh64("web-1").intdigest() % 64.
    let host = "group=08/host=web-1";
    assert_eq!(runs(Filter { hosts: names(&["web-1"]), since: at(0), until: at(1), ..Filter::default() }), 1);
    assert_eq!(lists(), [format!("energy/raw/date=2026-03-01/hour=23/{host}")]);
    let is_of_host =
        |key: &String| key.contains(host) || ["energy/fleet.json", "energy/tier.json"].contains(&key.as_str());
    assert!(seen.gets.lock().unwrap().iter().all(is_of_host));
    // A run that began in the hour before may go on.
    runs(Filter { since: at(0).map(later), until: at(1), ..Filter::default() });
    assert_eq!(lists(), ["energy/raw/date=2026-03-01/hour=23"]);
    assert_eq!(runs(Filter { since: at(0).map(later).map(later), until: at(1), ..Filter::default() }), 0);
    assert_eq!(runs(Filter { hosts: names(&["web_3"]), ..Filter::default() }), 1, "a name as its folder has it");
    assert_eq!(runs(Filter { hosts: names(&["web-*"]), ..Filter::default() }), 3, "a pattern may be any host");
}

/// An hour later.
fn later(moment: Moment) -> Moment {
    match moment {
        Moment::At(at) => Moment::At(UnixMicros(at.0 + 3_600_000_000)),
        moment => moment,
    }
}
