//! Says which processes and hosts are erased, by the records of a place.

use std::sync::Arc;

use super::record::{self, Record, Subject};
use crate::{
    dataset::{
        erasing::{Key, Keys},
        error::Result,
        layout::{FilePlace, date},
        read::{
            columns::{Columns, TableFile},
            files::RunFiles,
        },
        store::Store,
        tables::{
            Processes, processes,
            shared::{PID, PROCESS_START},
        },
    },
    events::RunInfo,
    fleet::{names::erased_process, tier::Tier},
    model::units::UnixMicros,
};

const HOUR_US: i64 = 3_600_000_000;

/// The process that stands for those that were erased.
pub(super) fn erased_key() -> Key {
    (erased_process().pid.0, Some(0))
}

/// What is erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::fleet) struct Rules(pub(super) Vec<Record>);

impl Rules {
    /// Those of a place.
    pub(in crate::fleet) fn read(place: &Arc<dyn Store>) -> Result<Self> {
        record::all(place).map(Self)
    }

    /// What of them is about the sources of a tier. In those of the later ones, hosts are services, and there are no pods.
    pub(in crate::fleet) fn of_tier(self, tier: Tier) -> Self {
        match tier {
            Tier::Minutes => self,
            Tier::Hourly => {
                let of_services = self.0.into_iter().filter(|record| matches!(record.subject, Subject::Service(_)));
                Self(of_services.collect())
            }
        }
    }

    /// The services of tiers, each with the time before which it is erased.
    pub(super) fn services(&self) -> impl Iterator<Item = (&str, UnixMicros)> {
        self.0.iter().filter_map(|record| match &record.subject {
            Subject::Service(name) => Some((name.as_str(), record.before())),
            Subject::Pod(_) | Subject::Host(_) => None,
        })
    }

    /// The hosts, likewise.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (&str, UnixMicros)> {
        self.0.iter().filter_map(|record| match &record.subject {
            Subject::Host(name) => Some((name.as_str(), record.before())),
            Subject::Service(_) | Subject::Pod(_) => None,
        })
    }

    /// What of them is about hosts.
    pub(super) fn of_hosts(self) -> Self {
        Self(self.0.into_iter().filter(|record| matches!(record.subject, Subject::Host(_))).collect())
    }

    /// Whether all of them are about hosts.
    pub(super) fn are_of_hosts(&self) -> bool {
        self.hosts().count() == self.0.len()
    }

    /// The time from which on nothing is erased; `None`: nothing is at all.
    pub(super) fn end(&self) -> Option<UnixMicros> {
        self.0.iter().map(Record::before).max()
    }

    /// Whether runs and a tier may say different things of an hour that begins then. A tier does not know pods, and is erased by
    /// whole units that began before a time, where runs are that began before it, and go on in the next hour. Hosts are gone
    /// as if they had expired.
    pub(in crate::fleet) fn have_apart(&self, tier: Tier, hour: UnixMicros) -> bool {
        let unit_us = tier.unit_us();
        self.0.iter().any(|record| {
            let before_us = record.before().0;
            let first = before_us.saturating_sub(before_us.rem_euclid(HOUR_US));
            let next = first.saturating_add(HOUR_US);
            let last_of_unit =
                before_us.saturating_sub(before_us.rem_euclid(unit_us)).saturating_add(unit_us - HOUR_US);
            match record.subject {
                Subject::Service(_) => (first..=next.max(last_of_unit)).contains(&hour.0),
                Subject::Pod(_) => hour.0 <= next,
                Subject::Host(_) => false,
            }
        })
    }

    /// Whether the run's host is erased.
    pub(in crate::fleet) fn have_host(&self, info: &RunInfo) -> bool {
        self.hosts().any(|(name, before)| name == info.host.raw() && info.started < before)
    }

    /// Whether a host of which nothing but the folder is known is erased. Some names have the folder of another one, and are
    /// not told by it.
    pub(super) fn have_folder(&self, place: &FilePlace) -> bool {
        self.hosts().any(|(name, before)| place.host() == Some(name) && place.date() <= date(before).as_str())
    }

    /// The processes of a run that are erased. Any row of a process may say so.
    ///
    /// # Errors
    /// If a file of processes cannot be read.
    pub(in crate::fleet) fn processes(&self, run: &RunFiles, started: UnixMicros) -> Result<Keys> {
        let is_wanted = |record: &&Record| started < record.before() && !matches!(record.subject, Subject::Host(_));
        let subjects: Vec<&Subject> = self.0.iter().filter(is_wanted).map(|record| &record.subject).collect();
        let mut found = Keys::new();
        if subjects.is_empty() {
            return Ok(found);
        }
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Processes>()) {
            TableFile::open(file)?.batches(|columns| matching(columns, &subjects, &mut found))?;
        }
        Ok(found)
    }
}

fn matching(columns: &Columns<'_>, subjects: &[&Subject], found: &mut Keys) -> Result<()> {
    let (pids, starts) = (columns.ints(PID)?, columns.times(PROCESS_START)?);
    let services = columns.texts(processes::SERVICE)?;
    let (pods, pod_names) = (columns.texts(processes::POD)?, columns.texts(processes::POD_NAME)?);
    for row in 0..columns.rows() {
        let is_of = |subject: &&Subject| match subject {
            Subject::Service(name) => services.maybe(row) == Some(name.as_str()),
            Subject::Pod(name) => [&pods, &pod_names].into_iter().any(|pods| pods.maybe(row) == Some(name.as_str())),
            Subject::Host(_) => false,
        };
        if subjects.iter().any(is_of) {
            found.insert((pids.natural(row)?, starts.maybe(row)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dataset::fixture, model::policy::Policy};

    fn rules() -> Rules {
        let at = |seconds: i64| UnixMicros(fixture::STARTED + seconds * 1_000_000);
        let subjects = [
            (Subject::Service("shop".to_owned()), 5),
            (Subject::Pod("p".to_owned()), 7),
            (Subject::Host("node-1".to_owned()), 1),
            (Subject::Host("later".to_owned()), 0),
        ];
        Rules(subjects.into_iter().map(|(subject, end)| Record::new(subject, at(end), at(9))).collect())
    }

    #[test]
    fn later_tiers_know_services_alone_and_the_end_is_that_of_the_last_record() {
        let all = rules();
        assert_eq!(all.end(), Some(UnixMicros(fixture::STARTED + 7_000_000)));
        assert_eq!(all.clone().of_tier(Tier::Minutes), all);
        let hourly = all.clone().of_tier(Tier::Hourly);
        assert_eq!(hourly.services().collect::<Vec<_>>(), [("shop", UnixMicros(fixture::STARTED + 5_000_000))]);
        assert_eq!((hourly.0.len(), hourly.hosts().count()), (1, 0));
        let hosts = all.clone().of_hosts();
        assert!(hosts.are_of_hosts() && hosts.hosts().count() == 2 && !all.are_of_hosts());
        assert_eq!(Rules::default().end(), None);
    }

    #[test]
    fn hours_are_apart_around_the_end_of_a_service_and_before_that_of_a_pod() {
        // 10:30 of a day.
        let end = UnixMicros(fixture::STARTED.div_euclid(24 * HOUR_US) * 24 * HOUR_US + 10 * HOUR_US + HOUR_US / 2);
        let midnight = end.0 - 10 * HOUR_US - HOUR_US / 2;
        let apart = |subject: Subject, before: UnixMicros, tier| {
            let rules = Rules(vec![Record::new(subject, before, end)]);
            let of_hour = |hour: &i64| rules.have_apart(tier, UnixMicros(midnight + hour * HOUR_US));
            (-2_i64..30).filter(of_hour).collect::<Vec<i64>>()
        };
        let (service, pod) = (|| Subject::Service("shop".to_owned()), || Subject::Pod("p".to_owned()));
        assert_eq!(apart(service(), end, Tier::Minutes), [10, 11]);
        assert_eq!(apart(service(), end, Tier::Hourly), (10..24).collect::<Vec<i64>>());
        assert_eq!(apart(service(), UnixMicros(midnight + 23 * HOUR_US), Tier::Hourly), [23, 24], "a run may go on");
        for tier in Tier::ALL {
            assert_eq!(apart(pod(), end, tier), (-2..12).collect::<Vec<i64>>());
            assert_eq!(apart(Subject::Host("a".to_owned()), end, tier), [0_i64; 0]);
            assert_eq!(apart(pod(), UnixMicros(i64::MAX), tier).len(), 32);
        }
    }

    #[test]
    fn a_host_is_erased_in_runs_that_began_before_and_by_folders_that_tell_its_name() {
        let mut info = fixture::run_info(Policy::default());
        assert!(rules().have_host(&info));
        info.host = "later".into();
        assert!(!rules().have_host(&info), "it began at that time");
        info.host = "node_1".into();
        assert!(!rules().have_host(&info));
        let place = |host: &str| {
            info.host = host.into();
            FilePlace::new(&info, "2026-03-01", 0)
        };
        let [one, other, underscore] = ["node-1", "node-2", "node_1"].map(place);
        let of_underscore = Record::new(Subject::Host("node_1".to_owned()), UnixMicros(i64::MAX), UnixMicros(0));
        assert!(rules().have_folder(&one) && !rules().have_folder(&other));
        assert!(!Rules(vec![of_underscore]).have_folder(&underscore), "other names have the same folder");
    }
}
