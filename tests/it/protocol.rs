//! Tests `joular-bpf validate --protocol` on the machine that it simulates, whose truth is known.

use std::{fs, path::Path};

use joular_tests::process::Finished;
use serde_json::Value;

use crate::joular_bpf;

fn simulated(parent: &Path, name: &str, further: &[&str]) -> Finished {
    let [data, log] = ["out", "csv"].map(|end| parent.join(format!("{name}.{end}")).to_str().unwrap().to_owned());
    let line = ["validate", &data, "--protocol", "--simulate", "--reference", &log, "--rounds", "4", "--step", "16s"];
    joular_bpf(&[&line[..], further].concat())
}

fn json(finished: &Finished) -> Value {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

fn figure(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is not a number"))
}

/// A report knows nothing of these: the meter is 1.75 s ahead and shows the mean of the second before, and memory and disk are
/// in no domain.
#[test]
fn a_report_finds_what_is_true_of_a_simulated_machine() {
    let parent = tempfile::tempdir().unwrap();
    for seed in ["1", "2"] {
        let found = json(&simulated(parent.path(), seed, &["--seed", seed, "--json"]));
        assert_eq!(
            (&found["is_simulated"], &found["rounds"], &found["step_s"]),
            (&true.into(), &4.into(), &16.0.into())
        );
        let meter = &found["meter"];
        assert!((figure(&meter["clock_shift_s"]) - 2.25).abs() < 0.2, "{meter}");
        let gain = |program: &str| {
            let gains = meter["gain_by_program"].as_array().unwrap();
            figure(&gains.iter().find(|of| of["program"] == program).unwrap()["gain"]["value"])
        };
        // Memory draws 14 W beside 31 in its domain.
        assert!(gain("memory") > gain("compute") + 0.2, "{meter}");
        assert_eq!(meter["gains_differ"], true, "{meter}");
        assert!(figure(&meter["held_out"]["predicted"]) > 0.8, "{meter}");
        let step =
            |name: &str| found["steps"].as_array().unwrap().iter().find(|of| of["step"] == name).unwrap().clone();
        assert_eq!(found["steps"].as_array().unwrap().len(), 24);
        let memory = &step("memory-100")["beyond_line_w"];
        assert!(figure(&memory["value"]) > 3.0 * figure(&memory["within"]), "one line is too low for memory: {memory}");
        check_pairs(&found);
    }
}

/// By watts of the model: 5 and 3.2 W a core, and 6 of caches for memory; 7.5 for vectors; 3 for files in 0.3 of the time.
fn check_pairs(found: &Value) {
    for pair in found["pairs"].as_array().unwrap() {
        let names: Vec<&str> = pair["programs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let given = figure(&pair["given"]["value"]);
        let [domains, meter] = [0, 1].map(|at| &pair["alone"][at]);
        assert_eq!((&domains["by"], &meter["by"]), (&"domains".into(), &"meter".into()));
        let [share, error] = ["share", "error"].map(|of| figure(&domains[of]["value"]));
        assert!((given - share - error).abs() < 1e-9, "{pair}");
        match names.as_slice() {
            ["compute", "vector"] => {
                // Both run all the time, so both are given half; one draws 5 parts of 12.5.
                assert!((given - 0.5).abs() < 0.001 && (share - 0.4).abs() < 0.01, "{pair}");
                let within = figure(&domains["error"]["within"]);
                assert!((error - 0.1).abs() < 0.02 && error > within, "{pair}");
                // Hyper-threads: both together draw less than one after the other.
                assert!(figure(&domains["together"]["value"]) < 0.8, "{pair}");
            }
            ["compute", "memory"] => {
                // What the meter sees of memory is in no domain.
                assert!(figure(&meter["share"]["value"]) < share - 0.05, "{pair}");
            }
            ["memory", "io"] => assert!(share > 0.7 && given > 0.7, "{pair}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_report_says_that_the_machine_is_simulated_and_what_is_true_of_it() {
    let parent = tempfile::tempdir().unwrap();
    let finished = simulated(parent.path(), "a", &["--seed", "3"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    for expected in [
        "# Validation of joular-bpf",
        "The machine and the meter are simulated. Nothing here was measured.",
        "4 rounds of 24 steps of 16 s",
        "class 0.5 %",
        "`compute-75`",
        "The gains differ",
        "## Two programs side by side",
        "## The truth of the simulation",
        "| `compute+vector` | 40.0 |",
    ] {
        assert!(finished.stdout.contains(expected), "{expected}: {}", finished.stdout);
    }
    // The same again, from what is there: without its truth, which no data set has.
    let [data, log] = ["a.out", "a.csv"].map(|name| parent.path().join(name).to_str().unwrap().to_owned());
    let again = joular_bpf(&["validate", &data, "--protocol", "--reference", &log, "--meter-class", "0.5"]);
    assert_eq!(again.code(), Some(0), "{again:?}");
    assert!(again.stderr.contains("it is not recorded again"), "{again:?}");
    assert_eq!(again.stdout, finished.stdout.split("## The truth of").next().unwrap().trim_end());
    // And without the meter: what the domains tell.
    let without = json(&joular_bpf(&["validate", &data, "--protocol", "--json"]));
    assert_eq!((&without["meter"], without["pairs"][0]["alone"].as_array().unwrap().len()), (&Value::Null, 1));
    // A simulation writes over nothing.
    let refused = simulated(parent.path(), "a", &[]);
    assert!(refused.code() == Some(1) && refused.stderr.contains("is there already"), "{refused:?}");
    // The data set is as any other one.
    let audited = joular_bpf(&["audit", &data]);
    assert_eq!(audited.code(), Some(0), "{audited:?}");
}

#[test]
fn what_is_not_a_protocol_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("out").to_str().unwrap().to_owned();
    let recorded = joular_bpf(&["--replay", &crate::replay::recording(), "--quiet", "--output", &data]);
    assert_eq!(recorded.code(), Some(0), "{recorded:?}");
    let refused = joular_bpf(&["validate", &data, "--protocol"]);
    assert!(refused.code() == Some(1) && refused.stderr.contains("has no step of the protocol"), "{refused:?}");
    for (flags, said) in [
        (&["--protocol", "--rounds", "1"][..], "--rounds"),
        (&["--protocol", "--rounds", "101"], "--rounds"),
        (&["--protocol", "--step", "1s"], "--step"),
        (&["--protocol", "--step", "11m"], "--step"),
        (&["--protocol", "--simulate"], "--reference"),
        (&["--rounds", "5"], "--protocol"),
        (&[], "--reference"),
    ] {
        let new = parent.path().join("new");
        let finished = joular_bpf(&[&["validate", new.to_str().unwrap()][..], flags].concat());
        assert!(finished.code() == Some(2) && finished.stderr.contains(said), "{flags:?}: {finished:?}");
        assert!(!new.exists());
    }
    let log = parent.path().join("meter.csv");
    fs::write(&log, "time,watts\n1,2\n").unwrap();
    let new = parent.path().join("new").to_str().unwrap().to_owned();
    let line = ["validate", &new, "--protocol", "--simulate", "--reference", log.to_str().unwrap()];
    let finished = joular_bpf(&line);
    assert!(finished.code() == Some(1) && finished.stderr.contains("name a new file"), "{finished:?}");
}
