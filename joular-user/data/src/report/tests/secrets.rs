//! Secrets in what was written before they were taken out: they are found, and can be taken out everywhere.

use std::{fs, path::Path};

use parquet::file::{
    reader::{FileReader as _, SerializedFileReader},
    serialized_reader::ReadOptionsBuilder,
};
use tempfile::TempDir;

use crate::{
    dataset::{DataSetError, OutputDirectory, ParquetOutput, audit, compact, fixture::*, reattribute, secrets},
    events::{Event, Runtime, Service, ServiceFrom, recording::RecordingWriter},
    model::policy::Policy,
    redact::{CommandLines, MARKER, Redaction},
    report::{
        html,
        profile::Filter,
        tree::{Levels, Shape},
    },
    rollup,
};

const SECRETS: [&str; 4] = ["zzPlanted1zz", "~~Planted2~~", "00Planted3", "Planted4"];

/// Plants secrets in the command lines of the run and of a process.
fn plant(event: &mut Event) {
    let [a, b, c, d] = SECRETS;
    match event {
        Event::RunStarted(run) => {
            run.command_line = ["joular-bpf", "run", "--", "java", &format!("-Dpassword={a}")].map(Into::into).to_vec();
        }
        Event::Process(process) if process.pid.0 == 1 => {
            let words = ["java", &format!("-Dtoken={b}"), &format!("https://u:{c}@h/"), "--api-key", d];
            process.command_line = words.map(Into::into).to_vec();
            process.service = Some(Service { name: d.into(), version: None, from: ServiceFrom::MainClass });
            if let Runtime::Jvm { main_class, .. } = &mut process.runtime {
                *main_class = Some(d.into());
            }
        }
        _ => {}
    }
}

fn recorded(flush_ns: u64) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), flush_ns);
    play_changed(output, Policy::default(), plant);
    root
}

/// All that stands in the files of a data set, as it is and decompressed: pages, dictionaries, footers with their minima.
fn all_bytes(root: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, bytes) in files(root) {
        all.extend_from_slice(name.as_bytes());
        all.extend_from_slice(&bytes);
        if !name.ends_with(".parquet") {
            continue;
        }
        let options = ReadOptionsBuilder::new().build();
        let file = SerializedFileReader::new_with_options(bytes::Bytes::from(bytes), options).unwrap();
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).unwrap();
            for column in 0..group.num_columns() {
                let mut pages = group.get_column_page_reader(column).unwrap();
                while let Some(page) = pages.get_next_page().unwrap() {
                    all.extend_from_slice(page.buffer());
                }
            }
        }
    }
    all
}

fn found_in(root: &Path) -> Vec<&'static str> {
    let all = all_bytes(root);
    let is_there = |secret: &&str| all.windows(secret.len()).any(|window| window == secret.as_bytes());
    SECRETS.into_iter().filter(is_there).collect()
}

fn audited(path: &Path) -> secrets::Found {
    secrets::find(path, &Redaction::default()).unwrap()
}

#[test]
fn an_old_data_set_has_them_everywhere_and_audit_says_where_but_not_what() {
    let root = recorded(FLUSH_NS);
    assert_eq!(found_in(root.path()), SECRETS);
    let found = audited(root.path());
    let text = found.text() + &serde_json::to_string(&found).unwrap();
    for expected in [
        "runs.command_line: -Dpassword (1×)",
        "processes.command_line of pid 1: -Dtoken (1×)",
        "processes.command_line of pid 1: user information of a URL (1×)",
        "processes.command_line of pid 1: --api-key (1×)",
        "processes.service of pid 1",
        "processes.main_class of pid 1",
        "secrets at 6 places",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!found.is_clean() && SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
}

#[test]
fn compact_and_reattribute_take_them_out_everywhere() {
    for flush_ns in [FLUSH_NS, 1000 * SECOND] {
        let root = recorded(flush_ns);
        let to = tempfile::tempdir().unwrap();
        let [beside, again] = ["beside", "again"].map(|name| to.path().join(name));
        let redaction = Redaction::default();
        compact::beside(root.path(), &beside, None).unwrap();
        assert_eq!(found_in(&beside), SECRETS, "compact alone keeps all rows as they are");
        let policy = |run: &crate::events::RunInfo| Ok::<_, DataSetError>(run.policy.clone());
        reattribute::with(root.path(), &again, None, &redaction, None, policy).unwrap();
        let in_place = to.path().join("in_place");
        compact::run(root.path(), Some(&in_place), None, &redaction.showing(CommandLines::Full)).unwrap();
        compact::run(&in_place, None, None, &redaction).unwrap();
        for redacted in [&again, &in_place] {
            assert_eq!(found_in(redacted), [""; 0]);
            assert!(audited(redacted).is_clean(), "{}", audited(redacted).text());
            let all = all_bytes(redacted);
            assert!(all.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()));
            assert!(audit::is_well(&audit::run(redacted).unwrap()));
        }
    }
}

#[test]
fn a_rollup_and_a_page_of_an_old_data_set_have_none_unless_they_are_asked_to() {
    let root = recorded(FLUSH_NS);
    for (shown, expected) in [(CommandLines::None, 0), (CommandLines::Redacted, 0), (CommandLines::Full, SECRETS.len())]
    {
        let redaction = Redaction::default().showing(shown);
        let to = tempfile::tempdir().unwrap();
        rollup::run(root.path(), to.path(), 10 * SECOND, None, &redaction).unwrap();
        assert_eq!(found_in(to.path()).len(), expected, "{shown:?}");
        let choice = html::PageChoice {
            is_apart: false,
            data: root.path().into(),
            filter: Filter::default(),
            app: None,
            shape: Shape { levels: Levels::Processes, ..Shape::default() },
            footprint: None,
            redaction,
            view: String::new(),
            flights: html::Flights::default(),
        };
        let page = String::from_utf8(html::page(&choice).unwrap().bytes).unwrap();
        assert_eq!(page.contains(SECRETS[0]), shown == CommandLines::Full, "{shown:?}");
    }
}

#[test]
fn recordings_and_logs_of_experiments_are_looked_through_too() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for mut event in events(Policy::default()) {
        plant(&mut event);
        writer.write(&event).unwrap();
    }
    fs::create_dir(root.path().join("deep")).unwrap();
    fs::write(root.path().join("deep/run.jrec"), writer.finish().unwrap()).unwrap();
    let log = r#"{"variants":[{"command":["java","--password","hunter2"]}],
                  "circumstances":{"options":{"otlp":"http://u:hunter2@h","frequency":99,"metrics-token":"[redacted]"}}}"#;
    fs::write(root.path().join("experiment.json"), log).unwrap();
    fs::write(root.path().join("page.html"), "password=x").unwrap();
    let text = audited(root.path()).text();
    for expected in [
        "run.jrec: run.command_line: -Dpassword",
        "run.jrec: process.command_line of pid 1: --api-key",
        "run.jrec: process.service of pid 1",
        "experiment.json: variants.command: --password",
        "experiment.json: circumstances.options: user information",
        "in 2 files",
        "1 file of other kinds",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    fs::write(root.path().join("cut.jrec"), "JOULARBPF").unwrap();
    let found = audited(root.path());
    assert!(found.text().contains("NOT READ: ") && found.problems.len() == 1, "{}", found.text());
    assert!(secrets::find(&root.path().join("absent"), &Redaction::default()).is_err());
}
