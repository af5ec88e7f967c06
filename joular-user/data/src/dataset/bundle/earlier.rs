//! Leaves out bundles of the hour before the one that is asked for, of which it is known that they have nothing of it: a
//! recording that is cut into runs begins each of them where the last one ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    dataset::{
        layout::{RunName, following},
        read::files::RunFiles,
        store::Hour,
    },
    model::units::UnixMicros,
};

const SECOND_US: i64 = 1_000_000;

/// Runs that began in an earlier hour than the time that is asked for, and the run that follows each.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    since: Option<UnixMicros>,
    runs: Vec<(RunFiles, RunName)>,
}

impl Earlier {
    /// Takes from `runs` those bundles whose rows need not be read before those of the others. A run that another one follows
    /// in an earlier hour has ended before this hour: it is not wanted at all.
    pub(crate) fn taken_from(runs: &mut Vec<RunFiles>, since: Option<UnixMicros>) -> Self {
        let Some(moment) = since else { return Self::default() };
        let hour = Hour::of(moment);
        let is_earlier = |run: &RunFiles| run.hour().is_some_and(|of_run| of_run < hour);
        let bundles = || runs.iter().filter(|run| run.is_bundle());
        let earlier: BTreeSet<RunName> = bundles().filter(|run| is_earlier(run)).map(|run| run.place.run()).collect();
        let all: BTreeSet<RunName> = bundles().map(|run| run.place.run()).collect();
        let mut taken = Vec::new();
        runs.retain(|run| {
            let next = following(&run.place.run());
            let is_needed = !earlier.contains(&run.place.run()) || !all.contains(&next);
            if !is_needed && !earlier.contains(&next) {
                taken.push((run.clone(), next));
            }
            is_needed
        });
        Self { since, runs: taken }
    }

    /// Those that may have something of the time that is asked for, when it is known when others began. Runs are cut where
    /// the clock passes a multiple of so many seconds: all windows of a run begin before that, and the first of the next run
    /// not before.
    pub(crate) fn wanted(self, began: &BTreeMap<RunName, UnixMicros>) -> Vec<RunFiles> {
        let cut = |began: &UnixMicros| UnixMicros(began.0.div_euclid(SECOND_US).saturating_mul(SECOND_US));
        let is_over = |next: &RunName| began.get(next).map(cut).is_some_and(|cut| Some(cut) <= self.since);
        self.runs.into_iter().filter(|(_, next)| !is_over(next)).map(|(run, _)| run).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;
    use crate::dataset::{
        bundle::{place_of, read},
        store::{LocalDirectory, Store},
    };

    /// 2026-03-01T12:00Z.
    const NOON: i64 = 1_772_366_400_000_000;

    /// Which of these bundles of a host are read for what begins at noon and so many microseconds, if the one that noon is
    /// in began so many microseconds after noon.
    fn wanted(names: &[&str], since: i64, began: i64) -> (Vec<String>, Vec<String>) {
        let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(Path::new("/nowhere"), None));
        let bundle = |name: &&str| {
            let (hour, run) = name.split_once('/').unwrap();
            let within = format!("raw/date=2026-03-01/hour={hour}/group=00/host=a/{run}.parquet");
            read::open(&store, Path::new(&within), place_of(Path::new(&within)).unwrap())
        };
        let mut runs: Vec<RunFiles> = names.iter().map(bundle).collect();
        let names = |runs: &[RunFiles]| runs.iter().map(|run| run.place.run().1).collect::<Vec<_>>();
        let earlier = Earlier::taken_from(&mut runs, Some(UnixMicros(NOON + since)));
        let began = runs.iter().map(|run| (run.place.run(), UnixMicros(NOON + began))).collect();
        (names(&runs), names(&earlier.wanted(&began)))
    }

    #[test]
    fn a_run_of_the_hour_before_is_read_only_if_it_may_go_on() {
        let of = |first: &[&str], then: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            (owned(first), owned(then))
        };
        let quarters = ["11/r.0001", "11/r.0002", "11/r.0003", "12/r.0004", "12/r.0005"];
        let of_hour = &["r.0004", "r.0005"];
        assert_eq!(wanted(&quarters, 0, 0), of(of_hour, &[]));
        assert_eq!(wanted(&quarters, 0, 999_999), of(of_hour, &[]), "its first window begins after the cut");
        assert_eq!(wanted(&quarters, 0, 7 * 60_000_000), of(of_hour, &["r.0003"]), "it goes on for seven minutes");
        assert_eq!(wanted(&quarters, 7 * 60_000_000, 7 * 60_000_000), of(of_hour, &[]));
        assert_eq!(wanted(&["11/r", "11/r.0001", "12/r.0002"], 0, 0), of(&["r.0002"], &[]), "the first has no number");
        assert_eq!(wanted(&["11/r", "12/r.0002"], 0, 0), of(&["r", "r.0002"], &[]), "one between them is not there");
        assert_eq!(wanted(&["11/r.0001", "12/s"], 0, 0), of(&["r.0001", "s"], &[]), "it may be the last one");
    }

    #[test]
    fn without_a_beginning_all_are_read() {
        let mut runs = Vec::new();
        assert!(Earlier::taken_from(&mut runs, None).wanted(&BTreeMap::new()).is_empty());
    }
}
