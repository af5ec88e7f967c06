//! Emissions and cost, on data sets whose every number is chosen.

use std::path::Path;

use super::inference::{Did, did, write};
use crate::report::{
    Format,
    footprint::{Carbon, Choices, Embodied, Footprint, Footprints, Intensity, Price, YEAR_NS, factors::Factors, read},
    profile::{App, Filter, Names, Profile},
    ranking::{By, Look, Request, Sort, TableOf, command},
};

/// Two factors, one for the first second and one for the second.
const BY_SECOND: &str = "time,g/kWh,source,year\n\
                         1970-01-01T00:00:00Z,100,Grid,1970\n\
                         1970-01-01T00:00:01Z,300,Grid,1970\n";

/// Thread 100 runs m1 and m2 in the first second, thread 200 of another process runs m2 in both.
fn two_seconds() -> [Vec<Did>; 2] {
    [
        vec![did(100, "main", 300_000, &[(1, 1), (2, 2)]), did(200, "main", 100_000, &[(2, 5)])],
        vec![did(200, "main", 200_000, &[(2, 5)])],
    ]
}

fn written(windows: &[Vec<Did>]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, windows);
    root
}

fn by_time(text: &str) -> Carbon {
    let intensity = Intensity::ByTime(Factors::read(text.as_bytes(), None).unwrap());
    Carbon { intensity, source: None, method: None }
}

fn of<'a>(root: &Path, filter: &Filter, choices: &'a Choices) -> (Profile, Footprints<'a>) {
    read(root, filter, None, choices, &mut |_, _| {}).unwrap()
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-12, "{found} is not {expected}");
}

/// A joule in kilowatt-hours.
const KWH: f64 = 1.0 / 3.6e6;

#[test]
fn each_row_emits_by_the_factor_of_its_window() {
    let root = written(&two_seconds());
    let choices = Choices { carbon: Some(by_time(BY_SECOND)), pue: 1.5, ..Choices::default() };
    let (profile, footprints) = of(root.path(), &Filter::default(), &choices);
    let mut found: Vec<(u32, String, f64)> = profile
        .entries
        .iter()
        .zip(&footprints.entries)
        .map(|(entry, footprint)| {
            let leaf = profile.catalog.paths.frames_of(entry.path).next_back().unwrap().method().into_raw();
            (profile.catalog.thread(entry.thread).tid.0, leaf, footprint.operational_g)
        })
        .collect();
    found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    // Joules times factor: 0.1 · 100; 0.2 · 100; 0.1 · 100 + 0.2 · 300.
    let expected = [(100, "A.m1", 10.0), (100, "A.m2", 20.0), (200, "A.m2", 70.0)];
    assert_eq!(found.len(), expected.len());
    for ((tid, name, grams), (expected_tid, expected_name, joule_grams)) in found.iter().zip(expected) {
        assert_eq!((*tid, name.as_str()), (expected_tid, expected_name));
        assert_close(*grams, joule_grams * KWH * 1.5);
    }
    assert_close(footprints.whole.operational_g, 100.0 * KWH * 1.5);
    let factor = footprints.factor.unwrap();
    assert_close(factor.mean_g_per_kwh, 100.0 / 0.6);
    assert_eq!((factor.min_g_per_kwh, factor.max_g_per_kwh), (100.0, 300.0));
}

#[test]
fn a_factor_that_changes_within_a_window_counts_by_its_time() {
    let root = written(&two_seconds());
    let text = "time,g/kWh\n1970-01-01T00:00:00Z,100\n1970-01-01T00:00:00.25Z,500\n1970-01-01T00:00:02Z,1\n";
    let choices = Choices { carbon: Some(by_time(text)), ..Choices::default() };
    let (_, footprints) = of(root.path(), &Filter::default(), &choices);
    // The first window: a quarter at 100, the rest at 500.
    assert_close(footprints.whole.operational_g, (0.4 * 400.0 + 0.2 * 500.0) * KWH);
}

/// What no sample hit is shared out, near and far, and what stays without a sample emits too.
#[test]
fn shared_out_energy_emits_by_the_factor_of_the_window_that_it_was_used_in() {
    let mut windows = vec![vec![did(100, "main", 10, &[(1, 1)])], vec![did(100, "main", 30, &[])]];
    windows.extend((0..40).map(|_| vec![did(100, "main", 7, &[]), did(300, "lone", 5, &[])]));
    let root = written(&windows);
    let rows: String = (0..42).map(|second| format!("1970-01-01T00:00:{second:02}Z,{}\n", 100 + 10 * second)).collect();
    let choices = Choices { carbon: Some(by_time(&format!("time,g/kWh\n{rows}"))), ..Choices::default() };
    let expected = |of_window: fn(u32) -> f64| -> f64 {
        (0..42).map(|second| of_window(second) * f64::from(100 + 10 * second) * 1e-6 * KWH).sum()
    };
    let energies = |second| {
        if second == 0 {
            10.0
        } else if second == 1 {
            30.0
        } else {
            12.0
        }
    };
    for no_infer in [false, true] {
        let filter = Filter { no_infer, ..Filter::default() };
        let (profile, footprints) = of(root.path(), &filter, &choices);
        assert_eq!(profile.overview.inferred.0 > 0, !no_infer);
        assert_close(footprints.whole.operational_g, expected(energies));
    }
}

#[test]
fn one_factor_and_the_same_factor_in_every_line_are_alike() {
    let root = written(&two_seconds());
    let lines = BY_SECOND.replace("300", "100");
    for carbon in [Carbon::plain(100.0), by_time(&lines)] {
        let choices = Choices { carbon: Some(carbon), ..Choices::default() };
        let (profile, footprints) = of(root.path(), &Filter::default(), &choices);
        for (entry, footprint) in profile.entries.iter().zip(&footprints.entries) {
            assert_close(footprint.operational_g, entry.energy.joules() * 100.0 * KWH);
        }
        assert_close(footprints.factor.unwrap().mean_g_per_kwh, 100.0);
    }
}

/// Of a host with one CPU that was there for two seconds, thread 100 had 0.3 s and thread 200 had 0.3 s.
#[test]
fn hardware_emits_by_time_and_share_of_cpu_time_and_sci_has_what_is_reserved() {
    let root = written(&two_seconds());
    let choices = Choices {
        carbon: Some(Carbon::plain(250.0)),
        pue: 1.2,
        embodied: Some(Embodied { host_g: 1e6, lifetime_years: 4.0 }),
        reserved_cpus: Some(0.5),
        price: Some(Price { per_kwh: 0.3, currency: "EUR".to_owned() }),
        work: vec![50.0],
    };
    let (profile, footprints) = of(root.path(), &Filter::default(), &choices);
    assert_eq!(profile.overview.run_times[0].cpu_ns, 2_000_000_000);
    let embodied = 1e6 * (2e9 / (4.0 * YEAR_NS)) * (0.6 / 2.0);
    let operational = 0.6 * KWH * 1.2 * 250.0;
    assert_close(footprints.whole.embodied_g, embodied);
    assert_close(footprints.cpu_share, 0.3);
    assert_close(footprints.grams_per_work().unwrap(), (operational + embodied) / 50.0);
    // Half of the CPU is reserved, of which 0.3 is used.
    let reserved = footprints.reserved.unwrap();
    assert_close(reserved.share, 0.5);
    assert_close(reserved.operational_g, operational);
    assert_close(reserved.embodied_g, embodied * 0.5 / 0.3);
    assert_close(footprints.sci_g().unwrap(), (operational + embodied * 0.5 / 0.3) / 50.0);
    assert_close(footprints.whole.cost, 0.6 * KWH * 1.2 * 0.3);
    let one = Filter { pids: vec![crate::model::units::Pid(1)], ..Filter::default() };
    let (_, of_one) = of(root.path(), &one, &choices);
    assert_close(of_one.whole.embodied_g, embodied / 2.0);
}

#[test]
fn conditions_on_methods_choose_emissions_as_they_choose_energy() {
    let root = written(&two_seconds());
    let choices = Choices { carbon: Some(by_time(BY_SECOND)), ..Choices::default() };
    let methods = Names::parse(&["A.m1".to_owned()]).unwrap();
    let (_, footprints) = of(root.path(), &Filter { methods, ..Filter::default() }, &choices);
    assert_close(footprints.whole.operational_g, 10.0 * KWH);
    let app = App::of(&["nowhere".to_owned()]);
    let (_, of_app) = read(root.path(), &Filter::default(), app.as_ref(), &choices, &mut |_, _| {}).unwrap();
    assert_close(of_app.whole.operational_g, 100.0 * KWH);
}

#[test]
fn windows_outside_of_the_factors_are_an_error_that_names_both() {
    let root = written(&two_seconds());
    for (text, expected) in [
        (
            "time,g/kWh\n1970-01-01T00:00:01Z,1\n1970-01-01T00:00:02Z,1\n",
            "the window at 1970-01-01T00:00:00Z is not within the emission factors, which are from \
             1970-01-01T00:00:01Z to 1970-01-01T00:00:03Z: add factors",
        ),
        ("time,g/kWh\n1970-01-01T00:00:00Z,1\n1970-01-01T00:00:00.9Z,1\n", "the window at 1970-01-01T00:00:01Z"),
    ] {
        let choices = Choices { carbon: Some(by_time(text)), ..Choices::default() };
        let error = read(root.path(), &Filter::default(), None, &choices, &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn work_is_counted_once_or_for_each_run() {
    let root = written(&two_seconds());
    let choices =
        |work: &[f64]| Choices { carbon: Some(Carbon::plain(1.0)), work: work.to_vec(), ..Choices::default() };
    let error =
        read(root.path(), &Filter::default(), None, &choices(&[1.0, 2.0]), &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("--work has 2 counts, and the data set has 1 run of"), "{error}");
    assert_eq!(of(root.path(), &Filter::default(), &choices(&[])).1.grams_per_work(), None);
}

#[test]
fn nobody_reserves_more_cpus_than_a_host_has() {
    let root = written(&two_seconds());
    let choices = |cpus| Choices { carbon: Some(Carbon::plain(1.0)), reserved_cpus: Some(cpus), ..Choices::default() };
    assert_close(of(root.path(), &Filter::default(), &choices(1.0)).1.reserved.unwrap().share, 1.0);
    let error = read(root.path(), &Filter::default(), None, &choices(1.1), &mut |_, _| {}).unwrap_err().to_string();
    assert_eq!(error, "--reserved 1.1: a host of the selection has 1 CPUs: give at most so many");
}

fn request(by: &[By], format: Format, top: usize, footprint: Option<Choices>) -> Request {
    Request {
        filter: Filter::default(),
        app: None,
        tables: by.iter().copied().map(TableOf::of_energy).collect(),
        top,
        sort: Sort::Own,
        activations: false,
        footprint,
        format,
    }
}

fn report(root: &Path, request: &Request) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let said = command::run(root, request, Look::default(), &mut out).unwrap();
    said.written.unwrap();
    (String::from_utf8(out).unwrap(), said.notices)
}

fn all_choices() -> Choices {
    Choices {
        carbon: Some(Carbon { source: Some("Some Grid, annual".to_owned()), ..by_time(BY_SECOND) }),
        pue: 1.4,
        embodied: Some(Embodied { host_g: 1e6, lifetime_years: 4.0 }),
        reserved_cpus: Some(1.0),
        price: Some(Price { per_kwh: 0.3, currency: "EUR".to_owned() }),
        work: vec![10.0],
    }
}

#[test]
fn rows_of_every_table_sum_to_the_whole_however_it_is_cut() {
    let root = written(&two_seconds());
    let choices = all_choices();
    let whole = of(root.path(), &Filter::default(), &choices).1.whole;
    for top in [0, 1] {
        let (text, _) = report(root.path(), &request(&By::ALL, Format::Json, top, Some(choices.clone())));
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        for table in report["tables"].as_array().unwrap() {
            for (figure, whole) in
                [("self_gco2e", whole.grams()), ("self_embodied_gco2e", whole.embodied_g), ("self_cost", whole.cost)]
            {
                let rows = table["rows"].as_array().unwrap().iter().chain([&table["others"]]);
                let sum: f64 = rows.filter_map(|row| row[figure].as_f64()).sum();
                assert!((sum - whole).abs() < whole * 1e-9, "{} {figure} top {top}: {sum} {whole}", table["by"]);
            }
        }
        assert_close(report["footprint"]["gco2e"].as_f64().unwrap(), whole.grams());
        assert_close(report["footprint"]["gco2e_per_work"].as_f64().unwrap(), whole.grams() / 10.0);
    }
}

#[test]
fn a_total_has_the_emissions_of_all_paths_with_the_row_each_once() {
    let root = written(&two_seconds());
    let (text, _) = report(root.path(), &request(&[By::Class], Format::Json, 0, Some(all_choices())));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &report["tables"][0]["rows"][0];
    assert_eq!(row["name"], "A");
    assert_eq!(row["self_gco2e"], row["total_gco2e"]);
}

#[test]
fn every_format_says_what_the_figures_are_made_of() {
    let root = written(&two_seconds());
    for format in [Format::Text, Format::Markdown, Format::Csv] {
        let (text, notices) = report(root.path(), &request(&[By::Method], format, 0, Some(all_choices())));
        let said = if format == Format::Csv { notices.join("\n") } else { text.replace('\\', "") };
        for words in [
            "Emissions and cost of the selection: 0.600 J (measured), times the PUE 1.4; joules in tables are without it",
            "energy: 0.000000233 kWh",
            "factor: 167 gCO2e/kWh by energy, 100 to 300 by time, not said whether average or marginal; source: Grid, 1970",
            "operational: 38.9 µgCO2e",
            "embodied: 4.76 mgCO2e: 1000 kg of a host in 4 y, for 2.0 s and 30.0 % of all CPU time",
            "per unit of work: 480 µgCO2e, of 10 units",
            "reserved: 15.9 mgCO2e, with 100 % of the hosts' static energy (0.000 J) and of their hardware",
            "SCI: 1.59 mgCO2e per unit of work, of what is reserved",
            "cost: 0.0000000700 EUR at 0.3 EUR per kWh, 0.00000000700 EUR per unit of work",
            "boundary: energy of package that was attributed to the selected threads; not in it: static and",
        ] {
            assert!(said.contains(words), "{format:?} lacks '{words}': {said}");
        }
        if format == Format::Csv {
            let heading = text.lines().next().unwrap();
            assert!(
                heading.ends_with(
                    "ambiguous,self_gco2e,total_gco2e,self_embodied_gco2e,total_embodied_gco2e,self_cost,total_cost"
                ),
                "{heading}"
            );
        } else {
            assert!(text.contains("SELF mgCO2e") && text.contains("TOTAL COST EUR"), "{text}");
        }
    }
}

#[test]
fn without_being_asked_for_nothing_of_it_is_in_any_format() {
    let root = written(&two_seconds());
    for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
        let (text, notices) = report(root.path(), &request(&[By::Method], format, 0, None));
        assert!(notices.is_empty() && !text.contains("CO2") && !text.to_lowercase().contains("cost"), "{text}");
    }
    assert_eq!(Footprint::default().grams(), 0.0);
}
