//! Makes bad data sets: empty, cut off, of another version, hostile. joular-bpf itself makes each from
//! the recording that other tests replay.

use std::{
    fs,
    fs::File,
    path::{Path, PathBuf},
};

use joular_data::{
    events::{
        Event, Runtime,
        recording::{RecordingReader, RecordingWriter},
    },
    model::{frame::Frame, target_text::TargetText},
};
use joular_tests::{dataset::DataSet, process::Finished};
use serde_json::json;

use crate::{joular_bpf, replay::recording};

/// Texts that attack a terminal, a browser, a spreadsheet, a shell, a file system, a query or a
/// reader's eye.
pub const EVIL: &[&str] = &[
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" 'twice' `thrice`",
    "two\nlines\r\nand\ttabs;semicolons",
    "=cmd|' /C calc'!A0",
    "../../../../tmp/escaped",
    "a|b*c_d[e](http://f)",
    "\u{202e}gpj.exe\u{2066}\u{200b}",
    "'; DROP TABLE methods; --",
    "c1\u{9b}31m \u{85}",
    "nul\0inside",
    "<&amp;>]]>%s%n{}{{}}$(id)",
];

/// Nearly as much as all names of a frame can have together.
const LONG: usize = 60 * 1024;

fn path(dir: &Path) -> &str {
    dir.to_str().unwrap()
}

/// Replays events as they are after `change`, which may drop them.
pub fn replay(dir: &Path, mut change: impl FnMut(Event) -> Option<Event>) {
    let events = RecordingReader::new(File::open(recording()).unwrap()).unwrap();
    let changed = dir.with_extension("jrec");
    let mut writer = RecordingWriter::new(File::create(&changed).unwrap()).unwrap();
    for event in events {
        if let Some(event) = change(event.unwrap()) {
            writer.write(&event).unwrap();
        }
    }
    writer.finish().unwrap();
    let finished = joular_bpf(&["--replay", path(&changed), "--quiet", "--output", path(dir)]);
    expect_success(&finished);
}

fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

/// The recording as it is.
pub fn good(dir: &Path) {
    replay(dir, Some);
}

/// An experiment that has run each variant once. Runs have the variants' names.
pub fn experiment(dir: &Path, variants: &[&str]) {
    fs::create_dir(dir).unwrap();
    let mut records = Vec::new();
    for variant in variants {
        replay(&dir.join(variant), |mut event| {
            if let Event::RunStarted(run) = &mut event {
                run.run_id = (*variant).to_owned();
            }
            Some(event)
        });
        records.push(json!({ "name": variant, "folder": variant, "command": ["true"], "values": [] }));
    }
    let log = json!({ "version": 1, "seed": 7, "variants": records, "work": null, "runs": [] });
    fs::write(dir.join("experiment.json"), log.to_string()).unwrap();
}

/// A run that ended before its first window.
pub fn without_windows(dir: &Path) {
    replay(dir, |event| matches!(event, Event::RunStarted(_) | Event::RunEnded(_)).then_some(event));
}

/// A sound data set in which every name is hostile.
pub fn hostile(dir: &Path) {
    let mut names = 0;
    // Each name is another one, so that nothing merges that was apart.
    let mut evil = |name: &TargetText| {
        names += 1;
        let (of_kind, name) = (EVIL[names % EVIL.len()], name.raw());
        let rest = if names == 2 { "x".repeat(LONG) } else { String::new() };
        TargetText::from(format!("{of_kind}{name}{rest}"))
    };
    replay(dir, |mut event| {
        match &mut event {
            Event::RunStarted(run) => {
                run.host = format!("../{}/host", EVIL[0]).into();
                run.command_line = EVIL.iter().map(ToString::to_string).collect();
                run.kernel = EVIL[1].to_owned();
                run.cpu_model = EVIL[7].to_owned();
                run.energy_reason = EVIL[3].to_owned();
            }
            Event::Process(process) => {
                process.comm = "\u{1b}[2J<b>\n=x".into();
                process.command_line = EVIL.iter().map(|text| (*text).into()).collect();
                if let Runtime::Jvm { main_class, .. } = &mut process.runtime {
                    *main_class = Some(EVIL.concat().into());
                }
            }
            Event::Symbols { symbols, .. } => {
                for frame in symbols.iter_mut().flat_map(|symbol| symbol.frames.iter_mut()) {
                    *frame = Frame {
                        class: frame.class.as_ref().map(&mut evil),
                        name: evil(&frame.name),
                        file: frame.file.as_ref().map(&mut evil),
                        module: frame.module.as_ref().map(&mut evil),
                        ..frame.clone()
                    };
                }
            }
            Event::Window(window) => {
                for thread in &mut window.threads {
                    thread.comm = *b"\x1b[2J<i>\n=1\xc2\x9b\"'\0\0";
                }
            }
            _ => {}
        }
        Some(event)
    });
}

/// Files of a table.
fn files(dir: &Path, table: &str) -> Vec<PathBuf> {
    let files = DataSet::at(dir).files().unwrap();
    files.keys().filter(|path| path.starts_with(table)).map(|path| dir.join(path)).collect()
}

/// Cuts a table's last file in the middle; returns it.
pub fn cut(dir: &Path, table: &str) -> PathBuf {
    let file = files(dir, table).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    file
}

/// Gives all files another schema version, of as many digits as the one that they have.
pub fn of_version(dir: &Path, digits: [u8; 2]) {
    // The value is a string of two characters behind its key, as Thrift writes it.
    let (key, known) = (&b"joular_bpf.schema_version"[..], b"\x18\x02");
    for (name, mut bytes) in DataSet::at(dir).files().unwrap() {
        let at = bytes.windows(key.len()).rposition(|window| window == key).unwrap() + key.len();
        assert_eq!(&bytes[at..at + 2], known, "{}", name.display());
        bytes[at + 2..at + 4].copy_from_slice(&digits);
        fs::write(dir.join(name), bytes).unwrap();
    }
}
