//! Lists what has arrived where runs are shipped to.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{dataset::DataSet, prometheus::answer, s3::S3};

use super::DATA;

/// Where runs are shipped to.
pub enum Place {
    /// A directory beside the data set.
    Directory(PathBuf),
    Bucket(S3),
}

impl Place {
    /// As the agent in its container knows it, and as programs of the host do.
    pub fn names(&self) -> (String, String) {
        match self {
            Self::Directory(path) => (format!("{DATA}/place"), path.display().to_string()),
            Self::Bucket(_) => ("s3://fleet/energy".to_owned(), "s3://fleet/energy".to_owned()),
        }
    }

    pub fn environment(&self) -> BTreeMap<String, String> {
        let Self::Bucket(server) = self else { return BTreeMap::new() };
        server.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Paths of all files.
    pub fn files(&self) -> Result<Vec<String>> {
        match self {
            Self::Directory(path) => {
                Ok(DataSet::at(path).files()?.keys().map(|file| file.display().to_string()).collect())
            }
            Self::Bucket(server) => {
                let listed = answer(server.port(), "/fleet?list-type=2", "")?.context("the bucket is listed")?;
                ensure!(listed.contains("<IsTruncated>false<"), "a list of all files: {listed}");
                let keys = listed.split("<Key>energy/").skip(1);
                keys.map(|key| Ok(key.split_once("</Key>").context("a key")?.0.to_owned())).collect()
            }
        }
    }

    /// Names of the runs that have files of a table.
    pub fn runs_in(&self, table: &str) -> Result<BTreeSet<String>> {
        self.files()?.iter().filter(|file| file.starts_with(&format!("{table}/"))).map(|file| run_of(file)).collect()
    }
}

/// The run that a file is of: `…/RUN-0000.parquet`.
pub fn run_of(file: &str) -> Result<String> {
    let name = file.rsplit('/').next().and_then(|name| name.rsplit_once('-'));
    Ok(name.with_context(|| format!("the name of a run: {file}"))?.0.to_owned())
}
