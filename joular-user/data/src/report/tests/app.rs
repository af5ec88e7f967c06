//! The application's packages in a data set, and the tables in their view.

use serde_json::Value;

use super::super::{
    Format, app,
    app::AppEnergy,
    measure::Measure,
    profile::{App, Filter, OUTSIDE_APP, Profile},
    ranking::{
        By, Look, Request, TableOf, command,
        groups::Groups,
        rows::{Cut, Ranking, Sort},
    },
};
use crate::{
    dataset::fixture::*,
    model::{
        policy::Policy,
        units::{MicroJoules, Pid},
    },
};

fn written() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    root
}

/// The one that is a JVM.
fn of_jvm() -> Filter {
    Filter { pids: vec![Pid(1)], ..Filter::default() }
}

#[test]
fn what_is_found_stands_for_the_rows_of_its_view() {
    let root = written();
    let packages = app::find(root.path(), &of_jvm(), &[]).unwrap();
    assert_eq!(packages, ["com.example"]);
    let whole = Profile::read(root.path(), &of_jvm(), None).unwrap();
    let seen = Profile::read(root.path(), &of_jvm(), App::of(&packages).as_ref()).unwrap();
    let found = AppEnergy::found(&whole, &[]);
    assert_eq!((seen.energy(), found.jvms), (whole.energy(), whole.energy()));
    let cut = Cut { top: 0, sort: Sort::Own, is_partial: false };
    let ranking = Ranking::of(&seen, &Groups::of(By::Method, &seen), cut, None, None);
    let of_rows = |is_outside: bool| -> MicroJoules {
        let rows = ranking.rows.iter().filter(|row| (row.group.name == OUTSIDE_APP) == is_outside);
        rows.map(|row| row.own.amounts.energy).sum()
    };
    assert!(of_rows(true).0 > 0 && of_rows(false).0 > 0);
    assert_eq!(found.reached(), of_rows(false));
    assert_eq!(found.reached().saturating_add(of_rows(true)), whole.energy());
    assert_eq!(AppEnergy::of(&seen, &packages).packages, found.packages);
}

#[test]
fn libraries_are_not_found() {
    assert!(app::find(written().path(), &of_jvm(), &["com.example.*".to_owned()]).unwrap().is_empty());
}

#[test]
fn reports_name_what_they_find_where_there_is_a_jvm() {
    let root = written();
    let report = |filter: &Filter, app: Option<App>, format| {
        let tables = vec![TableOf::named("method", Measure::Energy).unwrap()];
        let (filter, sort) = (filter.clone(), Sort::Own);
        let request = Request { filter, app, tables, top: 0, sort, activations: false, footprint: None, format };
        let mut out = Vec::new();
        command::run(root.path(), &request, Look::default(), &mut out).unwrap().written.unwrap();
        String::from_utf8(out).unwrap()
    };
    let json = |filter: &Filter, app| serde_json::from_str::<Value>(&report(filter, app, Format::Json)).unwrap();
    let of_app = || App::of(&["com.example".to_owned()]);
    for app in [None, Some(App::Java), of_app()] {
        let object = json(&of_jvm(), app);
        let [package] = object["app"].as_array().unwrap().as_slice() else { panic!("{}", object["app"]) };
        assert_eq!(package["package"], "com.example");
        assert!(package["self_uj"].as_u64().unwrap() > 0 && package["self_uj"] == package["total_uj"], "{package}");
    }
    for format in [Format::Text, Format::Markdown] {
        let text = report(&of_jvm(), Some(App::Java), format);
        let has = |text: &str, words: &str| text.contains(words);
        assert!(has(&text, "App: com.example; ") && has(&text, "% of the JVMs' energy"), "{text}");
        assert!(has(&text, "; --app auto shows it alone"), "{text}");
        let text = report(&of_jvm(), of_app(), format);
        assert!(has(&text, "App: com.example; ") && !has(&text, "--app auto"), "{text}");
        let text = report(&Filter { pids: vec![Pid(2)], ..Filter::default() }, Some(App::Java), format);
        assert!(!has(&text, "App: "), "no JVM: {text}");
    }
}
