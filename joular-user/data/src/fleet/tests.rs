use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use tempfile::TempDir;

use super::{Compacted, Made, Span, Tier, compact, tier::Opened, unit};
use crate::{
    dataset::{
        OutputDirectory, ParquetOutput,
        audit::{self, RunAudit},
        error::DataSetError,
        fixture::{self, FLUSH_NS, SECOND},
        fixture_store::FailingStore,
        store::{self, LocalDirectory, SHARE_MARK, SharedPlace, Store},
    },
    events::{Event, Service},
    model::{policy::Policy, units::UnixMicros},
    redact::Redaction,
    report::profile::{Filter, Profile},
    shipping::{self, Layout, Shipper},
};

pub(super) const MINUTE_US: i64 = 60_000_000;
pub(super) const MINUTE: Option<u64> = Some(60 * SECOND);

/// 2026-03-02T02:10Z: runs of the fixture begin at 23:00 of the day before.
pub(super) const NOW: UnixMicros = UnixMicros(1_772_417_400_000_000);

pub(super) fn share() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(SHARE_MARK), "").unwrap();
    root
}

/// Ships a run of a host with two services.
pub(super) fn ship(place: &Path, host: &str, version: &str, shift_us: i64) {
    ship_as(Layout::Bundles, place, host, version, shift_us);
}

pub(super) fn ship_as(layout: Layout, place: &Path, host: &str, version: &str, shift_us: i64) {
    ship_changed((layout, MINUTE), place, host, shift_us, |event| {
        if let Event::Process(process) = event {
            // One is called as what is of no service.
            let other = if version == "3" { "[hosts]" } else { "cart" };
            let name = if process.pid.0 == 1 { "shop" } else { other };
            process.service = Some(Service { name: name.into(), version: Some(version.into()), ..Service::default() });
        }
    });
}

/// Ships a run of a host that begins later by so much, with changed events.
/// Windows stay as they were recorded if no other length is given.
pub(super) fn ship_changed(
    (layout, window_ns): (Layout, Option<u64>),
    place: &Path,
    host: &str,
    shift_us: i64,
    change: impl Fn(&mut Event),
) {
    let recorded = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(recorded.path(), None).unwrap(), FLUSH_NS);
    fixture::play_changed(output, Policy::default(), |event| {
        change(event);
        match event {
            Event::RunStarted(run) => {
                (run.run_id, run.host) = (format!("{host}-1"), host.into());
                run.started.0 += shift_us;
            }
            Event::Window(window) => window.wall_start.0 += shift_us,
            Event::RunEnded(end) => end.ended.0 += shift_us,
            _ => {}
        }
    });
    let options = shipping::Options {
        window_ns,
        layout,
        looks_first: false,
        redaction: Redaction::default(),
        most_bytes_per_s: None,
        scratch: std::env::temp_dir(),
    };
    let to = SharedPlace::Directory { root: place.to_owned(), owner: None };
    let (passed, result) =
        Shipper::of_recorded(store::open(recorded.path()).unwrap(), to, options).unwrap().pass(&mut |_| false);
    result.unwrap();
    assert_eq!(passed.runs, 1);
}

/// A place of three hosts; runs of the last one go on in the next hour.
pub(super) fn fleet() -> TempDir {
    let place = share();
    ship(place.path(), "a", "1", 0);
    ship(place.path(), "b", "2", 0);
    ship(place.path(), "c", "2", 59 * MINUTE_US + 45_000_000);
    place
}

pub(super) const SPAN: Span = Span::of_hours(6, NOW);

pub(super) fn compacted(place: &Path) -> Compacted {
    let place = SharedPlace::Directory { root: place.to_owned(), owner: None };
    compact(&place, &SPAN, &std::env::temp_dir(), NOW).unwrap()
}

/// Files by name and content.
pub(super) fn assert_same(found: &[(String, Vec<u8>)], expected: &[(String, Vec<u8>)]) {
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(expected));
    let differ = found.iter().zip(expected).filter(|(found, expected)| found != expected);
    assert_eq!(differ.map(|((name, _), _)| name).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// What audits say of all runs together.
pub(super) fn sums(root: &Path) -> [u64; 8] {
    let audits = audit::run(root).unwrap();
    assert!(audit::is_well(&audits), "{}", audit::text(&audits));
    let sum = |figure: fn(&RunAudit) -> u64| audits.iter().map(figure).sum();
    [
        sum(|run| run.measured_uj),
        sum(|run| run.attributed_uj),
        sum(|run| run.static_uj),
        sum(|run| run.unattributed_uj),
        sum(|run| run.profiler_uj),
        sum(|run| run.samples),
        sum(|run| run.lost),
        audits.iter().filter(|run| run.has_ended).count().min(1) as u64,
    ]
}

/// By service, version and measure: what reports have.
pub(super) fn by_service(root: &Path) -> BTreeMap<String, u64> {
    let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(root, None));
    let profile = Profile::of_store(&store, &Filter::default(), None).unwrap();
    let mut sums = BTreeMap::new();
    for entry in &profile.entries {
        let process = profile.catalog.process(profile.catalog.thread(entry.thread).process);
        let name = |what| format!("{:?} {:?} {what}", process.service, process.version);
        for (what, amount) in [("energy", entry.energy.0), ("samples", entry.samples), ("ns", entry.cpu_ns)] {
            *sums.entry(name(what)).or_default() += amount;
        }
    }
    sums
}

#[test]
fn tiers_have_all_that_hosts_shipped_by_service_and_every_joule_is_accounted_for() {
    let place = fleet();
    let done = compacted(place.path());
    assert_eq!((done.minutes.units, done.minutes.left_out.len()), (3, 0), "{done:?}");
    assert_eq!(done.hourly.units, 2, "windows are of two days: {done:?}");
    let (shipped, of_services) = (sums(place.path()), by_service(place.path()));
    assert!(shipped[0] > 0 && of_services.len() >= 12, "{of_services:?}");
    for tier in Tier::ALL {
        let root = place.path().join(tier.folder());
        assert_eq!(sums(&root), shipped, "{tier:?}");
        assert_eq!(by_service(&root), of_services, "{tier:?}");
    }
}

#[test]
fn what_was_summed_is_not_summed_again_and_a_host_that_is_late_is_taken() {
    let place = fleet();
    compacted(place.path());
    let before = fixture::files(place.path());
    let again = compacted(place.path());
    assert_eq!(again.minutes, Made { unchanged: 3, ..Made::default() });
    assert_eq!(again.hourly, Made { unchanged: 2, ..Made::default() });
    assert_same(&fixture::files(place.path()), &before);
    ship(place.path(), "d", "3", 0);
    let late = compacted(place.path());
    assert_eq!((late.minutes.units, late.minutes.unchanged), (2, 1), "its hour may go on in the next one: {late:?}");
    assert_eq!(sums(&place.path().join("hourly")), sums(place.path()));
    // As if it had been there at once.
    let at_once = fleet();
    ship(at_once.path(), "d", "3", 0);
    compacted(at_once.path());
    assert_same(&fixture::files(at_once.path()), &fixture::files(place.path()));
}

#[test]
fn an_interruption_anywhere_leaves_what_the_next_one_makes_whole() {
    let (undisturbed, disturbed) = (fleet(), fleet());
    compacted(undisturbed.path());
    let opened = |left| {
        let place = SharedPlace::Directory { root: disturbed.path().to_owned(), owner: None };
        Tier::ALL.map(|tier| {
            let opened = Opened::new(&place, tier).unwrap();
            let to = Arc::new(FailingStore::taking(left, &disturbed.path().join(tier.folder())));
            (tier, Opened { to: to.clone(), ..opened }, to)
        })
    };
    let mut interruptions = 0;
    for left in 0.. {
        // Claims of those who were interrupted have ended.
        let now = UnixMicros(NOW.0 + interruptions * 60 * MINUTE_US);
        let mut has_failed = false;
        for (tier, opened, store) in opened(left) {
            let mut fails = false;
            for of in tier.units(&SPAN) {
                fails |= unit::sum(&opened, of, &std::env::temp_dir(), now, &mut Made::default()).is_err();
            }
            assert!(!fails || store.left.load(Ordering::Relaxed) == 0, "{left}");
            has_failed |= fails;
        }
        if !has_failed {
            break;
        }
        interruptions += 1;
    }
    assert!(interruptions > 3, "{interruptions}");
    assert_same(&fixture::files(disturbed.path()), &fixture::files(undisturbed.path()));
    assert_eq!(sums(&disturbed.path().join("hourly")), sums(disturbed.path()));
}

#[test]
fn a_source_that_cannot_be_read_is_left_out_and_named() {
    let place = fleet();
    let (name, bytes) = fixture::files(place.path()).into_iter().find(|(name, _)| name.contains("host=b")).unwrap();
    fs::write(place.path().join(&name), &bytes[..bytes.len() / 2]).unwrap();
    let done = compacted(place.path());
    assert!(done.left_out().any(|line| line.contains(&name)), "{done:?}");
    let named = compacted(place.path());
    assert!(
        named.left_out().any(|line| line.contains(&name)) && named.minutes.units == 0,
        "as long as it is so: {named:?}"
    );
    // A program that can read it, or the whole file, comes later.
    fs::write(place.path().join(&name), &bytes).unwrap();
    assert_eq!(compacted(place.path()).left_out().count(), 0);
    assert_eq!(sums(&place.path().join("hourly")), sums(place.path()), "all are summed");
}

#[test]
fn runs_that_are_files_of_tables_are_said_to_be_left_out() {
    let place = fleet();
    ship_as(Layout::Tables, place.path(), "d", "1", 0);
    // In both layouts it is a bundle.
    ship_as(Layout::Tables, place.path(), "a", "1", 0);
    let done = compacted(place.path());
    let [line] = &*done.left_out().collect::<Vec<_>>() else { panic!("{done:?}") };
    assert!(line.starts_with("1 run as files of tables") && line.contains("host=d"), "{line}");
    assert_eq!(done.minutes.runs, compacted(fleet().path()).minutes.runs);
}

#[test]
fn one_at_a_time_sums_an_hour_but_for_those_who_never_end() {
    let place = fleet();
    let root = SharedPlace::Directory { root: place.path().to_owned(), owner: None };
    let minutes = Opened::new(&root, Tier::Minutes).unwrap().to;
    for (age_us, claimed) in [(MINUTE_US, 1), (31 * MINUTE_US, 0)] {
        let claim = format!("{{\"since_us\":{}}}", NOW.0 - age_us);
        let folder = Path::new("claims/date=2026-03-01/hour=23");
        minutes.publish(folder, "claim.json", claim.as_bytes()).unwrap();
        assert_eq!(compacted(place.path()).minutes.claimed, claimed, "{age_us}");
    }
    assert!(!place.path().join("minutes/claims/date=2026-03-01/hour=23/claim.json").exists(), "it has ended");
    assert_eq!(sums(&place.path().join("minutes")), sums(place.path()));
}

#[test]
fn a_place_without_bundles_has_empty_tiers() {
    let place = share();
    assert_eq!(compacted(place.path()), Compacted::default());
    let error = audit::run(&place.path().join("minutes")).unwrap_err();
    assert!(matches!(error, DataSetError::NoRun { .. }), "{error}");
}
