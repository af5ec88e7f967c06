use std::{collections::HashMap, path::Path};

use crate::{
    attribution::work::Factor,
    dataset::{
        DataSetError, OutputDirectory, ParquetOutput, audit,
        fixture::*,
        reattribute::{self, FittedFactors, Rewritten},
    },
    events::RunInfo,
    model::{
        cores::CoreType,
        domain::DividedBy,
        policy::{IdlePolicy, Policy, PolicyChoices, WeightUnit},
    },
    redact::{CommandLines, Redaction},
};

fn again_as(from: &Path, to: &Path, choices: &PolicyChoices) -> Result<Rewritten, DataSetError> {
    reattribute::run(from, to, None, |run| Ok(choices.clone().over(run.policy.clone())))
}

/// From every policy to every other: what a run with the other would have
/// written, byte for byte.
#[test]
fn a_data_set_attributed_again_is_what_the_run_would_have_written() {
    for weight_unit in [WeightUnit::Time, WeightUnit::Cycles] {
        let policies = [
            Policy { idle: IdlePolicy::Separate, idle_milliwatts: 5_000, ..Policy::default() },
            Policy { idle: IdlePolicy::Spread, smt_permille: 1_500, ..Policy::default() },
            Policy { idle: IdlePolicy::Active, calibration: Some(calibrated()), ..Policy::default() },
            Policy { calibration: Some(calibrated()), ..Policy::default() },
        ];
        let policies = policies.map(|policy| Policy { weight_unit, ..policy });
        let written = policies.clone().map(|policy| {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), policy);
            root
        });
        for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0)] {
            let again = tempfile::tempdir().unwrap();
            let target = policies[to].clone();
            let choices = PolicyChoices {
                idle: Some(target.idle),
                idle_milliwatts: Some(target.idle_milliwatts),
                smt_permille: Some(target.smt_permille),
                calibration: Some(target.calibration),
            };
            let rewritten = again_as(written[from].path(), again.path(), &choices).unwrap();
            assert_eq!((rewritten.runs, rewritten.windows), (1, WINDOWS));
            let (found, expected) = (files(again.path()), files(written[to].path()));
            let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&found), names(&expected));
            for ((name, found), (_, expected)) in found.iter().zip(&expected) {
                assert!(found == expected, "{name} differs, from {from} to {to}, {weight_unit:?}");
            }
        }
    }
}

/// Socket 1 is hybrid, memory is modelled; the rest is divided as ever.
fn write_hybrid(root: &Path, policy: Policy) {
    let of = |core, time_permille, cycles_permille| CoreType {
        name: format!("type{core}"),
        places: vec![(0, core), (1, core)],
        time_permille,
        cycles_permille,
        ..CoreType::default()
    };
    let types = DividedBy::CpuWeightsByCoreType(vec![of(0, 1_000, 1_000), of(1, 250, 333)]);
    let directory = OutputDirectory::create(root, None).unwrap();
    play_run(ParquetOutput::new(directory, FLUSH_NS), policy, |run| {
        run.domains[1].divided_by = types.clone();
        run.domains[4].divided_by = DividedBy::CpuTime;
    });
}

/// Fitted watts count beside weights of CPU time, and a model has none.
#[test]
fn fitted_watts_change_nothing_of_a_model() {
    let [recorded, fitted] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let directory = OutputDirectory::create(recorded.path(), None).unwrap();
    play_run(ParquetOutput::new(directory, FLUSH_NS), Policy::default(), |run| {
        run.domains.iter_mut().for_each(|domain| domain.divided_by = DividedBy::CpuTime);
    });
    let factors = FittedFactors { by: "thread".to_owned(), threads: HashMap::new(), others: Factor(500) };
    let policy = |run: &RunInfo| Ok::<_, DataSetError>(run.policy.clone());
    let redaction = Redaction::default().showing(CommandLines::Full);
    reattribute::with(recorded.path(), fitted.path(), None, &redaction, Some(&factors), policy).unwrap();
    assert!(files(recorded.path()) == files(fitted.path()));
}

#[test]
fn what_domains_are_divided_by_is_kept_audited_and_attributed_again() {
    let policies =
        [WeightUnit::Time, WeightUnit::Cycles].map(|weight_unit| Policy { weight_unit, ..Policy::default() });
    let (alike, hybrid, again) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (number, policy) in policies.into_iter().enumerate() {
        let [alike, hybrid, again] = [&alike, &hybrid, &again].map(|root| root.path().join(number.to_string()));
        write(&alike, policy.clone());
        write_hybrid(&hybrid, policy);
        assert!(audit::is_well(&audit::run(&hybrid).unwrap()));
        again_as(&hybrid, &again, &PolicyChoices::default()).unwrap();
        assert!(files(&again) == files(&hybrid), "attributed again under the same policy");
        assert!(files(&alike) != files(&hybrid), "coefficients count");
    }
}

/// Memory goes by what was allocated, and by cache misses.
#[test]
fn traffic_of_memory_is_kept_audited_and_attributed_again() {
    let root = tempfile::tempdir().unwrap();
    let by_time = root.path().join("time");
    write(&by_time, Policy::default());
    let spread = PolicyChoices { idle: Some(IdlePolicy::Spread), ..PolicyChoices::default() };
    for divided_by in [DividedBy::Allocation, DividedBy::CacheMisses] {
        let [by_traffic, again, other, back] =
            ["traffic", "again", "other", "back"].map(|name| root.path().join(divided_by.name()).join(name));
        let directory = OutputDirectory::create(&by_traffic, None).unwrap();
        play_run(ParquetOutput::new(directory, FLUSH_NS), Policy::default(), |run| {
            assert_eq!(run.domains[4].name, "dram");
            run.domains[4].divided_by = divided_by.clone();
        });
        let audits = audit::run(&by_traffic).unwrap();
        assert!(audit::is_well(&audits), "{divided_by:?}: {:?}", audits[0].told);
        // Targets' threads share by allocation what they have together; misses of all processes are known.
        let of_profiler = |root: &Path| audit::run(root).unwrap()[0].profiler_uj;
        let is_as_by_time = of_profiler(&by_traffic) == of_profiler(&by_time);
        assert_eq!(is_as_by_time, divided_by == DividedBy::Allocation);
        assert!(files(&by_traffic) != files(&by_time));
        again_as(&by_traffic, &again, &PolicyChoices::default()).unwrap();
        assert!(files(&again) == files(&by_traffic), "{divided_by:?}");
        again_as(&by_traffic, &other, &spread).unwrap();
        let separate = PolicyChoices { idle: Some(IdlePolicy::Separate), ..PolicyChoices::default() };
        again_as(&other, &back, &separate).unwrap();
        assert!(files(&back) == files(&by_traffic), "{divided_by:?}, by another policy and back");
    }
}

#[test]
fn policies_really_differ() {
    let roots = [IdlePolicy::Separate, IdlePolicy::Active].map(|idle| {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), Policy { idle, ..Policy::default() });
        root
    });
    let [separate, active] = roots.map(|root| files(root.path()));
    let differing = |table: &str| {
        let of_table = |files: &[(String, Vec<u8>)]| {
            files.iter().filter(|(name, _)| name.starts_with(table)).map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
        };
        of_table(&separate) != of_table(&active)
    };
    for (table, expected) in [("windows", true), ("threads", true), ("weights", false), ("stacks", false)] {
        assert_eq!(differing(table), expected, "{table}");
    }
}

#[test]
fn a_data_set_is_not_attributed_into_itself() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let before = files(root.path());
    let error = again_as(root.path(), root.path(), &PolicyChoices::default()).unwrap_err();
    assert!(error.to_string().contains("choose another directory with --output"), "{error}");
    assert_eq!(files(root.path()), before);
}
