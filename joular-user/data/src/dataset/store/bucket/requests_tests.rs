//! Tests how many requests a bucket gets, and how many at once.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path as Key,
};

use super::Bucket;
use crate::{
    dataset::{OutputDirectory, ParquetOutput, error::DataSetError, fixture, store::Store},
    events::Event,
    model::{policy::Policy, units::UnixMicros},
    report::profile::{DataSet, Filter, Moment, Names, Profile, Unreadable},
};

/// For answers that only come when so many have been asked for. It bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) lists: Mutex<Vec<String>>,
    /// Listed without what is below the next names.
    pub(super) folders: Mutex<Vec<String>>,
    pub(super) gets: Mutex<Vec<String>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A bucket in memory. Objects come only when so many have been asked for at once.
#[derive(Debug)]
struct Counted {
    inner: InMemory,
    seen: Arc<Seen>,
    at_once: usize,
    until: Instant,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counted")
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, key: &Key, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(&self, key: &Key, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        self.seen.gets.lock().unwrap().push(key.to_string());
        let now = self.seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.seen.most.fetch_max(now, Ordering::SeqCst);
        while self.seen.most.load(Ordering::SeqCst) < self.at_once && Instant::now() < self.until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let got = self.inner.get_opts(key, options).await;
        self.seen.now.fetch_sub(1, Ordering::SeqCst);
        got
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.seen.lists.lock().unwrap().push(prefix.map(ToString::to_string).unwrap_or_default());
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.seen.folders.lock().unwrap().push(prefix.map(ToString::to_string).unwrap_or_default());
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A directory with these hosts' runs, each so many days after the first one.
pub(super) fn recorded(hosts: &[(&str, i64)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (host, days) in hosts {
        let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), fixture::FLUSH_NS);
        fixture::play_changed(output, Policy::default(), |event| match event {
            Event::RunStarted(run) => {
                (run.host, run.run_id) = ((*host).into(), format!("run-of-{host}"));
                run.started.0 += days * DAY_US;
            }
            Event::Window(window) => window.wall_start.0 += days * DAY_US,
            _ => {}
        });
    }
    root
}

/// A bucket with the files of a directory, and what it sees.
pub(super) fn with_files(root: &Path, at_once: usize) -> (Arc<dyn Store>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let counted =
        Counted { inner: InMemory::new(), seen: Arc::clone(&seen), at_once, until: Instant::now() + PATIENCE };
    let bucket = Bucket::of_client(Path::new("s3://fleet"), "energy", Box::new(counted));
    for (file, bytes) in fixture::files(root) {
        let file = Path::new(&file);
        bucket.publish(file.parent().unwrap(), file.file_name().unwrap().to_str().unwrap(), &bytes).unwrap();
    }
    (Arc::new(bucket), seen)
}

/// A bucket with these hosts' runs, and what it sees.
fn bucket(hosts: &[(&str, i64)], at_once: usize) -> (Arc<dyn Store>, Arc<Seen>) {
    with_files(recorded(hosts).path(), at_once)
}

const DAY_US: i64 = 86_400_000_000;

pub(super) fn at(days: i64) -> Option<Moment> {
    Some(Moment::At(UnixMicros(fixture::STARTED + days * DAY_US)))
}

pub(super) fn names(names: &[&str]) -> Names {
    Names::parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn many_objects_are_asked_for_at_once_each_pass_once() {
    let hosts: Vec<String> = (0..40).map(|number| format!("web-{number}")).collect();
    let hosts: Vec<(&str, i64)> = hosts.iter().map(|host| (host.as_str(), 0)).collect();
    let (bucket, seen) = bucket(&hosts, 32);
    let mut data = DataSet::of_store(&bucket, &Filter::default()).unwrap();
    assert_eq!(data.catalog.runs.len(), 40);
    let most = seen.most.load(Ordering::SeqCst);
    assert!((32..=64 + 8).contains(&most), "{most} at once");
    let of_reading = |gets: &[String]| {
        let mut once: Vec<&String> = gets.iter().collect();
        once.sort();
        once.dedup();
        once.len() == gets.len()
    };
    assert!(of_reading(&seen.gets.lock().unwrap()), "no object is asked for twice");
    seen.gets.lock().unwrap().clear();
    data.scan(&Filter::default(), &mut |_, _| {}).unwrap();
    let gets = seen.gets.lock().unwrap().clone();
    assert!(of_reading(&gets) && gets.iter().all(|key| key.starts_with("energy/branches/")), "{gets:?}");
}

#[test]
fn only_prefixes_that_may_be_wanted_are_listed() {
    let (bucket, seen) = bucket(&[("web-1", 0), ("web-2", 0), ("web-1b", 30), ("web_3", 60)], 0);
    let runs = |filter: Filter| {
        seen.lists.lock().unwrap().clear();
        seen.gets.lock().unwrap().clear();
        DataSet::of_store(&bucket, &filter).map_or(0, |data| data.catalog.runs.len())
    };
    let lists = || seen.lists.lock().unwrap().clone();
    assert_eq!(runs(Filter { hosts: names(&["web-1"]), until: at(5), ..Filter::default() }), 1);
    assert!(lists().iter().all(|prefix| prefix.ends_with("/host=web-1") && prefix.contains("/date=2026-03-0")));
    let is_of_host = |key: &String| key.contains("/host=web-1/") || key == "energy/fleet.json";
    assert!(seen.gets.lock().unwrap().iter().all(is_of_host));
    assert_eq!(runs(Filter { since: at(29), until: at(31), ..Filter::default() }), 1);
    assert!(!lists().is_empty() && lists().iter().all(|prefix| prefix.contains("/date=2026-0")), "{:?}", lists());
    let is_of_host = |key: &String| key.contains("/host=web-1b/") || key == "energy/tier.json";
    assert!(seen.gets.lock().unwrap().iter().all(is_of_host));
    assert_eq!(runs(Filter { hosts: names(&["web_3"]), ..Filter::default() }), 1, "a name as its folder has it");
    assert_eq!(runs(Filter { hosts: names(&["web-*"]), ..Filter::default() }), 3, "a pattern may be any host");
    assert_eq!(runs(Filter { since: at(300), ..Filter::default() }), 0);
}

#[test]
fn a_run_that_began_before_the_time_that_is_asked_for_has_its_row() {
    let (bucket, _) = bucket(&[("web-1", 0)], 0);
    let row = bucket.list("runs", 10).unwrap().remove(0);
    let bytes = bucket.open(&row).unwrap();
    let bytes = crate::dataset::store::StoredFile::new(&bucket, row.clone()).read_whole(bytes.size_bytes()).unwrap();
    bucket.remove(&row).unwrap();
    let earlier = Path::new("runs/date=2026-01-01/host=web-1");
    bucket.publish(earlier, row.file_name().unwrap().to_str().unwrap(), &bytes).unwrap();
    let filter = Filter { since: at(0), ..Filter::default() };
    assert_eq!(DataSet::of_store(&bucket, &filter).unwrap().catalog.runs.len(), 1);
}

#[test]
fn an_object_that_is_another_by_now_or_gone_is_not_read() {
    for is_gone in [false, true] {
        let (bucket, _) = bucket(&[("web-1", 0), ("web-2", 0)], 0);
        let filter = Filter { unreadable: Unreadable::left_out(), ..Filter::default() };
        let changed = bucket.list("branches", 1000).unwrap();
        let changed = changed.into_iter().find(|file| file.to_string_lossy().contains("web-2")).unwrap();
        let data = DataSet::of_store(&bucket, &filter).unwrap();
        assert_eq!(data.catalog.runs.len(), 2);
        if is_gone {
            bucket.remove(&changed).unwrap();
        } else {
            bucket.publish(changed.parent().unwrap(), changed.file_name().unwrap().to_str().unwrap(), b"x").unwrap();
        }
        let mut data = Some(data);
        let read = filter.unreadable.reading(|| {
            let mut data = data.take().map_or_else(|| DataSet::of_store(&bucket, &filter), Ok)?;
            let mut hosts = std::collections::BTreeSet::new();
            data.scan(&filter, &mut |catalog, row| {
                hosts.insert(catalog.runs[row.run].info.run_id.clone());
            })?;
            Ok::<_, DataSetError>(hosts)
        });
        assert_eq!(read.unwrap().into_iter().collect::<Vec<_>>(), ["run-of-web-1"], "{is_gone}");
        let skipped = filter.unreadable.skipped();
        assert_eq!((skipped.skipped.len(), skipped.looked_at), (1, 2), "{skipped:?}");
    }
}

#[test]
fn what_is_fetched_ahead_is_what_a_directory_has() {
    let (bucket, _) = bucket(&[("web-1", 0), ("web-2", 0)], 0);
    let first = Profile::of_store(&bucket, &Filter::default(), None).unwrap();
    let again = Profile::of_store(&bucket, &Filter::default(), None).unwrap();
    assert!(!first.entries.is_empty() && first.entries == again.entries);
    assert_eq!(first.overview.measured, again.overview.measured);
}
