//! Says which part of a data set is listed, by the names of its folders.

/// Dates and hosts that may be wanted. By default all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The first date, as folders have it.
    pub since: Option<String>,
    /// The last one.
    pub until: Option<String>,
    /// Folders of hosts; `None`: all.
    pub hosts: Option<Vec<String>>,
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
}
