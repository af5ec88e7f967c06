//! Tests hostile names, and selections of nothing, in every format.

use serde_json::Value;

use super::*;
use crate::report::{Format, app::AppEnergy};

const HOSTILE: &str = "<script>alert(1)</script>\"'`|,;\r\n\x1b[2J\u{202e}=1+1\\";

fn hostile() -> Profile {
    let long = "x".repeat(64 * 1024);
    let mut profile = profile(
        1,
        &[
            (0, &[java(HOSTILE, HOSTILE)], 6, 6),
            (0, &[java(&long, "=cmd|' /C calc'!A0")], 4, 4),
            (0, &[Frame::new(FrameKind::Native, "=HYPERLINK(\"http://x\")")], 3, 3),
        ],
    );
    profile.catalog.runs[0].info.host = HOSTILE.into();
    profile.catalog.processes[0].comm = HOSTILE.into();
    profile.catalog.threads[0].name = HOSTILE.into();
    profile.overview.sources = vec![HOSTILE.into()];
    profile
}

fn written(profile: &Profile, by: By, format: Format, look: Look) -> String {
    let tables = [ranking(profile, by, ALL)];
    let mut out = Vec::new();
    write(
        &Report {
            profile,
            tables: &tables,
            of_measures: &[],
            app: None,
            packages: &AppEnergy::default(),
            top: 20,
            footprints: None,
        },
        format,
        look,
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn no_name_gets_the_better_of_any_format() {
    use unicode_width::UnicodeWidthStr;
    let profile = hostile();
    for by in By::ALL {
        for format in [Format::Text, Format::Csv, Format::Markdown, Format::Json] {
            let text = written(&profile, by, format, Look::default());
            let bare = text.replace("\r\n", "\n");
            assert!(!bare.chars().any(|c| c.is_control() && c != '\n'), "{by:?} {format:?}");
            assert!(format == Format::Json || !text.contains('\u{202e}'), "{by:?} {format:?}");
        }
        let text = written(&profile, by, Format::Text, Look { width: Some(80), colours: false });
        assert!(text.lines().all(|line| line.width() <= 80), "{by:?}");
        let markdown = written(&profile, by, Format::Markdown, Look::default());
        for line in markdown.lines() {
            let outside: String = line.split('`').step_by(2).collect();
            assert!(!outside.contains('<'), "{by:?}: {line}");
        }
        // A table's rows have as many cells as its heading.
        let cells = |line: &str| line.matches('|').count();
        let table: Vec<&str> = markdown.lines().skip_while(|line| !line.starts_with('|')).collect();
        let rows = table.iter().take_while(|line| line.starts_with('|'));
        assert!(rows.clone().count() > 2 && rows.clone().all(|row| cells(row) == cells(table[0])), "{by:?}");
        let csv = written(&profile, by, Format::Csv, Look::default());
        assert!(csv.split([',', '\n']).all(|cell| !cell.trim_start_matches('"').starts_with(['=', '@'])), "{by:?}");
    }
}

#[test]
fn json_keeps_names_as_they_are() {
    let report: Value = serde_json::from_str(&written(&hostile(), By::Thread, Format::Json, Look::default())).unwrap();
    let row = &report["tables"][0]["rows"][0];
    assert_eq!((row["thread"].as_str(), row["host"].as_str()), (Some(HOSTILE), Some(HOSTILE)));
    assert_eq!(row["self_uj"], 13);
}

#[test]
fn an_empty_selection_says_so_in_every_format() {
    let profile = profile(0, &[]);
    assert!(written(&profile, By::Method, Format::Text, Look::default()).contains("nothing in the data set matches"));
    assert!(written(&profile, By::Method, Format::Markdown, Look::default()).contains("nothing in the data set"));
    assert_eq!(written(&profile, By::Method, Format::Csv, Look::default()).lines().count(), 1);
    let report: Value = serde_json::from_str(&written(&profile, By::Method, Format::Json, Look::default())).unwrap();
    assert_eq!(
        (&report["selection"]["energy_uj"], report["tables"][0]["rows"].as_array().unwrap().len()),
        (&0.into(), 0)
    );
}
