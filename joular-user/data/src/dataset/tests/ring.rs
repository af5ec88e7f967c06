//! Tests recordings that go on for ever: they are cut into runs, and the oldest runs go.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    dataset::{
        DataSetError, OutputDirectory, ParquetOutput, audit,
        fixture::{self, *},
        read::{
            self,
            files::{self, RunFiles},
            run_row,
            stacks::ReadStacks,
        },
        reattribute,
        store::{self, Claim, ClaimKind, KeepFree, Limits, LocalDirectory, Object, Published, Ring, Room, Store},
        tables::Stacks,
        write::Rotated,
    },
    events::{EnergyReading, Event},
    model::{domain::FaultCause, domain::Reading, policy::Policy},
    output::{Output, OutputError},
    report::profile::{Filter, Names, Profile},
};

/// Ten seconds, of a run that begins six seconds before a full minute.
pub(super) const EVERY_NS: u64 = 10 * SECOND;

fn rotated(root: &Path, change: impl Fn(&mut Event)) {
    let output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), FLUSH_NS);
    play_output(Rotated::new(output, EVERY_NS), change);
}

/// Gives a run's events to an output, all reads of energy being good unless changed.
pub(super) fn play_output(mut output: impl Output, change: impl Fn(&mut Event)) {
    let mut engine = crate::attribution::Engine::default();
    for mut event in fixture::events(Policy::default()) {
        if let Event::Energy(reading) = &mut event {
            good(reading);
        }
        change(&mut event);
        match &event {
            Event::RunStarted(run) => output.run_started(run).unwrap(),
            Event::Process(process) => output.process(process),
            Event::RunEnded(end) => output.run_ended(end).unwrap(),
            _ => {}
        }
        if let Some(report) = engine.apply(&event) {
            output.window(&report, engine.table()).unwrap();
        }
    }
}

/// Counters that count a joule a second.
fn good(reading: &mut EnergyReading) {
    let joules = reading.read_at.0 / SECOND;
    reading.readings.iter_mut().for_each(|reading| *reading = Reading::CounterUj(joules * 1_000_000));
}

fn no_change(_: &mut Event) {}

/// Counters of one second cannot be read.
fn failing(second: u64) -> impl Fn(&mut Event) {
    move |event| {
        if let Event::Energy(reading) = event
            && reading.read_at.0 / SECOND == second
        {
            reading.readings.iter_mut().for_each(|reading| *reading = Reading::failed(FaultCause::Gone, "gone"));
        }
    }
}

pub(super) fn audited(root: &Path) -> Vec<audit::RunAudit> {
    let audits = audit::run(root).unwrap();
    for audit in &audits {
        assert_eq!(audit.told, [""; 0], "{}", audit.run_id);
    }
    audits
}

pub(super) fn windows(audits: &[audit::RunAudit]) -> Vec<(&str, u64)> {
    audits.iter().map(|audit| (audit.run_id.trim_start_matches(RUN_ID), audit.windows)).collect()
}

#[test]
fn a_run_ends_where_the_wall_clock_passes_a_multiple_and_each_is_whole() {
    let root = tempfile::tempdir().unwrap();
    rotated(root.path(), no_change);
    let audits = audited(root.path());
    assert_eq!(windows(&audits), [("", 6), (".0001", 10), (".0002", 10), (".0003", 4)]);
    assert!(audits.iter().all(|audit| audit.has_ended));
    // Together they are what one run is.
    let whole = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(whole.path(), None).unwrap(), FLUSH_NS);
    play_output(output, no_change);
    let sum = |audits: &[audit::RunAudit]| {
        let sum = |of: fn(&audit::RunAudit) -> u64| audits.iter().map(of).sum::<u64>();
        [
            sum(|audit| audit.windows),
            sum(|audit| audit.measured_uj),
            sum(|audit| audit.attributed_uj),
            sum(|audit| audit.samples),
        ]
    };
    assert_eq!(sum(&audits), sum(&audited(whole.path())));
}

/// Energy that the first window of each run owes, µJ, all domains together.
fn owed_by_first_windows(root: &Path) -> Vec<u64> {
    let store = store::open(root).unwrap();
    let of_run = |files: &RunFiles| {
        let domains = run_row::read(&files.row).unwrap().info.domains;
        let (_, part) = files.parts.first().unwrap();
        let mut stacks = ReadStacks::default();
        stacks.read(part.file::<Stacks>().unwrap()).unwrap();
        let first = read::windows::read(part, &domains, &stacks).unwrap().0.swap_remove(0);
        first.work.domains.iter().map(|domain| domain.owed.unwrap_or_default().0).sum()
    };
    files::find(&store).unwrap().iter().map(of_run).collect()
}

/// Idle power of 1.2 W is to be set apart where counters show a watt.
#[test]
fn a_run_goes_on_with_the_idle_energy_that_the_one_before_it_owes() {
    let [root, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    rotated(root.path(), |event| {
        if let Event::RunStarted(run) = event {
            run.policy.idle_milliwatts = 1_200;
        }
    });
    assert_eq!(audited(root.path()).len(), 4);
    let owed = owed_by_first_windows(root.path());
    assert!(owed[0] == 0 && owed[1..].iter().all(|owed| *owed > 1_000_000), "{owed:?}");
    reattribute::run::<DataSetError>(root.path(), again.path(), None, |run| Ok(run.policy.clone())).unwrap();
    assert_eq!(fixture::files(again.path()), fixture::files(root.path()));
}

#[test]
fn each_run_knows_its_processes() {
    let root = tempfile::tempdir().unwrap();
    rotated(root.path(), no_change);
    for run in ["", ".0001", ".0003"] {
        let runs = Names::parse(&[format!("{RUN_ID}{run}")]).unwrap();
        let profile = Profile::read(root.path(), &Filter { runs, ..Filter::default() }, None).unwrap();
        let jvm = profile.catalog.processes.iter().find(|process| process.pid.0 == 1).unwrap();
        assert_eq!(jvm.comm.raw(), "java1", "{run}");
        let rows = fixture::files(root.path());
        let name = format!("{RUN_ID}{run}-0000.parquet");
        assert!(rows.iter().any(|(path, _)| path.starts_with("processes") && path.ends_with(&name)), "{run}");
    }
}

#[test]
fn a_process_is_one_in_all_runs_of_a_recording() {
    let processes = |root: &Path| {
        let profile = Profile::read(root, &Filter::default(), None).unwrap();
        let mut processes: Vec<_> = profile
            .catalog
            .processes
            .iter()
            .map(|process| (process.pid, process.start, process.comm.clone()))
            .collect();
        processes.sort();
        (processes, profile.energy(), profile.catalog.threads.len())
    };
    let [cut, whole] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    rotated(cut.path(), no_change);
    play_output(ParquetOutput::new(OutputDirectory::create(whole.path(), None).unwrap(), FLUSH_NS), no_change);
    assert_eq!(processes(cut.path()), processes(whole.path()));
}

#[test]
fn a_run_waits_for_energy_that_is_to_come_but_not_for_ever() {
    let root = tempfile::tempdir().unwrap();
    // The reading that ends the sixth window fails: its energy comes with the seventh.
    rotated(root.path(), failing(6));
    assert_eq!(windows(&audited(root.path()))[..2], [("", 7), (".0001", 9)]);
    let root = tempfile::tempdir().unwrap();
    rotated(root.path(), |event| {
        if let Event::Energy(reading) = event
            && reading.read_at.0 / SECOND > 3
        {
            failing(reading.read_at.0 / SECOND)(event);
        }
    });
    assert_eq!(windows(&audited(root.path())), [("", 16), (".0001", 14)]);
}

/// A directory on a disk with room for so many bytes.
#[derive(Debug)]
pub(super) struct SmallDisk {
    pub(super) directory: LocalDirectory,
    pub(super) most: Arc<AtomicU64>,
}

impl SmallDisk {
    fn used(&self) -> u64 {
        fixture::files(self.directory.path()).iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

impl Store for SmallDisk {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>, DataSetError> {
        self.directory.list(table, most)
    }

    fn open(&self, file: &Path) -> Result<Object, DataSetError> {
        self.directory.open(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        if self.used() + bytes.len() as u64 > self.most.load(Ordering::Relaxed) {
            return Err(OutputError::DiskFull { path: folder.join(name) });
        }
        self.directory.publish(folder, name, bytes)
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        if self.find(folder, name)?.is_some() {
            return Ok(Published::AlreadyThere);
        }
        self.publish(folder, name, bytes).map(|()| Published::Created)
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.directory.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.directory.find(folder, name)
    }

    fn room(&self) -> Option<Room> {
        let bytes = self.most.load(Ordering::Relaxed);
        Some(Room { bytes, free_bytes: bytes.saturating_sub(self.used()), files: 0, free_files: 0 })
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.directory.claim(kind)
    }
}

/// Writes a rotated run through a ring, and returns what it told.
fn through_ring(root: &Path, limits: Limits, most: u64) -> Vec<String> {
    let directory = LocalDirectory::new(root, None);
    let claim = directory.claim(ClaimKind::Write).unwrap();
    let (told, announced) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(BTreeSet::new())));
    let (listener, going) = (Arc::clone(&told), Arc::clone(&announced));
    let disk = SmallDisk { directory, most: Arc::new(most.into()) };
    let ring = Ring::new(Arc::new(disk), limits, move |line| listener.lock().unwrap().push(line.to_owned()))
        .announcing(move |run, _| assert!(going.lock().unwrap().insert(run.clone()), "{run:?} goes twice"));
    play_output(Rotated::new(ParquetOutput::into_store(Box::new(ring), claim, FLUSH_NS), EVERY_NS), no_change);
    // Each run is there, or it was announced that it goes.
    let left = audited(root).into_iter().map(|audit| ("host=node-1".to_owned(), audit.run_id));
    let announced = announced.lock().unwrap();
    let all: BTreeSet<_> = left.chain(announced.iter().cloned()).collect();
    let every: BTreeSet<_> =
        ["", ".0001", ".0002", ".0003"].map(|end| ("host=node-1".to_owned(), format!("{RUN_ID}{end}"))).into();
    assert_eq!(all, every);
    let told = told.lock().unwrap();
    told.clone()
}

fn size(root: &Path) -> u64 {
    fixture::files(root).iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

#[test]
fn the_oldest_runs_go_when_there_is_too_much() {
    let root = tempfile::tempdir().unwrap();
    let all = {
        through_ring(root.path(), Limits::default(), u64::MAX);
        audited(root.path())
    };
    assert_eq!(all.len(), 4);
    // Of the last run but one 10 s fit; the one that is being written is not counted.
    for (time_ns, left) in [
        (5 * SECOND, [".0003"].as_slice()),
        (15 * SECOND, &[".0002", ".0003"]),
        (25 * SECOND, &[".0001", ".0002", ".0003"]),
    ] {
        let root = tempfile::tempdir().unwrap();
        let limits = Limits { time_ns: Some(time_ns), ..Limits::default() };
        let told = through_ring(root.path(), limits, u64::MAX);
        let audits = audited(root.path());
        assert_eq!(audits.iter().map(|audit| audit.run_id.trim_start_matches(RUN_ID)).collect::<Vec<_>>(), left);
        assert_eq!(told, [""; 0], "that is what was asked for");
    }
    let whole = size(root.path());
    let root = tempfile::tempdir().unwrap();
    through_ring(root.path(), Limits { bytes: Some(whole / 2), ..Limits::default() }, u64::MAX);
    let audits = audited(root.path());
    assert!(audits.len() < 4 && audits.last().is_some_and(|last| last.run_id.ends_with(".0003")), "{audits:?}");
    // Nothing stays of what went, not even a folder of its date.
    let folders: Vec<_> =
        std::fs::read_dir(root.path().join("branches")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(folders, ["date=2026-03-02"]);
}

#[test]
fn a_full_disk_costs_the_oldest_run_and_never_the_recording() {
    let whole = tempfile::tempdir().unwrap();
    through_ring(whole.path(), Limits::default(), u64::MAX);
    let most = size(whole.path()) * 2 / 3;
    let root = tempfile::tempdir().unwrap();
    let told = through_ring(root.path(), Limits::default(), most);
    let audits = audited(root.path());
    assert!(!told.is_empty() && told.iter().all(|line| line.contains("removed the oldest run")), "{told:?}");
    assert_eq!(audits.len() + told.len(), 4, "{told:?}");
    assert!(audits.last().is_some_and(|last| last.run_id.ends_with(".0003") && last.windows == 4));
    assert!(size(root.path()) <= most);
}

#[test]
fn others_keep_what_they_are_to_have() {
    let whole = tempfile::tempdir().unwrap();
    through_ring(whole.path(), Limits::default(), u64::MAX);
    let most = size(whole.path());
    let root = tempfile::tempdir().unwrap();
    let limits = Limits { keep_free: Some(KeepFree::Bytes(most / 3)), ..Limits::default() };
    let told = through_ring(root.path(), limits, most);
    let audits = audited(root.path());
    assert!(!told.is_empty() && told.iter().all(|line| line.contains("less than --keep-free would stay free")));
    assert_eq!(audits.len() + told.len(), 4, "{told:?}");
    assert!(size(root.path()) <= most - most / 3);
}

#[test]
fn a_disk_that_is_full_of_something_else_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let directory = LocalDirectory::new(root.path(), None);
    let disk = SmallDisk { directory, most: Arc::new(10.into()) };
    let ring = Ring::new(Arc::new(disk), Limits::default(), |_| {});
    let folder = PathBuf::from_iter(["runs", "date=2026-03-01", "host=a"]);
    let written = ring.publish(&folder, "a-0000.parquet", b"more than ten bytes");
    assert!(matches!(written, Err(OutputError::DiskFull { .. })), "{written:?}");
}

#[test]
fn what_a_crash_left_of_a_removed_run_goes_first() {
    let root = tempfile::tempdir().unwrap();
    rotated(root.path(), no_change);
    let files: BTreeMap<String, u64> =
        fixture::files(root.path()).into_iter().map(|(name, bytes)| (name, bytes.len() as u64)).collect();
    // The windows of the first run have gone, and nothing else yet.
    let first = |name: &str| name.contains(&format!("{RUN_ID}-"));
    for name in files.keys().filter(|name| name.starts_with("windows") && first(name)) {
        std::fs::remove_file(root.path().join(name)).unwrap();
    }
    let ring = Ring::new(
        store::open(root.path()).unwrap(),
        Limits { bytes: Some(u64::MAX), time_ns: Some(24 * SECOND), keep_free: None },
        |_| {},
    );
    let folder = PathBuf::from_iter(["runs", "date=2026-03-02", "host=node-1"]);
    ring.publish(&folder, "other-0000.parquet", b"any").unwrap();
    std::fs::remove_file(root.path().join(folder).join("other-0000.parquet")).unwrap();
    assert_eq!(windows(&audited(root.path())), [(".0001", 10), (".0002", 10), (".0003", 4)]);
}
