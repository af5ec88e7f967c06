//! Reports of phases say how far off they may be because counters lag.

use std::{cell::RefCell, path::Path};

use super::baseline::choices;
use crate::{
    attribution::Engine,
    dataset::{OutputDirectory, ParquetOutput, fixture},
    events::Event,
    model::{domain::Update, policy::Policy},
    report::{
        diff::{self, CompareBy, Per},
        profile::{Filter, Names, Profile},
        ranking::context,
    },
    totals::Totals,
};

/// Writes a data set whose counters advance once a millisecond. Returns what the run itself summed up.
fn watched(root: &Path) -> Totals {
    let output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), fixture::FLUSH_NS);
    let run = RefCell::new((Engine::default(), Totals::default()));
    fixture::play_changed(output, Policy::default(), |event| {
        if let Event::RunStarted(run) = event {
            let (update, window_ns) = (Update { interval_us: 1_000, is_least: false }, run.interval_ns);
            run.domains.iter_mut().for_each(|domain| domain.watched(update, window_ns));
        }
        let (engine, totals) = &mut *run.borrow_mut();
        if let Some(report) = engine.apply(event) {
            totals.window(&report, engine.table());
        }
    });
    let (_, mut totals) = run.into_inner();
    totals.finish();
    totals
}

#[test]
fn a_report_of_phases_bounds_them_as_the_run_itself_did() {
    let root = tempfile::tempdir().unwrap();
    let totals = watched(root.path());
    let overview = |phases: &[String]| {
        let filter = Filter { phases: Names::parse(phases).unwrap(), ..Filter::default() };
        Profile::read(root.path(), &filter, None).unwrap().overview
    };
    let tallies = totals.phases.tallies();
    assert_eq!(tallies.len(), 3);
    for (path, tally) in tallies {
        let (lag, read) = (tally.lag.unwrap(), overview(&[path.to_owned()]));
        assert!(lag.joules() > 0.0 && !lag.is_least, "{path}: {lag:?}");
        assert!((read.lag.unwrap().joules() / lag.joules() - 1.0).abs() < 1e-9, "{path}: {lag:?}, {:?}", read.lag);
        let warnings = context::warnings(&read).join("\n");
        assert!(warnings.contains(&format!("may be off by {:.3} J", lag.joules())), "{warnings}");
    }
    assert_eq!(overview(&[]).lag, None);
}

#[test]
fn a_comparison_of_phases_says_how_far_off_they_may_be() {
    let root = tempfile::tempdir().unwrap();
    let totals = watched(root.path());
    let warnings = |phases: &[String]| {
        let filter = Filter { phases: Names::parse(phases).unwrap(), ..Filter::default() };
        let choices = choices(CompareBy::Method, Per::Time);
        diff::run(root.path(), root.path(), &filter, None, &choices).unwrap().warnings.join("\n")
    };
    let lags = totals.phases.tallies().into_iter().map(|(path, tally)| (path.to_owned(), tally.lag.unwrap()));
    let (path, lag) = lags.max_by(|one, other| one.1.joules().total_cmp(&other.1.joules())).unwrap();
    let all = warnings(&[]);
    assert!(
        all.contains(&format!(
            "B: energy counters are behind, so the targets' energy of all runs in phase {path} may be off by {lag}, "
        )),
        "{all}"
    );
    let selected = warnings(&[path]);
    assert!(selected.contains(&format!("these phases may be off by {lag}")), "{selected}");
}

#[test]
fn nothing_is_said_where_no_counter_was_watched() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let filter = Filter { phases: Names::parse(&["load".to_owned()]).unwrap(), ..Filter::default() };
    assert_eq!(Profile::read(root.path(), &filter, None).unwrap().overview.lag, None);
}
