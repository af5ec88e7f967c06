mod interrupted;

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use tempfile::TempDir;

use super::{Erased, Order, Subject, erase, record};
use crate::{
    dataset::{
        audit,
        column::{Column, Table as _, kind},
        erasing::fates::{FATES, Fate},
        fixture,
        read::{columns::TableFile, files},
        store::{LocalDirectory, SHARE_MARK, SharedPlace, Store},
        tables::{Amounts, Branches, Methods, Quality, Threads, amounts, methods, shared},
    },
    events::{Event, Runtime, Service, Workload},
    fleet::{
        Tier,
        tests::{MINUTE, NOW, assert_same, by_service, compacted, share, ship_changed, sums},
    },
    model::units::UnixMicros,
    shipping::Layout,
};

/// Texts that only processes of service shop have: its names, and those of its methods, classes and threads.
const OWN: [&str; 3] = ["shop", "Secret", "Weird"];
const HOUR_US: i64 = 3_600_000_000;

/// Ships a run in which the first process is all that can be known of one, and the second is of another service.
fn ship(layout: Layout, place: &Path, host: &str) {
    ship_windows((layout, MINUTE), place, host);
}

fn ship_windows(layout: (Layout, Option<u64>), place: &Path, host: &str) {
    ship_changed(layout, place, host, 0, |event| match event {
        // As of a command that was measured.
        Event::RunStarted(run) => run.command_line.extend(["--", "Secret.jar"].map(Into::into)),
        Event::Process(process) if process.pid.0 == 1 => {
            let service = Service { name: "shop".into(), version: Some("Secret-1".into()), ..Service::default() };
            process.service = Some(service);
            process.comm = "shopjava".into();
            process.command_line = ["java", "-Dname=Secret", "-jar", "Secret.jar"].map(Into::into).to_vec();
            process.executable = Some("/opt/Secret/bin/java".into());
            process.cgroup = Some("/Secret".into());
            (process.container, process.pod) = (Some("Secret-container".into()), Some("Secret-uid".into()));
            process.workload = Some(Box::new(Workload {
                namespace: "Secret-space".into(),
                pod: "Secret-pod".into(),
                container: Some("Secret-app".into()),
                image: Some("Secret:1".into()),
                labels: vec!["app=Secret".into()],
            }));
            if let Runtime::Jvm { main_class, .. } = &mut process.runtime {
                *main_class = Some("com.acme.SecretMain".into());
            }
        }
        Event::Process(process) => {
            process.service = Some(Service { name: "cart".into(), ..Service::default() });
        }
        Event::Window(window) => {
            for thread in window.threads.iter_mut().filter(|thread| thread.pid.0 == 1 && thread.comm[0] == b'a') {
                thread.comm = *b"shop-worker\0\0\0\0\0";
            }
        }
        _ => {}
    });
}

/// A place with bundles of two hosts and a run of a third one as files of tables, which tiers do not have.
fn place() -> TempDir {
    let place = share();
    ship(Layout::Bundles, place.path(), "a");
    ship(Layout::Bundles, place.path(), "b");
    ship(Layout::Tables, place.path(), "t");
    place
}

fn order(subject: Subject) -> Order {
    Order { subject: Some(subject), before: Some(NOW), records_anyway: false, is_trial: false }
}

fn shop() -> Order {
    order(Subject::Service("shop".to_owned()))
}

const AGAIN: Order = Order { subject: None, before: None, records_anyway: false, is_trial: false };

fn of(root: &Path) -> SharedPlace {
    SharedPlace::Directory { root: root.to_owned(), owner: None }
}

fn erased(root: &Path, order: &Order) -> Erased {
    let done = erase(&of(root), order, &std::env::temp_dir(), NOW).unwrap();
    assert!(!done.is_incomplete(), "{done:?}");
    done
}

/// All files of a place by name and content, but for records, marks and claims that were left.
fn all_files(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !(name.starts_with("erasures/") || name.contains("claims/") || name.ends_with(SHARE_MARK)) {
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Where a text is: in names of files, in their bytes, and in the decompressed pages of Parquet files, dictionaries included.
fn places_of(root: &Path, text: &str) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let mut places = Vec::new();
    for (name, bytes) in all_files(root) {
        if name.contains(text) || has(&bytes) {
            places.push(name.clone());
        }
        if !name.ends_with(".parquet") {
            continue;
        }
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            for column in 0..group.num_columns() {
                let mut pages = group.get_column_page_reader(column).unwrap();
                while let Some(page) = pages.get_next_page().unwrap() {
                    if has(page.buffer()) {
                        places.push(format!("{name}: {}", group.metadata().column(column).column_path()));
                    }
                }
            }
        }
    }
    places
}

fn assert_forgotten(root: &Path) {
    for text in OWN {
        assert_eq!(places_of(root, text), Vec::<String>::new(), "{text}");
    }
}

/// Sums of columns that stay what they were, over all runs.
fn table_sums(root: &Path) -> BTreeMap<String, i64> {
    let of_columns: [(&str, Vec<Column<kind::Int>>); 5] = [
        (Branches::NAME, vec![shared::ENERGY_UJ, shared::CPU_NS, shared::SAMPLES, shared::BY_BYTES_UJ]),
        (Methods::NAME, vec![methods::SELF_UJ, methods::SELF_CPU_NS, methods::SELF_SAMPLES, methods::SELF_BY_BYTES_UJ]),
        (Quality::NAME, vec![shared::ENERGY_UJ, shared::CPU_NS, shared::SAMPLES]),
        (Threads::NAME, vec![shared::ENERGY_UJ, shared::CPU_NS, shared::SAMPLES, shared::BY_BYTES_UJ]),
        (Amounts::NAME, vec![amounts::AMOUNT]),
    ];
    let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(root, None));
    let mut sums = BTreeMap::new();
    for run in files::find(&store).unwrap() {
        for (table, columns_of) in &of_columns {
            for file in run.of(&[table]) {
                TableFile::open(file)
                    .unwrap()
                    .batches(|columns| {
                        for column in columns_of {
                            let values = columns.ints(*column)?;
                            let sum = (0..columns.rows()).filter_map(|row| values.maybe(row)).sum::<i64>();
                            *sums.entry(format!("{table}.{}", column.name())).or_default() += sum;
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        }
    }
    sums
}

/// By service and measure, with one name for shop before and after.
fn of_services(root: &Path) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, amount) in by_service(root) {
        let is_erased = name.contains("shop") || name.contains("[erased]");
        let measure = name.rsplit(' ').next().unwrap().to_owned();
        *sums.entry(if is_erased { format!("erased {measure}") } else { name }).or_default() += amount;
    }
    sums
}

#[test]
fn a_service_is_erased_in_bundles_tables_and_tiers_and_every_sum_stays() {
    let place = place();
    compacted(place.path());
    let roots = [place.path().to_owned(), place.path().join("minutes"), place.path().join("hourly")];
    let before: Vec<_> = roots.iter().map(|root| (sums(root), of_services(root), table_sums(root))).collect();
    assert!(OWN.iter().all(|text| places_of(place.path(), text).len() > 3));
    let done = erased(place.path(), &shop());
    assert_eq!(done.runs, 3, "{done:?}");
    assert!(done.rows > 50 && done.energy_uj > 0 && done.record.is_some(), "{done:?}");
    assert_forgotten(place.path());
    for (root, (sums_before, services, tables)) in roots.iter().zip(before) {
        assert_eq!(sums(root), sums_before, "{}", root.display());
        assert_eq!(of_services(root), services, "{}", root.display());
        assert_eq!(table_sums(root), tables, "{}", root.display());
    }
    // Once more there is nothing to do, and no other record.
    let files = all_files(place.path());
    let again = erased(place.path(), &shop());
    assert!(!again.has_any() && again.record.is_none(), "{again:?}");
    assert_eq!(erased(place.path(), &AGAIN), Erased::default());
    assert_same(&all_files(place.path()), &files);
}

#[test]
fn one_row_a_window_stands_for_all_that_was_erased_and_of_the_rest_no_row_is_another_one() {
    let place = share();
    ship(Layout::Bundles, place.path(), "a");
    let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
    // By table: window, whether it is the erased process, and a figure.
    let rows = || {
        let run = files::find(&store).unwrap().remove(0);
        let mut rows: BTreeMap<&str, Vec<(i64, String)>> = BTreeMap::new();
        for (table, fate) in FATES {
            if matches!(fate, Fate::Kept | Fate::Unsaid | Fate::Referred) {
                continue;
            }
            for file in run.of(&[table]) {
                let names = |columns: &crate::dataset::read::columns::Columns<'_>| {
                    let (starts, comms) = (columns.times(shared::WINDOW_START)?, columns.texts(shared::COMM)?);
                    for row in 0..columns.rows() {
                        let comm = comms.maybe(row).unwrap_or_default().to_owned();
                        rows.entry(table).or_default().push((starts.maybe(row).unwrap_or_default(), comm));
                    }
                    Ok(())
                };
                TableFile::open(file).unwrap().batches(names).unwrap();
            }
        }
        rows
    };
    let before = rows();
    erased(place.path(), &shop());
    let after = rows();
    for (table, fate) in FATES {
        let of = |rows: &BTreeMap<&str, Vec<(i64, String)>>, comm: &str| {
            let mut starts: Vec<i64> =
                rows.get(table).into_iter().flatten().filter(|row| row.1 == comm).map(|row| row.0).collect();
            starts.sort_unstable();
            starts
        };
        assert_eq!(of(&after, "java2"), of(&before, "java2"), "{table}: rows of another process");
        assert_eq!(of(&after, "shopjava"), Vec::<i64>::new(), "{table}");
        let mut windows = of(&before, "shopjava");
        windows.dedup();
        let found = of(&after, "[erased]");
        match fate {
            Fate::Described => assert_eq!(found.len(), 1),
            Fate::Summed if table != Amounts::NAME => assert_eq!(found, windows, "{table}"),
            Fate::Summed => assert!(!found.is_empty() && found.len() < of(&before, "shopjava").len()),
            Fate::Removed | Fate::RolledUp => assert!(found.is_empty(), "{table}"),
            Fate::Kept | Fate::Unsaid | Fate::Referred => {}
        }
    }
}

#[test]
fn a_run_as_it_was_recorded_becomes_a_rollup_and_keeps_its_sums() {
    let place = share();
    ship_windows((Layout::Tables, None), place.path(), "r");
    let before = (sums(place.path()), of_services(place.path()));
    assert!(OWN.iter().all(|text| !places_of(place.path(), text).is_empty()));
    let done = erased(place.path(), &shop());
    assert_eq!((done.runs, done.files), (1, 1), "{done:?}");
    let files = fixture::files(place.path());
    assert!(files.len() == 1 && files[0].0.starts_with("raw/") && files[0].0.contains("host=r/"), "{}", files.len());
    assert_forgotten(place.path());
    assert_eq!((sums(place.path()), of_services(place.path())), before);
    // What an interruption left of its files goes, and so does what came again.
    ship_windows((Layout::Tables, None), place.path(), "r");
    let again = erased(place.path(), &AGAIN);
    assert!(again.runs == 1 && again.files == 0 && again.removed > 5, "{again:?}");
    assert_same(&fixture::files(place.path()), &files);
}

#[test]
fn a_pod_is_erased_by_its_uid_or_name_and_a_host_with_all_its_runs() {
    for pod in ["Secret-uid", "Secret-pod"] {
        let place = place();
        let before = sums(place.path());
        assert_eq!(erased(place.path(), &order(Subject::Pod(pod.to_owned()))).runs, 3);
        assert_forgotten(place.path());
        assert_eq!(sums(place.path()), before);
    }
    let place = place();
    for (host, left) in [("a", 2), ("t", 1)] {
        let done = erased(place.path(), &order(Subject::Host(host.to_owned())));
        assert_eq!((done.runs, done.files), (1, 0), "{done:?}");
        assert!(!fixture::files(place.path()).iter().any(|(name, _)| name.contains(&format!("host={host}/"))));
        let audits = audit::run(place.path()).unwrap();
        assert!(audit::is_well(&audits) && audits.len() == left, "{host}");
    }
}

#[test]
fn what_is_late_is_erased_when_it_is_summed_and_in_its_run_when_it_is_asked_for_again() {
    let place = share();
    ship(Layout::Bundles, place.path(), "a");
    compacted(place.path());
    erased(place.path(), &shop());
    for host in ["b", "hidden"] {
        ship(Layout::Bundles, place.path(), host);
    }
    record::publish(
        &of(place.path()).open().unwrap(),
        &record::Record::new(Subject::Host("hidden".to_owned()), NOW, NOW),
    )
    .unwrap();
    let late = compacted(place.path());
    assert!(late.minutes.units > 0 && late.left_out().count() == 0, "{late:?}");
    for tier in Tier::ALL {
        assert_forgotten(&place.path().join(tier.folder()));
    }
    let done = erased(place.path(), &AGAIN);
    assert_eq!((done.runs, done.record), (2, None));
    assert_forgotten(place.path());
    let shipped = sums(place.path());
    for tier in Tier::ALL {
        assert_eq!(sums(&place.path().join(tier.folder())), shipped, "{tier:?}: nothing is there twice");
    }
}

#[test]
fn what_began_later_stays_and_of_what_is_not_there_no_record_is_made() {
    let place = place();
    compacted(place.path());
    let files = all_files(place.path());
    let early = Order { before: Some(UnixMicros(fixture::STARTED - 24 * HOUR_US)), ..shop() };
    let none = order(Subject::Service("other".to_owned()));
    for order in [&early, &none, &AGAIN] {
        assert_eq!(erased(place.path(), order), Erased::default());
    }
    let trial = erased(place.path(), &Order { is_trial: true, ..shop() });
    assert!(trial.runs == 3 && trial.files > 3 && trial.record.is_none(), "{trial:?}");
    assert!(!place.path().join("erasures").exists());
    let recorded = erased(place.path(), &Order { records_anyway: true, ..none });
    assert_eq!(recorded.record, Some(place.path().join("erasures/0001.json")));
    assert_same(&all_files(place.path()), &files);
    let refused = erase(&of(place.path()), &order(Subject::Service("[erased]".to_owned())), Path::new("/"), NOW);
    assert!(refused.unwrap_err().to_string().contains("erased already"));
    let refused = erase(&of(&place.path().join("minutes")), &shop(), Path::new("/"), NOW);
    assert!(refused.unwrap_err().to_string().contains("it is a tier"));
}
