//! Resolves from flags what a report shows.

use std::path::Path;

use joular_data::{
    fleet::choice::View,
    report::{
        Format,
        footprint::Choices,
        measure::Measure,
        profile::{App, Filter, Rules, Sources},
        ranking::{By, Request, Sort, TableOf},
        requests::RequestsWanted,
        watts::WattsRequest,
    },
};

use super::{ConfigError, part::part, tier};
use crate::cli::{ExportFlags, ReattributeFlags, ReportFlags};

/// `footprint` is what [`super::footprint()`] made of the same flags.
///
/// # Errors
/// If a flag cannot be understood, or several tables are wanted where there is room for one.
pub fn report_request(flags: &ReportFlags, footprint: Option<Choices>) -> Result<Request, ConfigError> {
    let invalid = |place: &str, cause: String| ConfigError::Invalid { place: place.to_owned(), cause };
    let (mut filter, app) = part(&flags.part)?;
    let measure = measure(flags.measure.as_deref())?;
    let named = |name: &String| {
        TableOf::named(name, measure).ok_or_else(|| invalid("--by", format!("'{name}' is not a kind of table")))
    };
    let tables = each_once(flags.by.iter().map(named).collect::<Result<_, _>>()?);
    if flags.csv && tables.len() != 1 {
        return Err(invalid("--csv", "CSV is one table: name one with --by".to_owned()));
    }
    let sort = sort(&flags.sort)?;
    tables.iter().try_for_each(|table| refuse_unfit(*table, measure, sort, flags.activations))?;
    if flags.activations && !filter.allows_all_paths() {
        // Calls are of all paths, energy would be of some: their quotient bounds nothing.
        let other = if filter.methods.allow_all() { "--handler" } else { "--method" };
        return Err(ConfigError::Conflict {
            place: "--activations".to_owned(),
            other: other.to_owned(),
            advice: "leave one out",
        });
    }
    if tables.iter().any(|table| table.by == By::Handler) {
        filter.handler_rules.get_or_insert_with(Rules::built_in);
    }
    let format = Format::of_flags(flags.json, flags.csv, flags.markdown);
    let app = app.or_else(|| shows_java(flags, &tables, format).then_some(App::Java));
    let (top, activations) = (flags.top, flags.activations);
    let of_tables = tables.iter().map(|table| View::Table(table.by));
    let beside = [(activations, View::Calls), (footprint.is_some(), View::Footprint)];
    let beside = beside.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, view)| view);
    filter.sources = tier::sources(&flags.tier.tier, of_tables.chain(beside))?;
    Ok(Request { filter, app, tables, top, sort, activations, footprint, format })
}

/// Whether tables are in the Java view although nobody asked for a view: for people, and unless they are about kinds of code.
/// Programs get frames as they were recorded.
fn shows_java(flags: &ReportFlags, tables: &[TableOf], format: Format) -> bool {
    let is_for_people = matches!(format, Format::Text | Format::Markdown);
    !flags.all_frames && is_for_people && tables.iter().all(|table| table.by != By::Kind)
}

/// What `--requests` shows, of a file.
///
/// # Errors
/// If a flag cannot be understood, or rows are not about handlers.
pub fn requests(flags: &ReportFlags, counts: &Path) -> Result<RequestsWanted, ConfigError> {
    if !flags.by.iter().all(|by| by == By::Method.name() || by == By::Handler.name()) {
        return Err(ConfigError::Conflict {
            place: "--requests".to_owned(),
            other: format!("--by {}", flags.by.join(",")),
            advice: "its rows are routes: leave --by out",
        });
    }
    let (mut filter, _) = part(&flags.part)?;
    filter.handler_rules.get_or_insert_with(Rules::built_in);
    let format = Format::of_flags(flags.json, flags.csv, flags.markdown);
    Ok(RequestsWanted { filter, counts: counts.to_owned(), format })
}

/// What `--watts` shows.
///
/// # Errors
/// If a flag cannot be understood, or rows are not about threads.
pub fn watts_request(flags: &ReportFlags) -> Result<WattsRequest, ConfigError> {
    let request = report_request(flags, None)?;
    let by: Vec<By> = request.of_energy().collect();
    by.iter().try_for_each(|by| expect_threads("--watts", *by))?;
    // Watts are learnt from single windows of hosts.
    let filter = Filter { sources: Sources::default(), ..request.filter };
    Ok(WattsRequest { filter, by, format: request.format })
}

fn expect_threads(flag: &str, by: By) -> Result<(), ConfigError> {
    if by.is_of_threads() {
        return Ok(());
    }
    Err(ConfigError::Conflict {
        place: flag.to_owned(),
        other: format!("--by {}", by.name()),
        advice: "watts are of threads: write --by thread, thread-pool, category, process, command, service, container, \
                 pod, namespace, host or label:KEY",
    })
}

/// What CPU time is to count for in a data set that is attributed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsAgain {
    AsRecorded,
    Alike,
    /// By watts of these groups.
    Fitted(By),
}

/// The choice of `reattribute --weights` and `--by`.
///
/// # Errors
/// If a flag cannot be understood, or groups are not about threads.
pub fn weights_again(flags: &ReattributeFlags) -> Result<WeightsAgain, ConfigError> {
    let invalid = |place: &str, cause: String| ConfigError::Invalid { place: place.to_owned(), cause };
    let by = match &flags.by {
        None => By::ThreadPool,
        Some(name) => {
            let table = TableOf::named(name, Measure::Energy).map(|table| table.by);
            table.ok_or_else(|| invalid("--by", format!("'{name}' is not a kind of table")))?
        }
    };
    expect_threads("--weights fitted", by)?;
    match flags.weights.as_deref() {
        None => Ok(WeightsAgain::AsRecorded),
        Some("alike") if flags.by.is_none() => Ok(WeightsAgain::Alike),
        Some("fitted") => Ok(WeightsAgain::Fitted(by)),
        Some("alike") => Err(invalid("--by", "it is for --weights fitted".to_owned())),
        Some(other) => Err(invalid("--weights", format!("'{other}': use fitted or alike"))),
    }
}

/// What is ranked or drawn.
pub(super) fn measure(name: Option<&str>) -> Result<Measure, ConfigError> {
    let parsed = name.map(str::parse).transpose();
    parsed.map(Option::unwrap_or_default).map_err(|cause| ConfigError::Invalid { place: "--measure".to_owned(), cause })
}

/// What an export holds, of a format that holds one measure.
///
/// # Errors
/// If there is no such measure, or the format holds all of them.
pub fn exported_measure(flags: &ExportFlags, is_of_one_measure: bool) -> Result<Measure, ConfigError> {
    match &flags.measure {
        Some(name) if !is_of_one_measure => Err(ConfigError::Conflict {
            place: format!("--measure {}", name.escape_debug()),
            other: format!("--format {}", flags.format),
            advice: "this format holds energy and what else it has room for: leave --measure out",
        }),
        name => measure(name.as_deref()),
    }
}

fn sort(name: &str) -> Result<Sort, ConfigError> {
    Sort::all().find(|sort| sort.name() == name).ok_or_else(|| ConfigError::Invalid {
        place: "--view".to_owned(),
        cause: format!(
            "'{}' is not one of {}",
            name.escape_debug(),
            Sort::all().map(Sort::name).collect::<Vec<_>>().join(", ")
        ),
    })
}

/// Refuses what would be ignored without a word.
fn refuse_unfit(table: TableOf, measure: Measure, sort: Sort, activations: bool) -> Result<(), ConfigError> {
    let by = format!("--by {}", table.name());
    let conflict = |place: String, other: String, advice| Err(ConfigError::Conflict { place, other, advice });
    if ![Measure::Energy, table.measure].contains(&measure) {
        let advice = "this table is of allocated bytes: leave --measure out";
        return conflict(format!("--measure {}", measure.name()), by, advice);
    }
    let is_of_energy = table.measure == Measure::Energy;
    match sort {
        Sort::By(by_measure) if !is_of_energy && by_measure != table.measure => {
            let advice = "a table of one measure is ranked by self or total";
            conflict(format!("--view {}", sort.name()), format!("{by}, which is of {}", table.measure.name()), advice)
        }
        _ if activations && !is_of_energy => {
            conflict("--activations".to_owned(), by, "calls are set in relation to energy: leave one out")
        }
        _ => Ok(()),
    }
}

/// Without repetitions, in the order of the first ones.
fn each_once<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    all.into_iter().fold(Vec::new(), |mut once, one| {
        if !once.contains(&one) {
            once.push(one);
        }
        once
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use joular_data::report::ranking::By;

    use super::*;
    use crate::cli::{Cli, Command, PartFlags};

    fn flags(by: &[&str]) -> ReportFlags {
        let by = by.iter().map(ToString::to_string).collect();
        ReportFlags { by, sort: Sort::Own.name().to_owned(), ..ReportFlags::default() }
    }

    #[test]
    fn tables_are_made_once_and_in_the_order_asked_for() {
        let request = report_request(&flags(&["thread", "method", "thread"]), None).unwrap();
        let by: Vec<By> = request.of_energy().collect();
        assert_eq!(by, [By::Thread, By::Method]);
    }

    #[test]
    fn every_order_that_there_is_can_be_asked_for() {
        let asked = |sort: Sort| {
            let arguments = ["joular-bpf", "report", "out", "--view", sort.name()];
            let Command::Report(flags) = Cli::try_parse_from(arguments).unwrap().command.unwrap() else { panic!() };
            report_request(&flags, None).unwrap().sort
        };
        assert!(Sort::all().all(|sort| asked(sort) == sort));
    }

    #[test]
    fn people_get_the_java_view_unless_they_ask_for_more_and_programs_get_all() {
        let view = |flags: ReportFlags| report_request(&flags, None).unwrap().app;
        let part = |part: PartFlags| ReportFlags { part, ..flags(&["method"]) };
        assert_eq!(view(flags(&["method", "thread"])), Some(App::Java));
        assert_eq!(view(ReportFlags { markdown: true, ..flags(&["class"]) }), Some(App::Java));
        assert_eq!(view(flags(&["method", "kind"])), None);
        assert_eq!(view(ReportFlags { all_frames: true, ..flags(&["method"]) }), None);
        assert_eq!(view(ReportFlags { json: true, ..flags(&["method"]) }), None);
        assert_eq!(
            view(ReportFlags { csv: true, ..part(PartFlags { java: true, ..PartFlags::default() }) }),
            Some(App::Java)
        );
        let app = vec!["com.acme".to_owned()];
        assert_eq!(view(part(PartFlags { app: app.clone(), ..PartFlags::default() })), Some(App::Of(app)));
    }

    #[test]
    fn a_csv_is_one_table() {
        let one = ReportFlags { csv: true, ..flags(&["method"]) };
        assert_eq!(report_request(&one, None).unwrap().format, Format::Csv);
        let two = ReportFlags { csv: true, ..flags(&["method", "thread"]) };
        assert!(report_request(&two, None).unwrap_err().to_string().starts_with("--csv: CSV is one table"));
    }

    #[test]
    fn calls_of_some_paths_are_not_offered() {
        let mut flags = ReportFlags { activations: true, ..flags(&["method"]) };
        assert!(report_request(&flags, None).unwrap().activations);
        flags.part.method = vec!["*.run".to_owned()];
        assert!(
            report_request(&flags, None)
                .unwrap_err()
                .to_string()
                .contains("--activations cannot be used with --method")
        );
    }

    #[test]
    fn the_command_line_offers_all_that_tables_can_be_by() {
        let parser = <ReportFlags as clap::Args>::augment_args(clap::Command::new("report"));
        let by = parser.get_arguments().find(|argument| argument.get_id() == "by").unwrap();
        let offered: Vec<String> = by.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        assert_eq!(
            offered,
            [By::ALL.map(By::name).as_slice(), &["label:KEY", By::ClassAllocated.name(), TableOf::ALLOCATING_METHOD]]
                .concat()
        );
        assert!(offered.iter().all(|name| TableOf::named(name, Measure::Energy).is_some()));
    }

    #[test]
    fn tables_are_of_the_measure_that_is_asked_for_and_classes_of_what_was_allocated() {
        let of = |by: &str, measure: Option<&str>, sort: &str| {
            let flags = ReportFlags { measure: measure.map(Into::into), sort: sort.to_owned(), ..flags(&[by]) };
            report_request(&flags, None).map(|request| request.tables[0].measure).map_err(|error| error.to_string())
        };
        assert_eq!(of("thread", None, "sent"), Ok(Measure::Energy));
        assert_eq!(of("thread", Some("sent"), "self"), Ok("sent".parse().unwrap()));
        assert_eq!(of("thread", Some("sent"), "sent"), Ok("sent".parse().unwrap()));
        for (by, measure) in
            [("class-allocated", None), ("allocating-method", None), ("class-allocated", Some("allocated"))]
        {
            assert_eq!(of(by, measure, "total"), Ok(Measure::Allocated));
        }
        for (by, measure, sort, expected) in [
            (
                "class-allocated",
                None,
                "sent",
                "--view sent cannot be used with --by class-allocated, which is of allocated",
            ),
            ("thread", Some("read"), "sent", "--view sent cannot be used with --by thread, which is of read"),
            ("class-allocated", Some("sent"), "self", "--measure sent cannot be used with --by class-allocated"),
            ("thread", Some("joules"), "self", "--measure: 'joules' is not a measure: use one of energy, allocated"),
            ("thread", None, "most", "--view: 'most' is not one of self, total, allocated, sent"),
        ] {
            let error = of(by, measure, sort).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
