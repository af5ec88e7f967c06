//! Names files: `TABLE/date=DATE/host=HOST/RUN-NNNN.parquet`.
//!
//! The files of one number were written together and hold the same windows; `runs` has one file per
//! run. Dates are in UTC and are those of the windows' start. Runs that are one file each have names of
//! their own ([`super::bundle`]).

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::{events::RunInfo, model::units::UnixMicros};

/// The place of a file in every table's folder: the folders of its date and host, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilePlace {
    date_folder: String,
    host_folder: String,
    pub(crate) name: String,
}

impl FilePlace {
    /// A run's file of this number.
    pub(crate) fn new(info: &RunInfo, date: &str, number: u32) -> Self {
        Self {
            date_folder: format!("date={date}"),
            host_folder: format!("host={}", path_part(info.host.raw())),
            name: format!("{}-{number:04}.parquet", path_part(&info.run_id)),
        }
    }

    /// The place that the only file of each table would have, of a run whose tables are all in one file: `date=DATE` and
    /// `host=HOST` are folders of that file.
    pub(super) fn of_bundle(date_folder: &str, host_folder: &str, run: &str) -> Self {
        let (date_folder, host_folder) = (date_folder.to_owned(), host_folder.to_owned());
        Self { date_folder, host_folder, name: format!("{run}-0000.parquet") }
    }

    /// The place of a file's path within a store; `None` if it is not a file of a table.
    pub(crate) fn of(within: &Path) -> Option<Self> {
        let mut parts = within.iter().map(|part| part.to_str().map(ToOwned::to_owned));
        let _table = parts.next()??;
        let place = Self { date_folder: parts.next()??, host_folder: parts.next()??, name: parts.next()?? };
        (parts.next().is_none() && place.name.ends_with(".parquet")).then_some(place)
    }

    pub(crate) fn folder(&self, table: &str) -> PathBuf {
        [table, &self.date_folder, &self.host_folder].iter().collect()
    }

    /// Sort key among the files of a run: the number, not the date. A longer number is a later one.
    pub(crate) fn order(&self) -> impl Ord + use<'_> {
        (self.name.len(), &self.name, &self.date_folder)
    }

    /// Whether both are of one date and host.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.date_folder, &self.host_folder) == (&other.date_folder, &other.host_folder)
    }

    /// Name of another file of the run.
    pub(crate) fn numbered(&self, number: usize) -> String {
        format!("{}-{number:04}.parquet", self.run().1)
    }

    /// As the folder has it.
    pub(crate) fn date(&self) -> &str {
        self.date_folder.trim_start_matches("date=")
    }

    /// The host's name, if the folder's name tells it: some characters are not kept there.
    pub(crate) fn host(&self) -> Option<&str> {
        let host = self.host_folder.strip_prefix("host=")?;
        (host.len() < MOST_CHARS && !host.contains('_')).then_some(host)
    }

    /// The id of its run, if the name tells it.
    pub(crate) fn run_id(&self) -> Option<&str> {
        let (run, _) = self.name.rsplit_once('-')?;
        (run.len() < MOST_CHARS && !run.contains('_')).then_some(run)
    }

    /// The folder of its host, and the part of its name that stands for the run.
    pub(crate) fn run(&self) -> RunName {
        let run = self.name.rsplit_once('-').map_or(self.name.as_str(), |(run, _)| run);
        (self.host_folder.clone(), run.to_owned())
    }
}

/// The id of a later run of a recording that is cut into several. The first one has the recording's.
pub(crate) fn id_of_part(recording: &str, number: u32) -> String {
    format!("{recording}.{number:04}")
}

/// The id of the recording that a run is part of.
pub(crate) fn recording_of(run_id: &str) -> &str {
    let is_number = |number: &str| number.len() >= 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    run_id.rsplit_once('.').filter(|(_, number)| is_number(number)).map_or(run_id, |(recording, _)| recording)
}

/// The name of the run that follows another one of its recording.
pub(crate) fn following((host_folder, run): &RunName) -> RunName {
    let recording = recording_of(run);
    let number = run.strip_prefix(recording).and_then(|number| number.strip_prefix('.')?.parse::<u32>().ok());
    (host_folder.clone(), id_of_part(recording, number.unwrap_or(0).saturating_add(1)))
}

/// The folder of a run's host, and the part of file names that stands for the run.
pub type RunName = (String, String);

/// Of a name that is made fit for a path.
const MOST_CHARS: usize = 100;

/// UTC date of a moment.
pub(crate) fn date(moment: UnixMicros) -> String {
    Timestamp::from_microsecond(moment.0)
        .map_or_else(|_| "unknown".to_owned(), |moment| moment.strftime("%Y-%m-%d").to_string())
}

/// UTC hour of a moment, of two digits.
pub(crate) fn hour(moment: UnixMicros) -> String {
    Timestamp::from_microsecond(moment.0)
        .map_or_else(|_| "unknown".to_owned(), |moment| moment.strftime("%H").to_string())
}

/// A name made fit for a path: letters, digits, `.`, `_` and `-`, not hidden, not too long.
pub(crate) fn path_part(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let part: String = name.trim_start_matches('.').chars().take(MOST_CHARS).map(kept).collect();
    if part.is_empty() { "unknown".to_owned() } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_part_of_the_recording_that_its_id_begins_with() {
        for (id, expected) in [
            ("web-1-1772323201000000-4711", "web-1-1772323201000000-4711"),
            ("web.example.com-1772323201000000-4711.0003", "web.example.com-1772323201000000-4711"),
            ("web.0001-1772323201000000-4711", "web.0001-1772323201000000-4711"),
        ] {
            assert_eq!(recording_of(id), expected);
            assert_eq!(recording_of(&id_of_part(expected, 12_345)), expected);
        }
        let next = |run: &str| following(&("host=web".to_owned(), run.to_owned())).1;
        for (run, expected) in
            [("web-1-17", "web-1-17.0001"), ("web-1-17.0009", "web-1-17.0010"), ("w.9999", "w.10000")]
        {
            assert_eq!(next(run), expected);
        }
    }
}
