//! Resolves from flags which part of a data set is used.

use std::sync::Arc;

use joular_data::{
    model::units::Pid,
    report::profile::{
        App, ChargeBy, Filter, FilterError, Labels, Moment, Names, Rules, RulesError, Unreadable, filter,
    },
};

use super::{ConfigError, duration::parse_duration};
use crate::cli::PartFlags;

/// What rows of a data set count, and whose view of them is taken.
///
/// # Errors
/// If a flag cannot be understood.
pub fn part(flags: &PartFlags) -> Result<(Filter, Option<App>), ConfigError> {
    let at = |place: &str| {
        let place = format!("--{place}");
        move |error: FilterError| ConfigError::Invalid { place, cause: error.to_string() }
    };
    let names = |place: &str, names: &[String]| Names::parse(names).map_err(at(place));
    let moment = |place: &str, text: &Option<String>| {
        let moment = text.as_deref().map(|text| Moment::parse(text, |text| parse_duration(text).ok()));
        moment.transpose().map_err(at(place))
    };
    let filter = Filter {
        since: moment("since", &flags.since)?,
        until: moment("until", &flags.until)?,
        pids: flags.pid.iter().copied().map(Pid).collect(),
        processes: names("process", &flags.process)?,
        services: names("service", &flags.service)?,
        containers: names("container", &flags.container)?,
        pods: names("pod", &flags.pod)?,
        namespaces: names("namespace", &flags.namespace)?,
        labels: Labels::parse(&flags.label).map_err(at("label"))?,
        threads: names("thread", &flags.thread)?,
        categories: filter::categories(&flags.category).map_err(at("category"))?,
        methods: names("method", &flags.method)?,
        handlers: names("handler", &flags.handler)?,
        handler_rules: rules(flags)?,
        hosts: names("host", &flags.host)?,
        runs: names("run", &flags.run)?,
        phases: names("phase", &flags.phase)?,
        exact_names: flags.exact_names,
        no_infer: flags.no_infer,
        charge_gc: flags.charge_gc.as_deref().map(ChargeBy::parse).transpose().map_err(at("charge-gc"))?,
        unreadable: unreadable(flags.strict),
        ..Filter::default()
    };
    Ok((filter, if flags.java { Some(App::Java) } else { App::of(&flags.app) }))
}

/// Stands in `--app` for the packages that are found.
pub const AUTO_APP: &str = "auto";

/// What becomes of runs that cannot be read, by `--strict`.
pub fn unreadable(is_strict: bool) -> Unreadable {
    if is_strict { Unreadable::default() } else { Unreadable::left_out() }
}

/// How handlers are found, if any flag is about them.
fn rules(flags: &PartFlags) -> Result<Option<Arc<Rules>>, ConfigError> {
    let invalid =
        |error: RulesError| ConfigError::Invalid { place: "--handler-rules".to_owned(), cause: error.to_string() };
    match &flags.handler_rules {
        Some(path) => Rules::read(path).map(Some).map_err(invalid),
        None => Ok((!flags.handler.is_empty()).then(Rules::built_in)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use joular_data::model::units::UnixMicros;

    use super::*;

    #[test]
    fn generated_classes_have_exact_names_only_if_asked_for() {
        let exact_names = |exact_names| part(&PartFlags { exact_names, ..PartFlags::default() }).unwrap().0.exact_names;
        assert_eq!([false, true].map(exact_names), [false, true]);
    }

    #[test]
    fn collectors_are_charged_by_what_was_allocated_or_by_what_survived() {
        let charge_gc = |by: Option<&str>| {
            let flags = PartFlags { charge_gc: by.map(ToOwned::to_owned), ..PartFlags::default() };
            part(&flags).map(|(filter, _)| filter.charge_gc).map_err(|error| error.to_string())
        };
        assert_eq!(charge_gc(None), Ok(None));
        assert_eq!(charge_gc(Some("allocated")), Ok(Some(ChargeBy::Allocated)));
        assert_eq!(charge_gc(Some("survived")), Ok(Some(ChargeBy::Survived)));
        assert!(charge_gc(Some("size")).unwrap_err().contains("--charge-gc"));
    }

    #[test]
    fn times_are_of_the_world_or_of_the_run() {
        let flags =
            PartFlags { since: Some("30s".into()), until: Some("2026-03-01T00:00:01Z".into()), ..PartFlags::default() };
        let (filter, app) = part(&flags).unwrap();
        assert_eq!(filter.since, Some(Moment::Into(Duration::from_secs(30))));
        assert_eq!(filter.until, Some(Moment::At(UnixMicros(1_772_323_201_000_000))));
        assert_eq!(app, None);
    }

    #[test]
    fn what_no_sample_hit_is_shared_out_unless_that_is_refused() {
        let no_infer = |no_infer| part(&PartFlags { no_infer, ..PartFlags::default() }).unwrap().0.no_infer;
        assert_eq!([false, true].map(no_infer), [false, true]);
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (flags, expected) in [
            (PartFlags { since: Some("noon".into()), ..PartFlags::default() }, "--since: 'noon' is not a time"),
            (PartFlags { service: vec!["[".into()], ..PartFlags::default() }, "--service: '[' is not a pattern"),
            (PartFlags { handler: vec!["[".into()], ..PartFlags::default() }, "--handler: '[' is not a pattern"),
            (
                PartFlags { handler_rules: Some("/nowhere.toml".into()), ..PartFlags::default() },
                "--handler-rules: reading rules of handlers from /nowhere.toml: ",
            ),
            (PartFlags { thread: vec!["[".into()], ..PartFlags::default() }, "--thread: '[' is not a pattern"),
            (PartFlags { category: vec!["gcc".into()], ..PartFlags::default() }, "--category: 'gcc' is not a category"),
        ] {
            let message = part(&flags).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
