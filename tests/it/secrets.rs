//! Tests `audit --secrets`, and how secrets are taken out of what an earlier joular-bpf wrote.

use std::{fs, path::Path};

use joular_data::events::{
    Event,
    recording::{RecordingReader, RecordingWriter},
};
use joular_tests::{
    dataset::{DataSet, share},
    process::Finished,
};

use crate::{joular_bpf, replay::recording};

const SECRET: &str = "Planted7hunter2";

/// A recording as an earlier joular-bpf made it: with passwords in command lines.
fn with_secrets(path: &Path) {
    with_words(path, &format!("--token={SECRET}"));
}

/// A recording in whose command lines this stands.
fn with_words(path: &Path, word: &str) {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for event in RecordingReader::new(fs::File::open(recording()).unwrap()).unwrap() {
        let mut event = event.unwrap();
        match &mut event {
            Event::RunStarted(run) => run.command_line.push(word.to_owned()),
            Event::Process(process) => process.command_line.push(word.into()),
            _ => {}
        }
        writer.write(&event).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

fn run(arguments: &[&str], code: i32) -> Finished {
    let finished = joular_bpf(arguments);
    assert_eq!(finished.code(), Some(code), "{arguments:?}: {finished:?}");
    assert!(!finished.stdout.contains(SECRET) && !finished.stderr.contains(SECRET), "{finished:?}");
    finished
}

fn has_secret(dir: &str) -> bool {
    has(dir, SECRET)
}

fn has(dir: &str, word: &str) -> bool {
    let of = |table: &str| DataSet::at(dir).rows(&format!("SELECT command_line FROM {table}")).unwrap();
    let rows = serde_json::to_string(&(of("processes"), of("runs"))).unwrap();
    let files = DataSet::at(dir).files().unwrap().into_values().flatten().collect::<Vec<u8>>();
    rows.contains(word) || files.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn secrets_of_earlier_recordings_are_found_and_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, full, again) = (path("old.jrec"), path("full"), path("again"));
    with_secrets(Path::new(&old));
    let found = run(&["audit", "--secrets", &old], 7).stdout;
    assert!(found.contains("old.jrec: process.command_line of pid ") && found.contains(": --token ("), "{found}");

    run(&["--replay", &old, "--quiet", "--output", &path("replayed")], 0);
    assert!(!has_secret(&path("replayed")), "a replay writes none");
    run(&["--replay", &old, "--quiet", "--output", &full, "--command-line", "full"], 0);
    assert!(has_secret(&full));
    let found = run(&["audit", "--secrets", &full], 7).stdout;
    assert!(found.contains("runs.command_line: --token (1×)"), "{found}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&["audit", "--secrets", "--json", &full], 7).stdout).unwrap();
    assert!(json["places"].as_array().is_some_and(|places| places.len() > 1), "{json}");

    run(&["compact", &full], 0);
    assert!(has_secret(&full), "compact alone keeps all rows");
    run(&["rollup", &full, "--output", &path("rollup")], 0);
    assert!(!has_secret(&path("rollup")));
    share(path("shipped")).unwrap();
    run(&["ship", &full, &path("shipped"), "--window", "recorded"], 0);
    assert!(!has_secret(&path("shipped")));
    run(&["reattribute", &full, "--redact", "--output", &again], 0);
    run(&["compact", &full, "--redact"], 0);
    for clean in [&full, &again] {
        assert!(!has_secret(clean));
        run(&["audit", "--secrets", clean], 0);
        run(&["audit", clean], 0);
    }
    run(&["html", &full, "--command-line", "some", "--output", &path("page.html")], 2);
}

/// Secrets that only rules of the configuration file know of.
#[test]
fn rules_of_a_configuration_file_hold_for_what_was_recorded() {
    const WORD: &str = "AKIA0planted";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, full, rules) = (path("old.jrec"), path("full"), path("rules.toml"));
    with_words(Path::new(&old), &format!("--user={WORD}"));
    fs::write(&rules, "[[redact]]\npattern = 'AKIA0[a-z]+'\n").unwrap();
    run(&["--replay", &old, "--quiet", "--output", &full], 0);
    assert!(has(&full, WORD), "no rule, no secret");

    for place in [&old, &full] {
        run(&["audit", "--secrets", place], 0);
        let found = run(&["audit", "--secrets", "--config", &rules, place], 7).stdout;
        assert!(found.contains("[[redact]] rule 1"), "{found}");
    }
    let (rollup, shipped, again, page) = (path("rollup"), path("shipped"), path("again"), path("page.html"));
    run(&["rollup", &full, "--config", &rules, "--output", &rollup], 0);
    share(&shipped).unwrap();
    run(&["ship", &full, &shipped, "--window", "recorded", "--config", &rules], 0);
    run(&["reattribute", &full, "--redact", "--config", &rules, "--output", &again], 0);
    run(&["html", &full, "--config", &rules, "--output", &page], 0);
    run(&["compact", &full, "--redact", "--config", &rules], 0);
    for clean in [&rollup, &shipped, &again, &full] {
        assert!(!has(clean, WORD), "{clean}");
    }
    assert!(!fs::read_to_string(&page).unwrap().contains(WORD));

    run(&["compact", &full, "--config", &rules], 2);
    run(&["audit", &full, "--config", &rules], 2);
    run(&["html", &full, "--config", &path("none.toml"), "--output", &page], 2);
}
