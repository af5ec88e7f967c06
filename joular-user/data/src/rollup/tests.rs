use std::{collections::BTreeMap, path::Path};

use tempfile::TempDir;

use super::{RolledUp, run};
use crate::{
    dataset::{
        DataSetError, OutputDirectory, ParquetOutput, audit, fixture,
        fixture::{FLUSH_NS, SECOND, WINDOWS},
        reattribute,
        tampering::{file, tamper},
    },
    model::policy::Policy,
    redact::Redaction,
    report::profile::{DataSet, Filter, Profile},
};

fn recorded() -> TempDir {
    recorded_in_files_of(FLUSH_NS)
}

fn recorded_in_files_of(flush_ns: u64) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), flush_ns);
    let policy = Policy { calibration: Some(fixture::calibrated()), ..Policy::default() };
    fixture::play(output, policy, fixture::RUN_ID);
    root
}

fn rolled_up(from: &Path, seconds: u64) -> (TempDir, RolledUp) {
    let to = tempfile::tempdir().unwrap();
    let done = run(from, to.path(), seconds * SECOND, None, &Redaction::default()).unwrap();
    (to, done)
}

fn audited(root: &Path) -> audit::RunAudit {
    let audits = audit::run(root).unwrap();
    let [audit] = &audits[..] else { panic!("{audits:?}") };
    audit.clone()
}

#[test]
fn all_sums_of_a_run_are_those_of_its_rollup() {
    let recorded = recorded();
    let before = audited(recorded.path());
    for seconds in [5, 10, 60, 3600] {
        let (rollup, done) = rolled_up(recorded.path(), seconds);
        let after = audited(rollup.path());
        assert_eq!(after.told, [""; 0], "{seconds} s");
        assert_eq!((done.runs, done.windows_before, done.windows_after), (1, WINDOWS, after.windows));
        let sums = |audit: &audit::RunAudit| {
            let energies = [audit.measured_uj, audit.attributed_uj, audit.static_uj, audit.unattributed_uj];
            (energies, audit.profiler_uj, audit.samples, audit.lost, audit.label)
        };
        assert_eq!(sums(&after), sums(&before), "{seconds} s");
        assert!(after.branches < before.branches && after.quality < before.quality, "{after:?}");
    }
}

/// The run begins six seconds before midnight.
#[test]
fn windows_are_cut_by_the_wall_clock() {
    let recorded = recorded();
    let lengths = |seconds| {
        let (rollup, _) = rolled_up(recorded.path(), seconds);
        let mut windows = BTreeMap::new();
        let mut data = DataSet::open(rollup.path(), &Filter::default()).unwrap();
        data.scan(&Filter::default(), &mut |_, row| _ = windows.insert(row.window_start, row.window_ns / SECOND))
            .unwrap();
        windows.into_values().collect::<Vec<_>>()
    };
    assert_eq!(lengths(10), [6, 10, 10, 4]);
    assert_eq!(lengths(60), [6, 24]);
    assert_eq!(lengths(7)[1..4], [7, 7, 7]);
}

type Entry = (u64, u64, u64, u64);

/// What a report is made from, by process, category of thread and call path, and what of it is squares.
fn figures(root: &Path, no_infer: bool) -> (BTreeMap<(u32, &'static str, String), Entry>, f64) {
    let profile = Profile::read(root, &Filter { no_infer, ..Filter::default() }, None).unwrap();
    let (mut entries, mut squares) = (BTreeMap::new(), 0.0);
    for entry in &profile.entries {
        let thread = profile.catalog.thread(entry.thread);
        let path: Vec<String> = profile
            .catalog
            .paths
            .frames_of(entry.path)
            .map(|frame| format!("{:?} {} {:?}", frame.kind, frame.method(), frame.line))
            .collect();
        let key = (profile.catalog.process(thread.process).pid.0, thread.category.name(), path.join(";"));
        let sum: &mut Entry = entries.entry(key).or_default();
        sum.0 += entry.energy.0;
        sum.1 += entry.cpu_ns;
        sum.2 += entry.samples;
        sum.3 += entry.inferred.0;
        squares += entry.squares;
    }
    entries.retain(|_, entry| *entry != (0, 0, 0, 0));
    (entries, squares)
}

#[test]
fn a_report_of_a_rollup_says_what_one_of_the_run_says() {
    let recorded = recorded();
    let (rollup, _) = rolled_up(recorded.path(), 10);
    for no_infer in [false, true] {
        let (expected, expected_squares) = figures(recorded.path(), no_infer);
        let (found, squares) = figures(rollup.path(), no_infer);
        assert_eq!(found, expected, "no_infer: {no_infer}");
        let inferred: u64 = found.values().map(|entry| entry.3).sum();
        assert_eq!(inferred > 0, !no_infer, "{inferred}");
        // They are written to two digits, which may be 5 % off for one row.
        assert!((squares / expected_squares - 1.0).abs() < 0.02, "{squares} {expected_squares}");
    }
}

/// What a report has of bytes and counts, by process, category of thread, call path and class, and what of each measure is squares.
#[allow(clippy::type_complexity, reason = "keys that say what they are")]
fn amounts(
    root: &Path,
) -> (BTreeMap<(&'static str, u32, &'static str, String, String), u64>, BTreeMap<&'static str, f64>) {
    let profile = Profile::read(root, &Filter::default(), None).unwrap();
    let (mut amounts, mut squares) = (BTreeMap::new(), BTreeMap::new());
    for measure in profile.measures_beside_energy() {
        for fact in profile.facts(measure) {
            let thread = profile.catalog.thread(fact.thread);
            let path: Vec<String> =
                profile.catalog.paths.frames_of(fact.path).map(|frame| frame.method().raw().to_owned()).collect();
            let class = profile.class_of(&fact).map(|class| class.raw().to_owned()).unwrap_or_default();
            let process = profile.catalog.process(thread.process).pid.0;
            let key = (measure.name(), process, thread.category.name(), path.join(";"), class);
            *amounts.entry(key).or_default() += fact.amount;
            *squares.entry(measure.name()).or_default() += fact.sampled.squares;
        }
    }
    amounts.retain(|_, amount| *amount > 0);
    (amounts, squares)
}

#[test]
fn bytes_and_counts_of_a_rollup_are_those_of_the_run() {
    let recorded = recorded();
    let (expected, expected_squares) = amounts(recorded.path());
    assert!(expected_squares.len() > 8, "{expected_squares:?}");
    for seconds in [10, 60] {
        let (rollup, _) = rolled_up(recorded.path(), seconds);
        let (found, squares) = amounts(rollup.path());
        assert_eq!(found, expected, "{seconds} s");
        for (measure, expected) in &expected_squares {
            // A counter that stayed 0 has no rows.
            let found = squares.get(measure).copied().unwrap_or_default();
            assert!((found - expected).abs() <= 0.02 * expected, "{measure}: {found} {expected}");
        }
    }
}

/// In files of a second, samples that tell of a window are of stacks that later files describe.
#[test]
fn a_rollup_is_the_same_however_the_run_was_cut_into_files() {
    let tables = |flush_ns| {
        let recorded = recorded_in_files_of(flush_ns);
        let (rollup, _) = rolled_up(recorded.path(), 10);
        assert_eq!(audited(rollup.path()).told, [""; 0]);
        let is_cut_otherwise = |name: &str| name.starts_with("stacks") || name.starts_with("processes");
        let mut files = fixture::files(rollup.path());
        files.retain(|(name, _)| !is_cut_otherwise(name));
        files
    };
    assert!(tables(FLUSH_NS) == tables(3 * FLUSH_NS));
    assert!(tables(FLUSH_NS) == tables(SECOND));
}

#[test]
fn an_audit_of_a_rollup_finds_what_was_changed() {
    let recorded = recorded();
    for (table, column) in [
        ("branches", "energy_uj"),
        ("branches", "cpu_ns"),
        ("branches", "samples"),
        ("branches", "squares_uj2"),
        ("branches", "inferred_uj"),
        ("branches", "inferred_cpu_ns"),
        ("branches", "unsampled_uj"),
        ("methods", "total_uj"),
        ("methods", "inferred_self_uj"),
        ("methods", "inferred_total_uj"),
        ("threads", "energy_uj"),
        ("threads", "cpu_ns"),
        ("quality", "samples"),
        ("jvms", "energy_uj"),
        ("windows", "measured_uj"),
        ("windows", "idle_uj"),
        ("windows", "cpu_busy_ns"),
        ("runs", "attributed_uj"),
    ] {
        let (rollup, _) = rolled_up(recorded.path(), 10);
        tamper(&file(rollup.path(), table, 0), column, |values| {
            let value = values.iter_mut().flatten().max().unwrap();
            // Squares of methods are written to two digits.
            *value += 1 + *value / 2;
        });
        assert!(audited(rollup.path()).differences > 0, "{table}.{column}");
    }
}

#[test]
fn what_cannot_be_rolled_up_is_refused() {
    let recorded = recorded();
    let to = tempfile::tempdir().unwrap();
    let refused =
        |from: &Path, length_ns| run(from, to.path(), length_ns, None, &Redaction::default()).unwrap_err().to_string();
    for length_ns in [0, SECOND / 2, SECOND, SECOND * 3 / 2] {
        let message = refused(recorded.path(), length_ns);
        assert!(message.contains("its windows are 1 s long: name a multiple of that"), "{message}");
    }
    let (rollup, _) = rolled_up(recorded.path(), 10);
    let message = refused(rollup.path(), 60 * SECOND);
    assert!(message.contains("it is a rollup already"), "{message}");
    let message =
        run(recorded.path(), rollup.path(), 10 * SECOND, None, &Redaction::default()).unwrap_err().to_string();
    assert!(message.contains(fixture::RUN_ID), "{message}");
    let again = reattribute::run(rollup.path(), to.path(), None, |run| Ok::<_, DataSetError>(run.policy.clone()));
    assert!(matches!(again, Err(DataSetError::NoWeights { .. })), "{again:?}");
}
