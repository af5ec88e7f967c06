//! Tests every subcommand that reads a data set, on good and bad ones: it says what is in it, or
//! what is wrong with which file, and nothing in it takes over a terminal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_data::events::Event;
use joular_tests::{dataset::share, process::Finished};

use crate::{bad_sets, documents::subcommands, joular_bpf};

/// Subcommands that read no data set, more than that, or one again and again: `validate`, `jmh`, `serve`, `mcp` and `load`
/// have tests of their own.
const OTHERS: &[&str] = &[
    "record",
    "requests",
    "top",
    "run",
    "sweep",
    "doctor",
    "sources",
    "agent",
    "calibrate",
    "completions",
    "man",
    "validate",
    "jmh",
    "serve",
    "expire",
    "erase",
    "mcp",
    "load",
    "support",
];

/// Arguments of each subcommand: `DIR` is the data set, `OUT` and `SHARE` are places for files. A subcommand that
/// is not here gets the data set only.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("diff", &["DIR", "DIR"]),
    ("diff", &["DIR", "DIR", "--json"]),
    ("diff", &["DIR", "DIR", "--csv", "--by", "process"]),
    ("diff", &["DIR", "DIR", "--markdown", "--by", "thread", "--top", "0"]),
    ("diff", &["DIR", "DIR", "--view", "total", "--by", "class", "--per", "cpu"]),
    ("report", &["DIR", "--by", "method,class,package,branch,thread,category,kind,process,host,line", "--activations"]),
    ("report", &["DIR", "--json", "--top", "0"]),
    ("report", &["DIR", "--csv", "--by", "branch"]),
    ("report", &["DIR", "--markdown", "--app", "com.acme", "--view", "total"]),
    ("flamegraph", &["DIR", "--output", "OUT"]),
    ("flamegraph", &["DIR", "--output", "OUT", "--by-thread", "--diff", "DIR"]),
    ("flamegraph", &["DIR", "--output", "OUT.html"]),
    ("diff", &["DIR", "DIR", "--html", "OUT"]),
    ("html", &["DIR", "--output", "OUT"]),
    ("baseline", &["save", "DIR", "OUT"]),
    ("rollup", &["DIR", "--output", "OUT"]),
    ("ship", &["DIR", "SHARE"]),
    ("export", &["DIR", "--output", "OUT", "--format", "pprof"]),
    ("export", &["DIR", "--output", "OUT", "--format", "speedscope"]),
    ("export", &["DIR", "--output", "OUT", "--format", "collapsed"]),
    ("export", &["DIR", "--output", "OUT", "--format", "firefox"]),
    ("export", &["DIR", "--output", "OUT", "--format", "perfetto"]),
    ("export", &["DIR", "--output", "OUT", "--format", "otlp"]),
    ("export", &["DIR", "--output", "OUT", "--format", "joularjx"]),
    ("compact", &["DIR", "--output", "OUT"]),
    ("reattribute", &["DIR", "--output", "OUT"]),
    ("audit", &["DIR"]),
    ("audit", &["DIR", "--json"]),
];

/// Tables that each of them needs whole. `reattribute` and `audit` take figures of others.
const NEEDED: &[&str] = &["runs", "windows", "branches", "stacks"];

/// All command lines on data sets, as `--help` lists the subcommands.
fn command_lines() -> Vec<Vec<String>> {
    let help = joular_bpf(&["--help"]).stdout;
    let mut lines = Vec::new();
    for subcommand in subcommands(&help).filter(|name| !OTHERS.contains(name)) {
        let line = |arguments: &[&str]| [&[subcommand], arguments].concat().iter().map(ToString::to_string).collect();
        let given: Vec<_> = ARGUMENTS.iter().filter(|(name, _)| *name == subcommand).collect();
        lines.extend(given.iter().map(|(_, arguments)| line(arguments)));
        if given.is_empty() {
            lines.push(line(&["DIR"]));
        }
    }
    assert!(lines.len() >= 8, "{lines:?}");
    lines
}

fn reads_more_than_runs(line: &[String]) -> bool {
    line[0] != "runs"
}

/// Runs a command line on a data set.
fn run(line: &[String], data: &Path) -> Finished {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("out");
    let place = |word: &String| match word.as_str() {
        "DIR" => data.to_str().unwrap().to_owned(),
        "OUT" => out.to_str().unwrap().to_owned(),
        "OUT.html" => out.with_extension("html").to_str().unwrap().to_owned(),
        "SHARE" => {
            share(&out).unwrap();
            out.to_str().unwrap().to_owned()
        }
        _ => word.clone(),
    };
    let words: Vec<String> = line.iter().map(place).collect();
    let finished = joular_bpf(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_ne!(finished.code(), Some(2), "give it a row in ARGUMENTS: {finished:?}");
    expect_harmless(line, &finished);
    finished
}

/// Expects no panic, no death by a signal, and nothing that a terminal acts on.
fn expect_harmless(line: &[String], finished: &Finished) {
    assert!(finished.code().is_some_and(|code| code < 101), "{line:?}: {finished:?}");
    assert!(!finished.stderr.contains("panicked"), "{line:?}: {finished:?}");
    // Lines of CSV end in both.
    let stdout = finished.stdout.replace('\r', if line.iter().any(|word| word == "--csv") { "" } else { "\r" });
    for said in [&stdout, &finished.stderr] {
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
        let at = said.find(acts);
        assert_eq!(at, None, "{line:?}: {:?}", at.and_then(|at| said.get(at.saturating_sub(40)..at + 4)));
    }
}

/// Expects an exit code other than 0, and one line that has these words.
fn expect_error(line: &[String], finished: &Finished, words: &[&str]) {
    assert_ne!(finished.code(), Some(0), "{line:?}: {finished:?}");
    let said = finished.stderr.trim_end();
    assert_eq!(said.lines().count(), 1, "{line:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{line:?}: the message lacks '{word}': {said}");
    }
}

#[test]
fn a_sound_data_set_is_read_by_all() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("good");
    bad_sets::good(&data);
    for line in command_lines() {
        let finished = run(&line, &data);
        assert_eq!(finished.code(), Some(0), "{line:?}: {finished:?}");
    }
}

/// Each variant has a data set of its own in the directory.
#[test]
fn an_experiments_directory_is_read_by_all_that_read_and_refused_by_what_changes_it() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("experiment");
    bad_sets::experiment(&data, &["gc=G1", "gc=Serial"]);
    let sets = ["gc=G1", "gc=Serial"].map(|variant| data.join(variant).to_str().unwrap().to_owned());
    let names_sets = [sets[0].as_str(), sets[1].as_str()];
    for line in command_lines() {
        let finished = run(&line, &data);
        if line[0] == "ship" {
            expect_error(&line, &finished, &names_sets);
            continue;
        }
        assert_eq!(finished.code(), Some(0), "{line:?}: {finished:?}");
        match line[0].as_str() {
            "runs" => assert!(finished.stdout.starts_with("data set  "), "{finished:?}"),
            "audit" | "report" => {
                let of_one = run(&line, &data.join("gc=G1"));
                assert_ne!(finished.stdout, of_one.stdout, "{line:?}");
            }
            _ => {}
        }
    }
    for line in
        [&["compact", "DIR"][..], &["rollup", "DIR", "--output", "DIR"], &["reattribute", "DIR", "--output", "DIR"]]
    {
        let line: Vec<String> = line.iter().map(ToString::to_string).collect();
        expect_error(&line, &run(&line, &data), &names_sets);
    }
    let listed = joular_bpf(&["runs", data.to_str().unwrap(), "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let found: Vec<_> = listed.as_array().unwrap().iter().map(|run| (&run["run_id"], &run["data_set"])).collect();
    assert!(found.len() == 2 && found.iter().all(|(run, set)| run == set), "{listed}");
}

#[test]
fn what_has_no_run_is_no_data_set() {
    let parent = tempfile::tempdir().unwrap();
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for line in command_lines() {
        expect_error(&line, &run(&line, &empty), &[empty.to_str().unwrap(), "there is no run in it"]);
        let absent = parent.path().join("absent");
        expect_error(&line, &run(&line, &absent), &[absent.to_str().unwrap(), "No such file"]);
    }
}

#[test]
fn a_run_without_windows_is_nothing_and_no_error() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("short");
    bad_sets::without_windows(&data);
    for line in command_lines() {
        let finished = run(&line, &data);
        if line[0] == "flamegraph" {
            // There is no picture of nothing.
            expect_error(&line, &finished, &[data.to_str().unwrap(), "has no energy"]);
            continue;
        }
        if line[0] == "html" {
            expect_error(&line, &finished, &[data.to_str().unwrap(), "the selection is empty"]);
            continue;
        }
        assert_eq!(finished.code(), Some(0), "{line:?}: {finished:?}");
        let figures = finished.stdout.replace("inferred", "").replace("INFERRED", "");
        assert!(!figures.contains("NaN") && !figures.contains("inf"), "{line:?}: {finished:?}");
    }
}

#[test]
fn a_file_that_was_cut_off_is_named() {
    for table in NEEDED {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("cut");
        bad_sets::good(&data);
        let file = bad_sets::cut(&data, table);
        for line in command_lines().into_iter().filter(|line| *table == "runs" || reads_more_than_runs(line)) {
            expect_error(&line, &run(&line, &data), &[file.to_str().unwrap()]);
        }
    }
}

/// Without `stacks`, nothing says what branches are. Without `windows` or `branches` there is
/// nothing to show.
#[test]
fn files_that_are_missing_are_noticed_or_of_no_consequence() {
    for table in ["stacks", "branches", "windows", "processes", "runs"] {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("missing");
        bad_sets::good(&data);
        fs::remove_dir_all(data.join(table)).unwrap();
        for line in command_lines() {
            let finished = run(&line, &data);
            // `compact` merges what is there.
            if table == "runs" || table == "stacks" && line[0] != "compact" && reads_more_than_runs(&line) {
                // An audit finds rather than fails.
                assert_ne!(finished.code(), Some(0), "{line:?} without {table}: {finished:?}");
            }
        }
    }
}

/// A data set of two hosts, of which the second one's run has a file that was cut off; also that file.
fn one_of_two_cut(data: &Path, table: &str) -> PathBuf {
    for host in ["web-1", "web-2"] {
        bad_sets::replay(data, |mut event| {
            if let Event::RunStarted(run) = &mut event {
                (run.host, run.run_id) = (host.into(), format!("run-of-{host}"));
            }
            Some(event)
        });
    }
    bad_sets::cut(data, table)
}

/// What reads a data set shows what can be read, and what judges or writes one refuses it.
#[test]
fn one_bad_run_of_two_is_left_out_by_what_only_reads() {
    for table in NEEDED {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("one-of-two");
        let file = one_of_two_cut(&data, table);
        let (file, whole) = (file.to_str().unwrap(), parent.path().join("whole"));
        bad_sets::replay(&whole, |mut event| {
            if let Event::RunStarted(run) = &mut event {
                (run.host, run.run_id) = ("web-1".into(), "run-of-web-1".to_owned());
            }
            Some(event)
        });
        for line in command_lines().into_iter().filter(|line| *table == "runs" || reads_more_than_runs(line)) {
            let finished = run(&line, &data);
            if ["audit", "baseline", "compact", "rollup", "reattribute", "ship"].contains(&line[0].as_str()) {
                assert_ne!(finished.code(), Some(0), "{line:?}: {finished:?}");
                assert!(finished.stderr.contains(file), "{line:?}: {finished:?}");
                continue;
            }
            assert_eq!(finished.code(), Some(0), "{line:?}: {finished:?}");
            let said = format!("1 of 2 runs was left out: {file}: ");
            // Markdown escapes what may be in a path.
            let shown = finished.stdout.replace('\\', "") + &finished.stderr;
            assert!(shown.contains(&said), "{line:?}: {finished:?}");
            let strict = [&line[..], &["--strict".to_owned()]].concat();
            expect_error(&strict, &run(&strict, &data), &[file]);
        }
        let lines = |place: &Path| joular_bpf(&["export", place.to_str().unwrap(), "--format", "collapsed"]).stdout;
        assert_eq!(lines(&data), lines(&whole), "{table}");
    }
}

#[test]
fn another_schema_version_is_refused_with_what_to_use_instead() {
    for (version, advice) in [("09", "the joular-bpf that wrote it"), ("13", "a newer joular-bpf")] {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("other");
        bad_sets::good(&data);
        bad_sets::of_version(&data, version.as_bytes().try_into().unwrap());
        let found = format!("it has schema version {version}");
        let said = format!("this joular-bpf reads versions 10 to 12: use {advice}");
        for line in command_lines() {
            expect_error(&line, &run(&line, &data), &[data.to_str().unwrap(), &found, &said]);
        }
    }
}

#[test]
fn hostile_names_are_only_names() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("hostile");
    bad_sets::hostile(&data);
    let beside = || fs::read_dir(parent.path()).unwrap().count();
    let before = beside();
    for line in command_lines() {
        let finished = run(&line, &data);
        assert_eq!(finished.code(), Some(0), "{line:?}: {finished:?}");
    }
    assert_eq!(beside(), before, "something was written outside of its place");
}

#[test]
fn a_hostile_place_is_only_a_place() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("\u{1b}[2J\u{202e}evil");
    fs::create_dir(&data).unwrap();
    for line in command_lines() {
        let finished = run(&line, &data);
        expect_error(&line, &finished, &["there is no run in it"]);
    }
}
