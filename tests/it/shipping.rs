//! Tests `ship` as its users have it: what arrives has the sums of what was recorded, once, whoever repeats it.

use std::{fs, path::Path, process::Command};

use joular_tests::{
    dataset::share,
    paths,
    process::{Finished, Running},
    s3::S3,
};
use serde_json::Value;

use crate::{
    LIMIT, joular_bpf,
    replay::recording,
    rollup::{SUMS, rows},
};

/// A data set of several runs that have ended.
pub fn recorded(parent: &Path) -> String {
    let path = parent.join("recorded").to_str().unwrap().to_owned();
    let arguments = ["--replay", &recording(), "--quiet", "--flush", "1s", "--rotate", "10s", "--output", &path];
    let finished = joular_bpf(&arguments);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    path
}

/// A directory that runs may be shipped to.
fn place(path: &Path) -> String {
    share(path).unwrap();
    path.to_str().unwrap().to_owned()
}

pub fn done(finished: &Finished) -> Value {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_directory_gets_each_run_once_with_all_sums() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    for window in ["60s", "5s", "recorded"] {
        let to = place(&parent.path().join(format!("of-{window}")));
        let ship = || joular_bpf(&["ship", &data, &to, "--window", window, "--layout", "tables", "--json"]);
        let first = done(&ship());
        assert!(first["runs"].as_u64() > Some(1) && first["files"].as_u64() > Some(10), "{window}: {first}");
        assert_eq!(done(&ship())["runs"], 0, "{window}: it is known what has arrived");
        fs::remove_dir_all(Path::new(&data).join(".shipped")).unwrap();
        let again = done(&ship());
        assert_eq!((&again["runs"], &again["files"]), (&first["runs"], &Value::from(0)), "{window}: nothing is new");
        assert_eq!(rows(Path::new(&to), SUMS), rows(Path::new(&data), SUMS), "{window}");
        let audit = joular_bpf(&["audit", &to]);
        assert_eq!(audit.code(), Some(0), "{window}: {audit:?}");
    }
}

pub fn with(environment: &[(&str, String)], arguments: &[&str]) -> Finished {
    let mut command = Command::new(paths::joular_bpf());
    command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    Running::spawn("joular-bpf", &mut command).unwrap().finish(LIMIT).unwrap()
}

#[test]
fn a_bucket_gets_each_run_once_through_failures_and_every_command_reads_it() {
    for layout in ["bundles", "tables"] {
        ship_through_failures(layout);
    }
}

fn ship_through_failures(layout: &str) {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let to = place(&parent.path().join("to"));
    done(&joular_bpf(&["ship", &data, &to, "--layout", layout, "--json"]));
    let mut server = S3::with_bucket("fleet").unwrap();
    let environment = server.environment();
    let bucket = "s3://fleet/energy/prod";
    let ship = || with(&environment, &["ship", &data, bucket, "--layout", layout, "--json"]);
    server.tell("away").unwrap();
    let away = ship();
    assert_eq!(away.code(), Some(6), "{away:?}");
    assert!(away.stderr.contains("503 Service Unavailable"), "{away:?}");
    server.tell("well").unwrap();
    server.tell("refuse 0.25").unwrap();
    server.tell("lose 0.25").unwrap();
    let tries = (0..100).map(|_| ship()).take_while(|tried| tried.code() != Some(0)).count();
    assert!(tries < 100, "it never arrives");
    server.tell("well").unwrap();
    assert_eq!(done(&ship())["runs"], 0, "all have arrived");
    for arguments in [
        &["report", "PLACE", "--by", "method,process,host", "--json"] as &[_],
        &["report", "PLACE", "--csv", "--by", "thread"],
        &["audit", "PLACE", "--json"],
        &["export", "PLACE", "--format", "collapsed"],
        &["flamegraph", "PLACE", "--output", "-"],
        &["diff", "PLACE", "PLACE"],
    ] {
        let of = |place: &str| {
            let arguments: Vec<&str> =
                arguments.iter().map(|word| if *word == "PLACE" { place } else { word }).collect();
            let finished = with(&environment, &arguments);
            assert_eq!(finished.code(), Some(0), "{arguments:?}: {finished:?}");
            finished.stdout.replace(place, "PLACE")
        };
        assert_eq!(of(bucket), of(&to), "{arguments:?}");
    }
}

#[test]
fn a_bucket_without_conditional_writes_is_asked_first_if_that_is_wanted() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let mut server = S3::with_bucket("fleet").unwrap();
    let environment = server.environment();
    let ship = |more: &[&str]| with(&environment, &[&["ship", &data, "s3://fleet/energy", "--json"], more].concat());
    server.tell("unconditional").unwrap();
    let refused = ship(&[]);
    assert_eq!(refused.code(), Some(6), "{refused:?}");
    assert!(refused.stderr.contains("ship-look-first") && refused.stderr.contains("--look-first"), "{refused:?}");
    let first = ship(&["--look-first"]);
    assert!(first.stderr.contains("both write it"), "it says what it does not promise: {first:?}");
    let runs = done(&first)["runs"].as_u64().unwrap();
    assert!(runs > 1, "{first:?}");
    fs::remove_dir_all(Path::new(&data).join(".shipped")).unwrap();
    let again = done(&ship(&["--look-first"]));
    assert_eq!((again["runs"].as_u64(), again["files"].as_u64()), (Some(runs), Some(0)), "{again}");
    let audit = with(&environment, &["audit", "s3://fleet/energy"]);
    assert_eq!(audit.code(), Some(0), "{audit:?}");
}

#[test]
fn a_bucket_that_cannot_be_read_says_what_to_do() {
    let server = S3::with_bucket("fleet").unwrap();
    let right = server.environment();
    let changed = |name: &str, value: &str| {
        let change =
            |(key, old): &(&'static str, String)| (*key, if *key == name { value.to_owned() } else { old.clone() });
        right.iter().map(change).collect::<Vec<_>>()
    };
    for (environment, place, words) in [
        (right.clone(), "s3://fleet/nothing", "there is no run in it"),
        (right.clone(), "s3://absent/energy", "check the name of the bucket"),
        (changed("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), "s3://fleet", "check the network"),
        (changed("AWS_ALLOW_HTTP", "false"), "s3://fleet", "check the network, and AWS_ENDPOINT_URL"),
        (right.clone(), "s3://key:secret@fleet", "credentials belong in the environment"),
        (right.clone(), "ftp://fleet", "is not a place for a data set"),
    ] {
        let finished = with(&environment, &["report", place]);
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains(words), "{finished:?}");
        assert_eq!(finished.stderr.trim_end().lines().count(), 1, "{finished:?}");
    }
    let ship = ["ship", "s3://fleet", "elsewhere"];
    for arguments in [&["compact", "s3://fleet"] as &[_], &ship, &["rollup", "absent", "--output", "s3://fleet"]] {
        let finished = with(&right, arguments);
        assert!(finished.code() != Some(0) && finished.stderr.contains("directory"), "{finished:?}");
    }
}

#[test]
fn what_cannot_be_shipped_is_said_with_the_exit_code_of_its_kind() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let file = parent.path().join("file").to_str().unwrap().to_owned();
    fs::write(&file, "").unwrap();
    let (to, bare) = (place(&parent.path().join("to")), parent.path().join("bare").to_str().unwrap().to_owned());
    fs::create_dir(&bare).unwrap();
    for (arguments, code, message) in [
        (vec![&*data, &*file], 6, "file: it exists and is not a directory"),
        (vec![&*data, "nowhere"], 6, "opening nowhere: No such file or directory"),
        (vec![&*data, &*bare], 6, "make the file once: touch "),
        (vec![&*data, &*to, "--window", "a day"], 2, "--window: not a time"),
        (vec![&*data, &*to, "--rate", "2MB"], 2, "--rate: \"2MB\" is not a size"),
        (vec![&*data, &*to, "--layout", "zip"], 2, "--layout: write bundles or tables"),
        (vec![&*data], 2, "<PLACE>"),
        (vec!["--init", &*to], 2, "--hosts"),
        (vec!["--init", "--hosts", "0", &*to], 2, "--hosts"),
        (vec!["--init", "--hosts", "9", "nowhere"], 6, "opening nowhere: No such file or directory"),
        (vec!["absent", &*to], 1, "absent"),
        // Windows of a second are not made of a second's.
        (vec![&*data, &*to, "--window", "1s"], 1, "name a multiple of that"),
    ] {
        let finished = joular_bpf(&[vec!["ship"], arguments].concat());
        assert_eq!(finished.code(), Some(code), "{finished:?}");
        assert!(finished.stderr.contains(message), "{finished:?}");
    }
}

#[test]
fn the_configuration_of_a_service_is_checked_without_privileges() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("agent.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        joular_bpf(&["agent", "--config", file.to_str().unwrap(), "--check", "--log-format", "json"])
    };
    let right = check("comm = ['java']\nkeep-size = '1GiB'\nship = 's3://fleet/energy'\nship-rate = '2MiB'");
    assert_eq!((right.code(), right.stdout.ends_with("agent.toml: no mistakes")), (Some(0), true), "{right:?}");
    for (text, message) in [
        ("comm = ['java']\nshipp = 's3://fleet'", "agent.toml:2: unknown key `shipp`"),
        ("interval = '7s'\nship = 's3://fleet'", "ship-window: it is not a multiple of --interval"),
        ("metrics = '0.0.0.0:9897'", "agent.toml:1: metrics"),
    ] {
        let wrong = check(text);
        assert_eq!(wrong.code(), Some(2), "{wrong:?}");
        let line: Value = serde_json::from_str(&wrong.stderr).unwrap();
        assert_eq!(line["level"], "error");
        assert!(line["message"].as_str().unwrap().contains(message), "{line}");
    }
}
