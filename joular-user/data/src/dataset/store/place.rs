//! Tells a directory from a bucket, by how a place is written.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::output::OutputError;

/// Where a data set lies, or will lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Directory(PathBuf),
    Bucket(BucketUrl),
}

/// `s3://bucket/prefix`, and the same of other clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketUrl {
    pub(crate) cloud: Cloud,
    pub(crate) bucket: String,
    /// Without slashes at its ends; may be empty.
    pub(crate) prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    /// S3, and what speaks its protocol.
    S3,
    Google,
    Azure,
}

/// Why a text is not a place.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("'{}' is not a place for a data set: {problem}", .text.escape_debug())]
pub struct PlaceError {
    text: String,
    problem: &'static str,
}

impl From<PlaceError> for OutputError {
    fn from(error: PlaceError) -> Self {
        Self::NoPlace(error.to_string())
    }
}

impl Place {
    /// A URL has a scheme and `://`; all else is a path.
    pub(crate) fn of(path: &Path) -> Result<Self, PlaceError> {
        let url = path.to_str().and_then(|text| Some((text, text.split_once("://")?)));
        match url {
            Some((text, (scheme, rest))) if is_scheme(scheme) => {
                bucket(scheme, rest).map(Self::Bucket).map_err(|problem| PlaceError { text: text.to_owned(), problem })
            }
            _ => Ok(Self::Directory(path.to_owned())),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn bucket(scheme: &str, rest: &str) -> Result<BucketUrl, &'static str> {
    let cloud = match scheme {
        "s3" => Cloud::S3,
        "gs" => Cloud::Google,
        "az" => Cloud::Azure,
        _ => return Err("write a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"),
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.contains('@') {
        return Err("credentials belong in the environment, where no list of processes shows them");
    }
    if bucket.is_empty() || !bucket.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')) {
        return Err("a bucket's name has letters, digits, '.', '-' and '_'");
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.contains(['?', '#']) {
        return Err("it has '?' or '#': options belong in the environment");
    }
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(|c| c.is_control() || c == '\\');
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err("a prefix has names between single slashes, not '.' and '..'");
    }
    Ok(BucketUrl { cloud, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_scheme_is_a_directory() {
        for text in ["joular-out", "/srv/s3", "./s3:/x", "a b://c", "1s3://x", "://x", ""] {
            assert_eq!(Place::of(Path::new(text)), Ok(Place::Directory(text.into())), "{text}");
        }
    }

    #[test]
    fn a_bucket_has_a_cloud_a_name_and_perhaps_a_prefix() {
        for (text, cloud, bucket, prefix) in [
            ("s3://fleet", Cloud::S3, "fleet", ""),
            ("s3://fleet/", Cloud::S3, "fleet", ""),
            ("gs://fleet.energy/prod/eu 1/", Cloud::Google, "fleet.energy", "prod/eu 1"),
            ("az://fleet-1/a=b", Cloud::Azure, "fleet-1", "a=b"),
        ] {
            let expected = BucketUrl { cloud, bucket: bucket.to_owned(), prefix: prefix.to_owned() };
            assert_eq!(Place::of(Path::new(text)), Ok(Place::Bucket(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_bucket_says_why() {
        for (text, problem) in [
            ("http://x/y", "s3://BUCKET/PREFIX"),
            ("S3://x", "s3://BUCKET/PREFIX"),
            ("s3:///x", "a bucket's name"),
            ("s3://a b", "a bucket's name"),
            ("s3://key:secret@fleet/x", "credentials belong in the environment"),
            ("s3://fleet/x?region=eu", "options belong in the environment"),
            ("s3://fleet/a//b", "single slashes"),
            ("s3://fleet/../b", "single slashes"),
            ("s3://fleet/a\nb", "single slashes"),
        ] {
            let error = Place::of(Path::new(text)).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }
}
