//! Resolves from flags what a report shows.

use joular_data::report::{
    Format,
    footprint::Choices,
    ranking::{AllocatedBy, By, Request, Sort},
};

use super::{ConfigError, part::part};
use crate::cli::ReportFlags;

/// `footprint` is what [`super::footprint()`] made of the same flags.
///
/// # Errors
/// If a flag cannot be understood, or several tables are wanted where there is room for one.
pub fn report_request(flags: &ReportFlags, footprint: Option<Choices>) -> Result<Request, ConfigError> {
    let invalid = |place: &str, cause: String| ConfigError::Invalid { place: place.to_owned(), cause };
    let (filter, app) = part(&flags.part)?;
    let (mut by, mut allocated_by): (Vec<By>, Vec<AllocatedBy>) = (Vec::new(), Vec::new());
    for name in &flags.by {
        if let Some(known) = By::ALL.into_iter().find(|by| by.name() == name) {
            by.push(known);
        } else if let Some(known) = AllocatedBy::ALL.into_iter().find(|by| by.name() == name) {
            allocated_by.push(known);
        } else {
            return Err(invalid("--by", format!("'{name}' is not a kind of table")));
        }
    }
    let (by, allocated_by) = (each_once(by), each_once(allocated_by));
    if flags.csv && by.len() + allocated_by.len() != 1 {
        return Err(invalid("--csv", "CSV is one table: name one with --by".to_owned()));
    }
    if flags.activations && !filter.methods.allow_all() {
        // Calls are of all paths, energy would be of some: their quotient bounds nothing.
        return Err(ConfigError::Conflict {
            place: "--activations".to_owned(),
            other: "--method".to_owned(),
            advice: "leave one out",
        });
    }
    let format = Format::of_flags(flags.json, flags.csv, flags.markdown);
    let sort = Sort::all().find(|sort| sort.name() == flags.sort).unwrap_or_default();
    let (top, activations) = (flags.top, flags.activations);
    Ok(Request { filter, app, by, allocated_by, top, sort, activations, footprint, format })
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

    use super::*;
    use crate::cli::{Cli, Command};

    fn flags(by: &[&str]) -> ReportFlags {
        ReportFlags { by: by.iter().map(ToString::to_string).collect(), ..ReportFlags::default() }
    }

    #[test]
    fn tables_are_made_once_and_in_the_order_asked_for() {
        let request = report_request(&flags(&["thread", "method", "thread"]), None).unwrap();
        assert_eq!(request.by, [By::Thread, By::Method]);
    }

    #[test]
    fn every_order_that_there_is_can_be_asked_for() {
        let asked = |sort: Sort| {
            let arguments = ["joular-bpf", "report", "out", "--sort", sort.name()];
            let Command::Report(flags) = Cli::try_parse_from(arguments).unwrap().command.unwrap() else { panic!() };
            report_request(&flags, None).unwrap().sort
        };
        assert!(Sort::all().all(|sort| asked(sort) == sort));
        assert_eq!(report_request(&ReportFlags::default(), None).unwrap().sort, Sort::Own);
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
        assert_eq!(offered, [By::ALL.map(By::name).as_slice(), &AllocatedBy::ALL.map(AllocatedBy::name)].concat());
    }
}
