//! Tests `audit --secrets`, and how secrets are taken out of what an earlier joular-bpf wrote.

use std::{fs, path::Path};

use joular_data::events::{
    Event,
    recording::{RecordingReader, RecordingWriter},
};
use joular_tests::{dataset::DataSet, process::Finished};

use crate::{joular_bpf, replay::recording};

const SECRET: &str = "Planted7hunter2";

/// A recording as an earlier joular-bpf made it: with passwords in command lines.
fn with_secrets(path: &Path) {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for event in RecordingReader::new(fs::File::open(recording()).unwrap()).unwrap() {
        let mut event = event.unwrap();
        match &mut event {
            Event::RunStarted(run) => run.command_line.push(format!("--token={SECRET}")),
            Event::Process(process) => process.command_line.push(format!("-Dpassword={SECRET}").into()),
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
    let of = |table: &str| DataSet::at(dir).rows(&format!("SELECT command_line FROM {table}")).unwrap();
    let rows = serde_json::to_string(&(of("processes"), of("runs"))).unwrap();
    let files = DataSet::at(dir).files().unwrap().into_values().flatten().collect::<Vec<u8>>();
    rows.contains(SECRET) || files.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

#[test]
fn secrets_of_earlier_recordings_are_found_and_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (old, full, again) = (path("old.jrec"), path("full"), path("again"));
    with_secrets(Path::new(&old));
    let found = run(&["audit", "--secrets", &old], 7).stdout;
    assert!(found.contains("old.jrec: process.command_line of pid ") && found.contains(": -Dpassword ("), "{found}");

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
