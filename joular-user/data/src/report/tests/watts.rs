//! Watts per CPU second are found again in data sets of threads that draw what is chosen.

use std::{collections::BTreeMap, path::Path};

use super::inference::{Did, did, write, write_drawing};
use crate::{
    dataset::{DataSetError, audit, reattribute},
    model::policy::Policy,
    noise::Noise,
    redact::Redaction,
    report::{
        Format,
        headline::Headline,
        profile::{Filter, Profile},
        ranking::By,
        watts::{WattsError, WattsRequest, factors, read},
    },
};

/// Two busy threads and one that hardly runs, for different times in each window.
fn windows(count: usize) -> Vec<Vec<Did>> {
    let mut noise = Noise(3);
    let mut cpu_us = || noise.below(300_000);
    (0..count)
        .map(|_| {
            vec![
                did(100, "vectors", cpu_us(), &[(1, 1)]),
                did(101, "memory", cpu_us(), &[(2, 1)]),
                did(102, "seldom", 1_000, &[]),
            ]
        })
        .collect()
}

/// 20 and 8 W.
fn draws(did: &Did) -> u64 {
    did.cpu_us * if did.name == "vectors" { 20 } else { 8 }
}

fn text(root: &Path, by: &[By], format: Format) -> Result<String, WattsError> {
    let mut out = Vec::new();
    let request = WattsRequest { filter: Filter::default(), by: by.to_vec(), format };
    read(root, &request)?.write(None, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn threads_have_the_watts_that_they_drew() {
    let root = tempfile::tempdir().unwrap();
    write_drawing(root.path(), 4, &windows(120), draws);
    let json = text(root.path(), &[By::Thread, By::Process], Format::Json).unwrap();
    let tables: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = tables[0]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{json}");
    for (name, watts) in [("vectors", 20.0), ("memory", 8.0)] {
        let row = &rows[names.iter().position(|found| found.starts_with(name)).unwrap()];
        let found = row["watts"].as_f64().unwrap();
        assert!((found - watts).abs() < 0.01 * watts && row["is_told"] == true, "{json}");
    }
    assert_eq!(names[2], "[everything else]", "threads below 1 % of the time");
    assert_eq!((&tables[0]["differs"], &tables[1]["differs"]), (&true.into(), &false.into()));
    assert_eq!(tables[1]["rows"].as_array().unwrap().len(), 1, "one process");
}

#[test]
fn every_format_has_the_same_rows() {
    let root = tempfile::tempdir().unwrap();
    write_drawing(root.path(), 4, &windows(120), draws);
    for (format, lines) in [(Format::Text, 9), (Format::Markdown, 7), (Format::Csv, 4)] {
        let written = text(root.path(), &[By::Thread], format).unwrap();
        assert_eq!(written.lines().count(), lines, "{written}");
        assert!(written.contains("vectors") && written.contains("[everything else]"), "{written}");
    }
    let written = text(root.path(), &[By::Thread], Format::Text).unwrap();
    assert!(written.contains("The groups draw different power (p < 0.001)."), "{written}");
}

/// Without any error in the energy, what is left is rounding.
#[test]
fn threads_that_draw_the_same_do_not_differ() {
    let root = tempfile::tempdir().unwrap();
    write_drawing(root.path(), 4, &windows(120), |did| did.cpu_us * 8);
    let written = text(root.path(), &[By::Thread], Format::Text).unwrap();
    assert!(written.contains("These windows do not show that the groups draw different power"), "{written}");
    assert!(written.contains("Idle power is not set apart"), "{written}");
    assert!(written.contains("[everything else] contains 1 smaller group of"), "{written}");
}

#[test]
fn what_windows_do_not_tell_is_refused() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, &windows(30));
    let found = text(root.path(), &[By::Thread], Format::Text);
    assert!(matches!(found, Err(WattsError::TooFew { windows: 30, groups: 3, needed: 60 })), "{found:?}");
}

/// Joules of threads by name, and of all that was measured.
fn joules(root: &Path) -> (BTreeMap<String, f64>, u64) {
    let profile = Profile::read(root, &Filter::default(), None).unwrap();
    let each = profile.catalog.threads.iter().zip(&profile.threads);
    let threads = each.map(|(thread, sums)| (thread.name.to_string(), sums.energy.joules())).collect();
    (threads, profile.overview.measured.0)
}

fn again(from: &Path, to: &Path, is_fitted: bool) {
    let factors = is_fitted.then(|| factors(from, By::Thread).unwrap());
    let redaction = Redaction::default();
    let policy = |run: &crate::events::RunInfo| Ok::<_, DataSetError>(Policy { watts_by: None, ..run.policy.clone() });
    reattribute::with(from, to, None, &redaction, factors.as_ref(), policy).unwrap();
}

#[test]
fn a_data_set_divided_by_fitted_watts_has_the_joules_that_threads_drew() {
    let folder = tempfile::tempdir().unwrap();
    let [recorded, fitted, alike] = ["recorded", "fitted", "alike"].map(|name| folder.path().join(name));
    let windows = windows(120);
    write_drawing(&recorded, 4, &windows, draws);
    again(&recorded, &fitted, true);
    again(&fitted, &alike, false);
    let (by_time, by_watts, again) = (joules(&recorded), joules(&fitted), joules(&alike));
    let drew = |name: &str| {
        let all = windows.iter().flatten().filter(|did| did.name == name);
        all.map(|did| draws(did) as f64 / 1e6).sum::<f64>()
    };
    for name in ["vectors", "memory"] {
        let (time, watts) = (by_time.0[name] / drew(name), by_watts.0[name] / drew(name));
        assert!((watts - 1.0).abs() < 0.01, "{name}: {watts} of what it drew");
        assert!((time - 1.0).abs() > 0.2, "{name}: by time {time} of what it drew");
    }
    assert_eq!(by_time.1, by_watts.1, "what was measured stays");
    assert_eq!(by_time, again, "divided by time again");
    let audits = [&recorded, &fitted, &alike].map(|root| audit::run(root).unwrap());
    assert!(audits.iter().all(|audits| audit::is_well(audits)), "{audits:?}");
    let headline = |root: &Path| Headline::of(&Profile::read(root, &Filter::default(), None).unwrap()).text();
    let says = [&recorded, &fitted, &alike].map(|root| headline(root).contains("divided by fitted watts"));
    assert_eq!(says, [false, true, false]);
    // Watts are learnt from time and energy, whatever was fitted before.
    let [before, after] = [&recorded, &fitted].map(|root| text(root, &[By::Thread], Format::Csv).unwrap());
    assert_eq!(before, after);
}

#[test]
fn a_data_set_whose_threads_do_not_differ_is_not_divided_by_watts() {
    let root = tempfile::tempdir().unwrap();
    write_drawing(root.path(), 4, &windows(120), |did| did.cpu_us * 8);
    let found = factors(root.path(), By::Thread);
    assert!(matches!(found, Err(WattsError::Equal { by: "thread", .. })), "{found:?}");
}
