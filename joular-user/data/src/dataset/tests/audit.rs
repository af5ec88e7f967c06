use std::{collections::HashMap, fs, path::Path, sync::Arc};

use arrow_array::{Array as _, ArrayRef, BooleanArray, StringArray, cast::AsArray as _};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::properties::WriterProperties,
};

use crate::{
    dataset::{
        DataSetError, OutputDirectory, ParquetOutput, audit,
        fixture::*,
        tampering::{file, rewrite, tamper},
    },
    events::{Event, LossCount},
    model::policy::Policy,
    output::Output as _,
    redact::Redaction,
    report::profile::{Filter, Profile},
    rollup,
};

fn policy() -> Policy {
    Policy { idle_milliwatts: 5_000, calibration: Some(calibrated()), ..Policy::default() }
}

fn data_set() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), policy());
    root
}

fn add_one(values: &mut [Option<i64>]) {
    let value = values.iter_mut().flatten().max().unwrap();
    *value += 1;
}

#[test]
fn a_data_set_as_it_was_written_adds_up() {
    let root = data_set();
    let audits = audit::run(root.path()).unwrap();
    assert_eq!(audits.len(), 1);
    assert_eq!(audits[0].told, [""; 0]);
    assert_eq!(audits[0].windows, WINDOWS);
    assert!(audits[0].measured_uj > 0 && audits[0].read_failed > 0);
    let sum = audits[0].attributed_uj + audits[0].static_uj + audits[0].unattributed_uj;
    assert_eq!(sum, audits[0].measured_uj);
    assert!(audit::text(&audits).ends_with("every microjoule is accounted for\n"));
}

/// One more, in any column that has to do with energy or time.
#[test]
fn one_microjoule_is_found_wherever_it_is() {
    for (table, column) in [
        ("windows", "measured_uj"),
        ("windows", "attributed_uj"),
        ("windows", "static_uj"),
        ("windows", "unattributed_uj"),
        ("windows", "other_processes_uj"),
        ("windows", "profiler_uj"),
        ("windows", "failed_reads_uj"),
        ("windows", "unshared_uj"),
        ("windows", "suspended_uj"),
        ("windows", "suspended_ns"),
        ("windows", "clock_step_us"),
        ("windows", "cpu_idle_ns"),
        ("threads", "energy_uj"),
        ("threads", "cpu_ns"),
        ("branches", "energy_uj"),
        ("branches", "samples"),
        ("branches", "cpu_ns"),
        ("methods", "self_uj"),
        ("methods", "total_uj"),
        ("methods", "total_sigma_uj"),
        ("methods", "self_squares_uj2"),
        ("quality", "energy_uj"),
        ("quality", "cpu_ns"),
        ("quality", "samples"),
        ("jvms", "energy_uj"),
        ("jvms", "vm_tax_uj"),
        ("jvms", "gc_uj"),
        ("jvms", "c2_cpu_ns"),
        ("jvms", "samples"),
        ("weights", "cpu_ns"),
        ("weights", "samples"),
        ("runs", "measured_uj"),
    ] {
        let root = data_set();
        tamper(&file(root.path(), table, 0), column, |values| add_one(values));
        let audits = audit::run(root.path()).unwrap();
        assert!(audits[0].differences > 0, "{table}.{column}");
        let text = audit::text(&audits);
        assert!(text.contains("WRONG: ") && text.contains("figures are wrong"), "{table}.{column}: {text}");
    }
}

/// Causes outside the kernel have no columns of their own.
#[test]
fn every_loss_keeps_its_cause() {
    let root = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), SECOND);
    let lost = |cause: &str, count| LossCount { cause: cause.to_owned(), count };
    play_changed(output, policy(), |event| {
        let Event::Window(window) = event else { return };
        window.losses = vec![lost("stack_ring_full", 1), lost("late_boundary", window.index), lost("mark_dropped", 0)];
    });
    let losses = |root: &Path| Profile::read(root, &Filter::default(), None).unwrap().overview.losses;
    let expected = losses(root.path());
    assert_eq!(expected.keys().collect::<Vec<_>>(), ["late_boundary", "stack_ring_full"]);
    assert!(expected["late_boundary"] > expected["stack_ring_full"]);
    let longer = tempfile::tempdir().unwrap();
    rollup::run(root.path(), longer.path(), 2 * SECOND, None, &Redaction::default()).unwrap();
    assert_eq!(losses(longer.path()), expected);

    tamper(&file(root.path(), "windows", 0), "lost_other", |values| add_one(values));
    let error = audit::run(root.path()).unwrap_err().to_string();
    assert!(error.contains("other_losses does not sum to lost_other"), "{error}");
}

/// What is said of stacks' quality beside their figures.
#[test]
fn a_quality_that_stacks_do_not_have_is_found() {
    let negated = |values: &ArrayRef| -> ArrayRef {
        let flags = values.as_boolean().iter().map(|flag| Some(flag != Some(true)));
        Arc::new(flags.collect::<BooleanArray>())
    };
    let renamed = |values: &ArrayRef| -> ArrayRef { Arc::new(StringArray::from(vec!["[stale]"; values.len()])) };
    type Change = fn(&ArrayRef) -> ArrayRef;
    for (column, change) in [("is_complete", negated as Change), ("unnamed", renamed as Change)] {
        let root = data_set();
        rewrite(&file(root.path(), "quality", 0), column, change);
        assert!(audit::run(root.path()).unwrap()[0].differences > 0, "{column}");
        let root = data_set();
        rewrite(&file(root.path(), "stacks", 0), column, change);
        let error = audit::run(root.path()).unwrap_err().to_string();
        assert!(error.contains("says of its quality what its frames do not"), "{column}: {error}");
    }
}

/// The CPU's time in the second window is not that of its threads, and the window has a loss of this cause.
fn with_inexact_time(cause: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), SECOND);
    play_changed(output, policy(), |event| {
        if let Event::Window(window) = event
            && window.index == 1
        {
            window.cpus[0].busy_ns += 5;
            window.losses = vec![LossCount { cause: cause.to_owned(), count: 5 }];
        }
    });
    root
}

#[test]
fn times_may_be_inexact_where_the_run_says_so_and_no_loss_of_events_excuses_them() {
    let root = with_inexact_time(LossCount::INEXACT_CPU_NS);
    let audits = audit::run(root.path()).unwrap();
    assert_eq!((audits[0].differences, audits[0].inexact_times), (0, 1), "{:?}", audits[0].told);
    let exact = audit::run(data_set().path()).unwrap();
    // The second window of the other data set lost one stack.
    assert_eq!(audits[0].lost + 1, exact[0].lost, "nanoseconds are not events");

    let root = with_inexact_time("late_boundary");
    let audits = audit::run(root.path()).unwrap();
    assert_eq!((audits[0].differences, audits[0].inexact_times), (2, 0), "{:?}", audits[0].told);
}

/// A microjoule that moves from one row to another leaves every sum as it is.
#[test]
fn a_microjoule_that_moved_is_found_because_it_does_not_follow_from_the_weights() {
    let root = data_set();
    let path = file(root.path(), "windows", 0);
    tamper(&path, "other_processes_uj", |values| *values[0].as_mut().unwrap() -= 1);
    tamper(&path, "kernel_uj", |values| *values[0].as_mut().unwrap() += 1);
    let audits = audit::run(root.path()).unwrap();
    assert_eq!(audits[0].differences, 2, "{:?}", audits[0].told);
    assert!(audits[0].told.iter().all(|told| told.contains("package of socket 0")), "{:?}", audits[0].told);
}

#[test]
fn missing_windows_and_files_are_found() {
    for (table, number) in [("windows", 1), ("windows", 4), ("threads", 0), ("methods", 2), ("weights", 1)] {
        let root = data_set();
        fs::remove_file(file(root.path(), table, number)).unwrap();
        let found = match audit::run(root.path()) {
            Ok(audits) => audits[0].differences > 0,
            Err(DataSetError::Damaged { .. }) => true,
            Err(error) => panic!("{table}: {error}"),
        };
        assert!(found, "{table} {number}");
    }
    let root = data_set();
    fs::remove_file(file(root.path(), "stacks", 0)).unwrap();
    let error = audit::run(root.path()).unwrap_err().to_string();
    assert!(error.contains("has no row"), "{error}");
}

#[test]
fn rows_that_belong_to_no_window_are_found_because_sums_would_count_them() {
    for table in ["methods", "threads", "branches", "quality", "jvms", "weights"] {
        let root = data_set();
        let path = file(root.path(), table, 0);
        fs::copy(&path, path.with_file_name("node-1-20260301T235954-4711-0099.parquet")).unwrap();
        let audits = audit::run(root.path()).unwrap();
        assert_eq!(audits[0].differences, 1, "{table}");
        assert!(audits[0].told[0].contains("belong to no window"), "{table}: {:?}", audits[0].told);
    }
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    let root = data_set();
    let path = file(root.path(), "methods", 0);
    fs::rename(&path, root.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(root.path().join("elsewhere"), &path).unwrap();
    assert!(matches!(audit::run(root.path()), Err(DataSetError::Io { .. })));
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(matches!(audit::run(root.path()), Err(DataSetError::NotAFile { .. })));
}

#[test]
fn a_run_that_did_not_end_is_audited_as_far_as_it_got() {
    let root = data_set();
    let runs = file(root.path(), "runs", 0);
    let directory = root.path().join("other");
    // The same run without its last files and its end.
    let unended = OutputDirectory::create(&directory, None).unwrap();
    ParquetOutput::new(unended, 1).run_started(&run_info(policy())).unwrap();
    fs::copy(file(&directory, "runs", 0), runs).unwrap();
    fs::remove_dir_all(directory).unwrap();
    fs::remove_file(file(root.path(), "windows", 4)).unwrap();
    let audits = audit::run(root.path()).unwrap();
    assert_eq!((audits[0].differences, audits[0].windows < WINDOWS), (0, true), "{:?}", audits[0].told);
}

#[test]
fn what_is_no_data_set_is_refused() {
    let root = data_set();
    let path = file(root.path(), "threads", 0);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(audit::run(root.path()), Err(DataSetError::Parquet { .. })));
    fs::write(&path, b"PAR1 this is not Parquet PAR1").unwrap();
    assert!(matches!(audit::run(root.path()), Err(DataSetError::Parquet { .. })));
    assert!(matches!(audit::run(&root.path().join("absent")), Err(DataSetError::Open { .. })));
}

#[test]
fn another_schema_is_refused_with_what_to_use_instead() {
    let (wrote, newer) = ("use the joular-bpf that wrote it", "use a newer joular-bpf");
    for (version, advice) in [("6", wrote), ("9", wrote), ("13", newer), ("99", newer), ("x", wrote)] {
        let root = data_set();
        let path = file(root.path(), "windows", 0);
        let bytes = bytes::Bytes::from(fs::read(&path).unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let schema = reader.schema().clone();
        let metadata = HashMap::from([("joular_bpf.schema_version", version)]);
        let pairs = metadata
            .into_iter()
            .map(|(key, value)| parquet::file::metadata::KeyValue::new(key.to_owned(), value.to_owned()));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs.collect())).build();
        let writer = ArrowWriter::try_new(fs::File::create(&path).unwrap(), schema, Some(properties)).unwrap();
        writer.close().unwrap();
        let error = audit::run(root.path()).unwrap_err().to_string();
        let said = format!(": it has schema version {version}, this joular-bpf reads versions 10 to 12: {advice}");
        assert!(error.ends_with(&said), "{version}: {error}");
    }
}
