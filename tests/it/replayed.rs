//! A data set that a replay wrote, for tests of what is made of it.

use joular_tests::{dataset::DataSet, paths, process::Finished};
use serde_json::Value;
use tempfile::TempDir;

use crate::joular_bpf;

/// A data set, and room beside it.
pub struct Set(TempDir);

impl Set {
    pub fn of(recording: &str) -> Self {
        let set = Self(tempfile::tempdir().unwrap());
        expect_success(&joular_bpf(&["--replay", recording, "--quiet", "--output", &set.path("out")]));
        set
    }

    /// Of one of the recordings in the fixtures.
    pub fn fixture(name: &str) -> Self {
        Self::of(paths::root().join("tests/fixtures/recordings").join(name).to_str().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command about the data set.
    pub fn run(&self, command: &str, options: &[&str]) -> Finished {
        joular_bpf(&[&[command, &self.path("out")], options].concat())
    }

    pub fn rows(&self, sql: &str) -> Vec<Value> {
        DataSet::at(self.0.path().join("out")).rows(sql).unwrap()
    }
}

pub fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}
