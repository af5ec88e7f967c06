//! Resolves from flags what a baseline keeps, and how a data set is compared with it.

use joular_data::report::{
    diff::{
        Choices,
        baseline::{Baseline, BaselineError, Keep},
    },
    profile::{App, Filter},
};

use super::{ConfigError, diff::expect_work, diff_choices, part};
use crate::cli::{BaselineCheckFlags, BaselineSaveFlags, DiffFlags, PartFlags};

/// Rows that a baseline has unless told otherwise.
const ROWS: usize = 100;

/// How a check compares, and what part of the data set.
#[derive(Debug)]
pub struct Check {
    pub choices: Choices,
    pub filter: Filter,
    pub app: Option<App>,
}

/// Rows of a baseline, and what is kept beside them.
///
/// # Errors
/// If a flag cannot be understood.
pub fn baseline_to_save(flags: &BaselineSaveFlags) -> Result<(Choices, Keep), ConfigError> {
    let (by, view, measure) = (flags.by.clone(), flags.view.clone(), flags.measure.clone());
    let choices = diff_choices(&DiffFlags { by, view, measure, ..DiffFlags::default() })?;
    expect_work("work", &flags.work)?;
    let part = serde_json::to_value(&flags.part).map_err(|error| unknown_part(&error))?;
    let top = match flags.top {
        Some(0) => None,
        top => Some(top.unwrap_or(ROWS)),
    };
    let session = flags.session.clone().filter(|name| !name.is_empty());
    let sessions = flags.keep_sessions.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    Ok((choices, Keep { part, work: flags.work.clone(), top, session, sessions }))
}

/// The flags of a session that is added to a baseline: rows, measure and part are those of the baseline.
///
/// # Errors
/// If flags say otherwise, or the baseline has a part that is not known.
pub fn of_session(flags: &BaselineSaveFlags, baseline: &Baseline) -> Result<BaselineSaveFlags, ConfigError> {
    let part: PartFlags = serde_json::from_value(baseline.part().clone()).map_err(|error| unknown_part(&error))?;
    let given = PartFlags { strict: false, ..flags.part.clone() };
    if given != PartFlags::default() && given != part {
        return Err(other_rows("the selection of a part".to_owned(), baseline.part().to_string()));
    }
    let same = |flag: &str, given: &Option<String>, kept: &str| match given {
        Some(given) if given != kept => Err(other_rows(format!("--{flag} {given}"), format!("--{flag} {kept}"))),
        _ => Ok(Some(kept.to_owned())),
    };
    Ok(BaselineSaveFlags {
        by: same("by", &flags.by, baseline.by())?,
        view: same("view", &flags.view, baseline.view())?,
        measure: same("measure", &flags.measure, baseline.measure())?,
        part,
        ..flags.clone()
    })
}

fn other_rows(place: String, kept: String) -> ConfigError {
    let advice = "all sessions have the same rows: leave it out, or save a baseline anew without --session";
    ConfigError::Conflict { place, other: format!("a baseline of {kept}"), advice }
}

/// # Errors
/// If a flag cannot be understood, or the baseline has no counts of work.
pub fn baseline_to_check(flags: &BaselineCheckFlags, baseline: &Baseline) -> anyhow::Result<Check> {
    let compared = DiffFlags {
        by: Some(baseline.by().to_owned()),
        view: Some(baseline.view().to_owned()),
        measure: Some(baseline.measure().to_owned()),
        per: Some(flags.per.clone().unwrap_or_else(|| "run".to_owned())),
        margin: flags.margin.clone(),
        fail_above: flags.fail_above.clone(),
        fail_on: flags.fail_on.clone(),
        as_attributed: flags.as_attributed,
        top: flags.top,
        json: flags.json,
        markdown: flags.markdown,
        ..DiffFlags::default()
    };
    let mut choices = diff_choices(&compared)?;
    if !flags.work.is_empty() {
        expect_work("work", &flags.work)?;
        choices.per =
            baseline.per_work(flags.work.clone()).map_err(|error: BaselineError| anyhow::Error::from(error))?;
    }
    let selected: PartFlags = serde_json::from_value(baseline.part().clone()).map_err(|error| unknown_part(&error))?;
    // A gate is not to pass because a run is missing.
    let (filter, app) = part(&PartFlags { strict: true, ..selected })?;
    Ok(Check { choices, filter, app })
}

/// Options that another version may know.
fn unknown_part(error: &serde_json::Error) -> ConfigError {
    ConfigError::Invalid { place: "the selection of the baseline".to_owned(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_kept_as_it_was_given() {
        let part = PartFlags { phase: vec!["load".into()], no_infer: true, ..PartFlags::default() };
        let flags = BaselineSaveFlags { part: part.clone(), ..BaselineSaveFlags::default() };
        let (_, keep) = baseline_to_save(&flags).unwrap();
        assert_eq!(keep.part, serde_json::json!({ "phase": ["load"], "no_infer": true }), "only what was given");
        assert_eq!(serde_json::from_value::<PartFlags>(keep.part).unwrap(), part);
        assert!(serde_json::from_value::<PartFlags>(serde_json::json!({ "later": 1 })).is_err());
    }

    #[test]
    fn a_session_has_a_name_if_it_was_given_one() {
        let named = |session: &str| {
            let session = Some(session.to_owned());
            let flags = BaselineSaveFlags { session, keep_sessions: Some(8), ..BaselineSaveFlags::default() };
            baseline_to_save(&flags).unwrap().1
        };
        assert_eq!((named("").session, named("night 1").session), (None, Some("night 1".to_owned())));
        assert_eq!(named("").sessions, Some(8));
    }

    #[test]
    fn all_rows_are_kept_if_asked_for() {
        let top = |top| baseline_to_save(&BaselineSaveFlags { top, ..BaselineSaveFlags::default() }).unwrap().1.top;
        assert_eq!((top(None), top(Some(0)), top(Some(7))), (Some(ROWS), None, Some(7)));
        let none = BaselineSaveFlags { work: vec![1.0, 0.0], ..BaselineSaveFlags::default() };
        assert!(baseline_to_save(&none).unwrap_err().to_string().contains("--work: 0 is not an amount of work"));
    }
}
