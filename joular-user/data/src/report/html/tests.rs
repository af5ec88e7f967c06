use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::*;
use crate::{
    model::units::Pid,
    report::{
        footprint,
        measure::Measure,
        profile::{Moment, Names},
        ranking::{self, By, Ranking, Sort, groups::Groups, rows::Cut},
        tree::Levels,
    },
};

pub(super) fn choice(root: &std::path::Path) -> PageChoice {
    PageChoice {
        data: root.into(),
        filter: Filter::default(),
        app: None,
        shape: Shape { levels: Levels::Processes, ..Shape::default() },
        is_apart: false,
        footprint: None,
        redaction: crate::redact::Redaction::default(),
        view: String::new(),
        flights: Flights::default(),
    }
}

/// The figures of a page, as its scripts get them.
fn figures(choice: &PageChoice) -> (serde_json::Value, Headline) {
    let Page { bytes, headline, .. } = page(choice).unwrap();
    let page = String::from_utf8(bytes).unwrap();
    let (_, behind) = page.split_once("id=\"figures\">").unwrap();
    let (json, _) = behind.split_once("</script>").unwrap();
    (serde_json::from_str(json).unwrap(), headline)
}

fn sum(values: &serde_json::Value) -> u64 {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

fn sum_of(rows: &serde_json::Value, column: &str) -> u64 {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| if row[column].is_array() { sum(&row[column]) } else { row[column].as_u64().unwrap() })
        .sum()
}

#[test]
fn every_view_of_a_selection_sums_to_its_energy() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let middle = Some(Moment::Into(std::time::Duration::from_secs(12)));
    let methods = Names::parse(&["*.m100".to_owned()]).unwrap();
    let filters = [
        Filter::default(),
        Filter { since: middle, ..Filter::default() },
        Filter { pids: vec![Pid(1)], ..Filter::default() },
        Filter { methods, ..Filter::default() },
    ];
    let mut energies = HashSet::new();
    for filter in filters {
        for app in [None, App::of(&["com.example".to_owned()])] {
            let choice = PageChoice { filter: filter.clone(), app, ..choice(root.path()) };
            let (figures, headline) = figures(&choice);
            let energy = headline.energy.0;
            energies.insert(energy);
            assert_eq!(figures["energy_uj"], energy);
            assert_eq!(sum(&figures["tree"]["self_uj"]), energy);
            assert_eq!(sum_of(&figures["methods"], "self_uj"), energy);
            assert_eq!(sum_of(&figures["time"]["series"], "energy_uj"), energy);
            assert_eq!(sum_of(&figures["threads"]["rows"], "energy_uj"), energy);
            assert_eq!(figures["label"], "measured");
        }
    }
    assert_eq!(energies.len(), 4, "each filter chose another part");
}

#[test]
fn methods_are_also_there_as_reports_show_them_and_sum_to_the_same() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let (figures, headline) = figures(&choice(root.path()));
    let rows = figures["java_methods"].as_array().unwrap();
    assert_eq!(sum_of(&figures["java_methods"], "self_uj"), headline.energy.0);
    let profile = Profile::read(root.path(), &Filter::default(), Some(&App::Java)).unwrap();
    let cut = Cut { top: 0, sort: Sort::Own, is_partial: false };
    let ranking = Ranking::of(&profile, &Groups::of(By::Method, &profile), cut, None, None);
    for row in &ranking.rows {
        let mut same = rows.iter().filter(|method| {
            let name = usize::try_from(method["name"].as_u64().unwrap()).unwrap();
            figures["strings"][name] == row.group.name.raw()
        });
        let Some(method) = same.next() else { continue };
        assert!(same.next().is_none(), "{} is there twice", row.group.name);
        assert_eq!(method["self_uj"], row.own.amounts.energy.0, "{}", row.group.name);
        assert_eq!(method["total_uj"], row.total.amounts.energy.0, "{}", row.group.name);
    }
}

#[test]
fn a_page_of_another_view_has_one_table_of_methods() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let plain = choice(root.path());
    let by_kind = Shape { kinds: Kinds::Apart, ..plain.shape };
    for choice in [
        PageChoice { app: Some(App::Java), ..plain.clone() },
        PageChoice { app: App::of(&["com.example".to_owned()]), ..plain.clone() },
        PageChoice { shape: by_kind, ..plain.clone() },
    ] {
        let (figures, _) = figures(&choice);
        assert!(figures["java_methods"].is_null() && !figures["methods"].as_array().unwrap().is_empty());
    }
    let whole = figures(&plain).0["java_methods"].clone();
    let asked = figures(&PageChoice { app: Some(App::Java), ..plain }).0["methods"].clone();
    let energies = |rows: &serde_json::Value| {
        rows.as_array().unwrap().iter().map(|row| row["self_uj"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(energies(&whole), energies(&asked));
}

/// The heat map has a row for each series of a method.
#[test]
fn the_power_of_a_method_over_time_sums_to_its_own_energy() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let (figures, _) = figures(&choice(root.path()));
    let series = figures["time"]["series"].as_array().unwrap();
    assert!(series.len() > 2, "{}", series.len());
    // Methods of one name differ in their signatures.
    let mut of_series: BTreeMap<u64, u64> = BTreeMap::new();
    for one in series.iter().take(power::SERIES) {
        *of_series.entry(one["name"].as_u64().unwrap()).or_default() += sum(&one["energy_uj"]);
    }
    for (name, energy) in of_series {
        let methods = figures["methods"].as_array().unwrap().iter().filter(|method| method["name"] == name);
        assert_eq!(methods.map(|method| method["self_uj"].as_u64().unwrap()).sum::<u64>(), energy, "{name}");
    }
}

#[test]
fn a_page_of_nothing_is_refused_and_says_what_there_is() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let processes = Names::parse(&["Java".to_owned()]).unwrap();
    let refused = page(&PageChoice { filter: Filter { processes, ..Filter::default() }, ..choice(root.path()) });
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("the selection is empty: there are processes "), "{message}");
}

#[test]
fn intervals_of_methods_are_those_of_reports() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let methods = Names::parse(&["*.m1*".to_owned()]).unwrap();
    for filter in [Filter::default(), Filter { methods, ..Filter::default() }] {
        let choice = PageChoice { filter: filter.clone(), ..choice(root.path()) };
        let (figures, _) = figures(&choice);
        let profile = Profile::read(root.path(), &filter, None).unwrap();
        let cut = Cut { top: 0, sort: Sort::Own, is_partial: !filter.allows_all_paths() };
        let ranking = Ranking::of(&profile, &Groups::of(By::Method, &profile), cut, None, None);
        let interval = |figures: &ranking::Figures| json!([figures.interval.low.0, figures.interval.high.0]);
        let mut open = 0;
        for row in &ranking.rows {
            let mut same = figures["methods"].as_array().unwrap().iter().filter(|method| {
                let name = usize::try_from(method["name"].as_u64().unwrap()).unwrap();
                figures["strings"][name] == row.group.name.raw()
            });
            // Some are in the last row.
            let Some(method) = same.next() else { continue };
            assert!(same.next().is_none(), "{} is there twice", row.group.name);
            assert_eq!(method["self_uj"], row.own.amounts.energy.0, "{}", row.group.name);
            assert_eq!(method["total_uj"], row.total.amounts.energy.0, "{}", row.group.name);
            assert_eq!(method["self_interval_uj"], interval(&row.own), "{}", row.group.name);
            assert_eq!(method["total_interval_uj"], interval(&row.total), "{}", row.group.name);
            open += usize::from(row.own.interval.low < row.own.interval.high);
        }
        assert!(open > 1, "figures of several methods are not exact");
    }
}

#[test]
fn places_are_told_where_there_are_several() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let (figures, _) = figures(&choice(root.path()));
    let places = figures["threads"]["places"].as_array().unwrap();
    assert!(places.len() > 1, "{places:?}");
    for row in figures["threads"]["rows"].as_array().unwrap() {
        let (buckets, of_row) = (row["buckets"].as_array().unwrap(), row["places"].as_array().unwrap());
        assert_eq!(buckets.len(), of_row.len());
        assert!(of_row.iter().all(|place| (0..places.len() as u64).contains(&place.as_u64().unwrap())), "{row}");
    }
}

#[test]
fn emissions_and_cost_are_there_if_asked_for_and_methods_sum_to_them() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let plain = figures(&choice(root.path())).0;
    assert!(plain["emissions"].is_null() && plain["methods"][0]["self_g"].is_null());
    let price = footprint::Price { per_kwh: 0.3, currency: "EUR".to_owned() };
    let choices = Choices { carbon: Some(footprint::Carbon::plain(250.0)), price: Some(price), ..Choices::default() };
    let page = figures(&PageChoice { footprint: Some(choices), ..choice(root.path()) }).0;
    let energy = page["energy_uj"].as_f64().unwrap();
    let emissions = &page["emissions"];
    let near = |figure: f64, expected: f64| (figure - expected).abs() <= expected * 1e-9;
    for (whole, part, per_kwh) in [("grams", "self_g", 250.0), ("cost", "self_cost", 0.3)] {
        let expected = energy * per_kwh / 3.6e12;
        let methods = page["methods"].as_array().unwrap();
        assert!(expected > 0.0 && near(emissions[whole].as_f64().unwrap(), expected), "{emissions}");
        assert!(near(methods.iter().map(|method| method[part].as_f64().unwrap()).sum(), expected), "{whole}");
    }
    let text = |place: &serde_json::Value| {
        page["strings"].as_array().unwrap()[usize::try_from(place.as_u64().unwrap()).unwrap()].as_str().unwrap()
    };
    assert!(text(&emissions["title"]).starts_with("Emissions and cost of the selection"));
    let names: Vec<&str> = emissions["lines"].as_array().unwrap().iter().map(|line| text(&line[0])).collect();
    assert_eq!(names, ["energy", "factor", "operational", "cost", "boundary"]);
    assert_eq!(text(&emissions["currency"]), "EUR");
}

#[test]
fn phases_and_events_are_where_they_were() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let said = |filter: Filter| {
        let (figures, _) = figures(&PageChoice { filter, ..choice(root.path()) });
        let strings = figures["strings"].clone();
        let name = move |at: &serde_json::Value| strings[usize::try_from(at.as_u64().unwrap()).unwrap()].clone();
        let second = |us: &serde_json::Value| us.as_i64().unwrap() / 1_000_000;
        let phase = |phase: &serde_json::Value| {
            json!([name(&phase["path"]), phase["depth"], second(&phase["from_us"]), second(&phase["to_us"])])
        };
        let said = &figures["time"]["said"];
        let phases: Vec<_> = said["phases"].as_array().unwrap().iter().map(phase).collect();
        let event = |event: &serde_json::Value| json!([name(&event["text"]), second(&event["at_us"])]);
        let events: Vec<_> = said["events"].as_array().unwrap().iter().map(event).collect();
        (phases, events)
    };
    let (phases, events) = said(Filter::default());
    let expected = [
        json!(["load", 0, 3, 10]),
        json!(["load/parse", 1, 5, 7]),
        json!(["load/parse", 1, 8, 10]),
        json!(["serve", 0, 20, 30]),
    ];
    assert_eq!(phases, expected);
    assert_eq!(events, [json!(["loaded rows=7", 9])]);
    let parse = Names::parse(&["parse".to_owned()]).unwrap();
    let (phases, events) = said(Filter { phases: parse, ..Filter::default() });
    assert_eq!(phases[0], json!(["load", 0, 0, 5]), "as far as the page's time goes");
    assert_eq!(events.len(), 1);
}

#[test]
fn the_flame_graph_has_every_measure_of_the_selection() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let (figures, _) = figures(&choice(root.path()));
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    let measures: Vec<Measure> = profile.measures_apart().collect();
    let shown = figures["measures"].as_array().unwrap();
    assert_eq!(shown.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(), {
        measures.iter().map(|measure| measure.name()).collect::<Vec<_>>()
    });
    let nodes = figures["tree"]["depth"].as_array().unwrap().len();
    for (measure, own) in measures.iter().zip(figures["tree"]["self_beside"].as_array().unwrap()) {
        let own: Vec<u64> = own.as_array().unwrap().iter().map(|amount| amount.as_u64().unwrap()).collect();
        assert_eq!(
            (own.len(), own.iter().sum::<u64>()),
            (nodes, profile.measured.amount(*measure)),
            "{}",
            measure.name()
        );
    }
}

#[test]
fn methods_have_what_was_counted_in_their_code() {
    let root = tempfile::tempdir().unwrap();
    crate::dataset::fixture::write(root.path(), crate::model::policy::Policy::default());
    let (figures, _) = figures(&choice(root.path()));
    assert_eq!(figures["counters"], json!(["cache-misses", "major-faults", "context-switches"]));
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    let measured = &profile.measured;
    let sums: Vec<u64> = measured.counters().map(|counter| measured.amount(Measure::Counted(counter))).collect();
    assert!(sums[0] > 0 && sums[2] > 0, "{sums:?}");
    for (at, sum) in sums.iter().enumerate() {
        let methods = figures["methods"].as_array().unwrap();
        assert_eq!(methods.iter().map(|method| method["self_counts"][at].as_u64().unwrap()).sum::<u64>(), *sum);
    }
}
