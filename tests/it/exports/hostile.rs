//! Tests names that would end a line, a cell or a tag, or attack a terminal: each format opens as
//! ever, and its figures stay the same.

use std::{fs, io::BufWriter, path::Path};

use joular_data::events::{
    Event,
    recording::{RecordingReader, RecordingWriter},
};

use super::{Exports, with_node, with_python};
use crate::replay::recording;

/// The name that the method `heavy` gets instead.
fn hostile_name() -> String {
    // Longer ones are cut when they are recorded.
    let long = "x".repeat(4000);
    format!("a;b,c\"d'<script>alert(1)</script>\n\r\u{1b}[2J\u{202e}\\../../e{long}")
}

/// The recording with that name, and with a process and a class that are as hostile.
fn write_recording(path: &Path) {
    let events = RecordingReader::new(fs::File::open(recording()).unwrap()).unwrap();
    let mut writer = RecordingWriter::new(BufWriter::new(fs::File::create(path).unwrap())).unwrap();
    let mut renamed = 0;
    for event in events {
        let mut event = event.unwrap();
        if let Event::Symbols { symbols, .. } = &mut event {
            let frames = symbols.iter_mut().flat_map(|symbol| &mut symbol.frames);
            for frame in frames.filter(|frame| frame.name == "heavy") {
                frame.name = hostile_name().into();
                frame.file = Some("../../<b>.java\n".into());
                renamed += 1;
            }
        }
        if let Event::Process(info) = &mut event {
            info.comm = "x\n;,\"<b>".into();
        }
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
    assert!(renamed > 0, "the method is not in the recording");
}

#[test]
fn hostile_names_change_no_figure_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("hostile.jrec");
    write_recording(&recording);
    let exports = Exports::of(recording.to_str().unwrap());
    let sums = exports.sums();
    assert_eq!(sums, Exports::new().sums());
    let energy = sums[0];
    for format in ["otlp", "perfetto", "firefox"] {
        let found = with_python(&exports.export(format, &[]), format);
        let sum = match format {
            "otlp" => &found["sums"]["energy/uJ"],
            "perfetto" => &found["sums"][0],
            _ => &found["sum"],
        };
        assert_eq!(*sum, energy, "{format}");
        let leaf = format!("Hot.{}", hostile_name());
        assert!(found["leaves"].as_array().unwrap().iter().any(|name| *name == leaf), "{format} changed the name");
    }
    if let Some(found) = with_node(&exports.export("pprof", &[]), "pprof") {
        assert_eq!(found["sums"], serde_json::json!(sums));
    }
    if let Some(found) = with_node(&exports.export("speedscope", &[]), "speedscope") {
        assert_eq!(found["sums"]["none"], energy);
    }
    let branches = super::jfr::events(&exports.export("jfr", &[]), "joular.Energy");
    assert_eq!(super::jfr::sum(&branches, "energy_uj"), energy);
    let names = branches.iter().map(|branch| &branch["stackTrace"]["frames"][0]["method"]["name"]);
    assert!(names.into_iter().any(|name| *name == hostile_name()), "jfr changed the name");
    let collapsed = fs::read_to_string(exports.export("collapsed", &[])).unwrap();
    let values = collapsed.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(values.sum::<u64>(), energy);
    assert!(!collapsed.contains(['\u{1b}', '\r']) && collapsed.contains("Hot.a_b,c\"d'<script>"));
}

#[test]
fn hostile_names_leave_no_folder_and_end_no_cell_of_joularjx() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("hostile.jrec");
    write_recording(&recording);
    let exports = Exports::of(recording.to_str().unwrap());
    let found = super::joularjx::Tree::read(&exports.export("joularjx", &[]));
    assert_eq!(found.energy_ten_thousandths().unwrap().1, found.cells("all/total/methods"), "rows without a figure");
    let long = found.names().into_iter().filter(|name| name.contains("alert")).collect::<Vec<_>>();
    assert!(!long.is_empty() && long.iter().all(|name| name.len() <= 255 && name.contains("~")), "{long:?}");
}
