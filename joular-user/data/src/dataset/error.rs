//! Says what can be wrong with a data set that is read.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use thiserror::Error;

use super::store::PlaceError;
use crate::output::OutputError;

#[derive(Debug, Error)]
pub enum DataSetError {
    #[error("opening the data set {path}: {cause}: {}", advice_on_opening(cause))]
    Open { path: PathBuf, cause: std::io::Error },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("reading {path}: {cause}")]
    Bucket { path: PathBuf, cause: std::io::Error },
    #[error("{action} {path}: it is in a bucket: {advice}")]
    NotLocal { action: &'static str, path: PathBuf, advice: &'static str },
    #[error("{action} {path}: it is a directory: {advice}")]
    NotABucket { action: &'static str, path: PathBuf, advice: &'static str },
    #[error("opening the data set {path}: there is no run in it: name the directory that --output named")]
    NoRun { path: PathBuf },
    #[error("reading the data set {path}: run {run} has files but no row in table runs: copy the table's file too")]
    NoRunRow { path: PathBuf, run: String },
    #[error("reading {tier} sums of {path}: {problem}")]
    NoTier { path: PathBuf, tier: &'static str, problem: &'static str },
    #[error("listing {path}: more than {most} files: split the data set by date or host")]
    TooManyFiles { path: PathBuf, most: usize },
    #[error("reading {path}: it is not a regular file: remove it")]
    NotAFile { path: PathBuf },
    #[error("reading {path}: {rows} rows in one file, of which {most} are read: no run writes such a file")]
    TooManyRows { path: PathBuf, rows: i64, most: i64 },
    #[error("reading {path}: {cause}{}", advice_on(cause))]
    Io { path: PathBuf, cause: std::io::Error },
    #[error("reading {path}: {cause}: the file is damaged: copy it anew from where it was recorded")]
    Parquet { path: PathBuf, cause: ParquetError },
    #[error("reading {path}: {cause}: the file is damaged: copy it anew from where it was recorded")]
    Arrow { path: PathBuf, cause: ArrowError },
    #[error(
        "reading {path}: it has schema version {found}{}, this joular-bpf reads {known}: use {advice}",
        written_by.as_ref().map(|version| format!(" (written by joular-bpf {version})")).unwrap_or_default()
    )]
    Version { path: PathBuf, found: String, written_by: Option<String>, known: String, advice: &'static str },
    #[error("reading {path}: column {column} {problem}: the file is not of this schema, or damaged")]
    Column { path: PathBuf, column: String, problem: &'static str },
    #[error("reading {path}: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "selecting a phase of {path}: no run has it; there {}",
        if known.is_empty() { "are none: record with joular-bpf run, and mark phases".to_owned() } else { format!("are: {known}") }
    )]
    NoPhase { path: PathBuf, known: String },
    #[error("attributing {path} again: there is no file of table weights for it: copy that table too")]
    NoWeights { path: PathBuf },
    #[error("rolling up {path}: {problem}")]
    RollUp { path: PathBuf, problem: String },
    #[error(
        "compacting {path}: this run is one file already, of all its tables, and only files of one table are merged: roll up \
         and compact what was recorded, or query these files as they are (docs/fleet/reading.md)"
    )]
    Bundled { path: PathBuf },
    #[error("making {path}: it is there already, and is never changed, because runs lie where it says")]
    FleetThere { path: PathBuf },
    #[error("compacting into {path}: it is not empty: name a directory that is not there yet")]
    Taken { path: PathBuf },
    #[error(
        "compacting in place: {path} is not part of the data set: move it away, or name another directory with --output"
    )]
    Foreign { path: PathBuf },
    #[error("putting the compacted data set in place of {path}: {problem}: {advice}")]
    Replace { path: PathBuf, problem: String, advice: &'static str },
    #[error(
        "removing {path}: compact was interrupted, and this may be an earlier data set with rows that the present one \
         lacks: look into it, then move it away or remove it"
    )]
    Former { path: PathBuf },
    #[error(
        "compacting: writing {path}: no space left on the device: the data set is as it was; a second copy needs \
         room: free some space or name another file system with --output"
    )]
    NoRoom { path: PathBuf },
    #[error("drawing {path}: the selection has no energy: select more of it, or record with an energy source")]
    NoEnergy { path: PathBuf },
    #[error(
        "reading {path}: the selection is empty: {there}. Names are matched whole and with their case, and * stands for any \
         part of one: joular-bpf report without filters shows what there is"
    )]
    NothingSelected { path: PathBuf, there: String },
    #[error("reading {measure} of {path}: the selection has none: select more of it, or record with {flag}")]
    NothingMeasured { path: PathBuf, measure: String, flag: String },
    #[error(
        "charging garbage collectors' energy to who allocated, in {path}: nothing is known of that: record with --alloc"
    )]
    NoCharges { path: PathBuf },
    #[error("drawing {path}: {cause}: this is a defect, please report it")]
    Draw { path: PathBuf, cause: std::io::Error },
    #[error("reading a data set: it was ended before all was read")]
    Stopped,
    #[error(transparent)]
    Output(#[from] OutputError),
}

pub(crate) type Result<T, E = DataSetError> = std::result::Result<T, E>;

impl DataSetError {
    /// Whether a file that was listed is not there any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { cause, .. } | Self::Bucket { cause, .. } if cause.kind() == ErrorKind::NotFound)
    }

    /// The file that cannot be read, if that is what is wrong, and others may well be readable. A bucket that does not
    /// answer is not a matter of one file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Io { path, cause } | Self::Bucket { path, cause } => {
                let is_of_file = cause.kind() != ErrorKind::Other || cause.raw_os_error().is_some();
                is_of_file.then_some(path)
            }
            Self::NotAFile { path }
            | Self::TooManyRows { path, .. }
            | Self::Parquet { path, .. }
            | Self::Arrow { path, .. }
            | Self::Version { path, .. }
            | Self::Column { path, .. }
            | Self::Damaged { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Errors of which some are a data set's.
pub trait OfDataSet {
    /// What is wrong with the data set, if that is the error.
    fn data_set(&self) -> Option<&DataSetError>;
}

impl OfDataSet for DataSetError {
    fn data_set(&self) -> Option<&DataSetError> {
        Some(self)
    }
}

/// What a user can do who named a directory that cannot be opened.
fn advice_on_opening(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::NotFound => "record into it first, or name the directory that --output named",
        ErrorKind::PermissionDenied => "it is another user's: read it as its owner or with sudo",
        ErrorKind::NotADirectory => {
            "name the directory that --output named; joular-bpf --replay reads a recording (.jrec)"
        }
        _ => "name the directory that --output named",
    }
}

/// What a user can do about it, after a colon; empty where there is no advice.
fn advice_on(cause: &std::io::Error) -> &'static str {
    match cause.kind() {
        ErrorKind::PermissionDenied => ": read it as its owner or with sudo",
        ErrorKind::NotFound => ": it went away meanwhile, try again",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn a_bucket_that_is_away_is_not_a_matter_of_one_file() {
        let bucket = |kind| DataSetError::Bucket { path: "x".into(), cause: Error::new(kind, "told") };
        assert!(bucket(ErrorKind::NotFound).file().is_some() && bucket(ErrorKind::NotFound).is_gone());
        assert!(bucket(ErrorKind::PermissionDenied).file().is_some());
        assert_eq!(bucket(ErrorKind::Other).file(), None);
        let of_disk = DataSetError::Io { path: "x".into(), cause: Error::from_raw_os_error(5) };
        assert!(of_disk.file().is_some(), "EIO");
        assert_eq!(DataSetError::NoRun { path: "x".into() }.file(), None);
    }

    #[test]
    fn advice_is_about_what_is_wrong_with_a_directory() {
        for (kind, advice) in [
            (ErrorKind::NotFound, ": record into it first, or name the directory that --output named"),
            (ErrorKind::PermissionDenied, ": it is another user's: read it as its owner or with sudo"),
            (
                ErrorKind::NotADirectory,
                ": name the directory that --output named; joular-bpf --replay reads a recording",
            ),
            (ErrorKind::Other, ": name the directory that --output named"),
        ] {
            let message = DataSetError::Open { path: "out".into(), cause: Error::from(kind) }.to_string();
            assert!(message.starts_with("opening the data set out: ") && message.contains(advice), "{message}");
        }
    }
}
