use std::path::Path;

use crate::{
    dataset::{
        DataSetError,
        fixture::*,
        reattribute::{self, Rewritten},
    },
    model::policy::{IdlePolicy, Policy, PolicyChoices, WeightUnit},
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
