//! Says which part of a data set is listed, by the names of its folders.

use crate::{
    dataset::{
        bundle::Groups,
        layout::{date, hour},
    },
    model::units::UnixMicros,
};

/// An hour in UTC, as folders have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour {
    date: String,
    hour: String,
}

impl Hour {
    /// The hour in which a moment lies.
    pub fn of(moment: UnixMicros) -> Self {
        Self { date: date(moment), hour: hour(moment) }
    }

    /// That of folders of bundles.
    pub(crate) fn of_folders(date_folder: &str, hour_folder: &str) -> Option<Self> {
        let (date, hour) = (date_folder.strip_prefix("date=")?, hour_folder.strip_prefix("hour=")?);
        Some(Self { date: date.to_owned(), hour: hour.to_owned() })
    }

    /// That of the same date.
    #[must_use]
    pub fn first_of_day(self) -> Self {
        Self { hour: "00".to_owned(), ..self }
    }
}

/// Dates and hosts that may be wanted. By default all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The first date, as folders have it.
    pub since: Option<String>,
    /// The last one.
    pub until: Option<String>,
    /// Folders of hosts; `None`: all.
    pub hosts: Option<Vec<String>>,
    /// The folders that services have where they stand for hosts ([`crate::fleet`]); `None`: all.
    pub services: Option<Vec<String>>,
    /// Of bundles: the first and the last hour in which one may have begun.
    pub hours: (Option<Hour>, Option<Hour>),
    /// Of bundles: the moment from which windows are wanted.
    pub begin: Option<UnixMicros>,
    /// Of bundles: in which groups hosts are.
    pub groups: Groups,
}

impl Part {
    /// Whether anything is left out.
    pub const fn is_narrow(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.hosts.is_some()
    }

    /// Whether a date's folder may be wanted.
    pub fn has_date(&self, folder: &str) -> bool {
        let date = folder.strip_prefix("date=").unwrap_or(folder);
        self.since.as_deref().is_none_or(|since| date >= since)
            && self.until.as_deref().is_none_or(|until| date <= until)
    }

    /// Whether a date's folder of bundles may be wanted.
    pub fn has_date_of_bundles(&self, folder: &str) -> bool {
        let date = folder.strip_prefix("date=").unwrap_or(folder);
        let (since, until) = &self.hours;
        since.as_ref().is_none_or(|since| date >= since.date.as_str())
            && until.as_ref().is_none_or(|until| date <= until.date.as_str())
    }

    /// Whether an hour's folder of bundles may be wanted, in a date's.
    pub fn has_hour(&self, date_folder: &str, hour_folder: &str) -> bool {
        let without = |folder: &str, name: &str| folder.strip_prefix(name).unwrap_or(folder).to_owned();
        let of_folder = Hour { date: without(date_folder, "date="), hour: without(hour_folder, "hour=") };
        let (since, until) = &self.hours;
        since.as_ref().is_none_or(|since| of_folder >= *since) && until.as_ref().is_none_or(|until| of_folder <= *until)
    }

    /// The folders of hosts in an hour's folder of bundles, with those of their groups; `None`: all.
    pub fn hosts_of_bundles(&self, date_folder: &str) -> Option<Vec<String>> {
        let date = date_folder.strip_prefix("date=").unwrap_or(date_folder);
        let of_host = |host: &String| format!("{}/{host}", self.groups.folder(date, host));
        self.hosts.as_ref().map(|hosts| hosts.iter().map(of_host).collect())
    }

    /// Whether a host's folder may be wanted.
    pub fn has_host(&self, folder: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|host| host == folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_dates_between_its_own_and_the_hosts_that_it_names() {
        let part = |since: Option<&str>, until: Option<&str>| Part {
            since: since.map(ToOwned::to_owned),
            until: until.map(ToOwned::to_owned),
            hosts: Some(vec!["host=web-1".to_owned()]),
            ..Part::default()
        };
        for (part, expected) in [
            (part(None, None), [true, true, true]),
            (part(Some("2026-03-02"), None), [false, true, true]),
            (part(None, Some("2026-03-02")), [true, true, false]),
            (part(Some("2026-03-02"), Some("2026-03-02")), [false, true, false]),
        ] {
            let dates = ["date=2026-03-01", "date=2026-03-02", "date=2026-10-01"];
            assert_eq!(dates.map(|date| part.has_date(date)), expected, "{part:?}");
            assert!(part.has_host("host=web-1") && !part.has_host("host=web-10"));
        }
        assert!(Part::default().has_host("host=x") && !Part::default().is_narrow());
    }

    #[test]
    fn a_part_has_the_hours_of_bundles_between_its_own() {
        // 2026-03-01T23:00Z and two hours later.
        let hour = |hours: i64| Some(Hour::of(UnixMicros((1_772_406_000 + hours * 3600) * 1_000_000)));
        let part = Part { hours: (hour(0), hour(2)), ..Part::default() };
        for (date, hour, expected) in [
            ("2026-03-01", "22", false),
            ("2026-03-01", "23", true),
            ("2026-03-02", "00", true),
            ("2026-03-02", "01", true),
            ("2026-03-02", "02", false),
        ] {
            assert_eq!(part.has_hour(&format!("date={date}"), &format!("hour={hour}")), expected, "{date} {hour}");
        }
        let dates = ["date=2026-02-28", "date=2026-03-01", "date=2026-03-02", "date=2026-03-03"];
        assert_eq!(dates.map(|date| part.has_date_of_bundles(date)), [false, true, true, false]);
        assert!(Part::default().has_hour("date=x", "hour=y") && Part::default().has_date_of_bundles("date=x"));
        assert_eq!(part.hosts_of_bundles("date=2026-03-01"), None);
        let part = Part { hosts: Some(vec!["host=web-1".to_owned()]), ..part };
        assert_eq!(part.hosts_of_bundles("date=2026-03-01"), Some(vec!["group=00/host=web-1".to_owned()]));
    }
}
