//! Tests `load` as its users have it: ClickHouse, by chdb, has each run of a fleet once, to the microjoule, and says so.

mod dashboard;
mod exactly_once;
mod kept;
mod refused;

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_tests::{clickhouse::ClickHouse, dataset::DataSet, notes, process::Finished, python::ENGINES};
use serde_json::Value;
use tempfile::TempDir;

use crate::{fleet, joular_bpf};

/// A place with the runs of a fleet, and a database for them.
struct Loaded {
    server: ClickHouse,
    folder: TempDir,
}

impl Loaded {
    /// A fleet whose first run began so many hours ago, and a database with tables that are made with these flags. `None`
    /// where chdb cannot be had.
    fn prepare(hours: u32, flags: &[&str]) -> Option<Self> {
        if let Err(error) = ENGINES.interpreter() {
            notes::skipped(&format!("PyPI's packages of ClickHouse cannot be installed: {error:#}"));
            return None;
        }
        let mut loaded = Self { server: ClickHouse::start().unwrap(), folder: tempfile::tempdir().unwrap() };
        bundle(&loaded.place(), hours);
        loaded.make_tables(flags);
        Some(loaded)
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("place")
    }

    fn make_tables(&mut self, flags: &[&str]) {
        let printed = joular_bpf(&[&["load", "--schema"], flags].concat());
        assert_eq!(printed.code(), Some(0), "{printed:?}");
        let file = self.folder.path().join("schema.sql");
        fs::write(&file, printed.stdout).unwrap();
        self.server.script(&file).unwrap();
    }

    /// Runs `load` on the place with these flags.
    fn load(&self, flags: &[&str]) -> Finished {
        self.load_of(&self.place(), flags)
    }

    fn load_of(&self, place: &Path, flags: &[&str]) -> Finished {
        joular_bpf(&[&["load", place.to_str().unwrap(), &self.server.url()], flags].concat())
    }

    /// Loads all that has not arrived: how many runs were sent.
    fn load_all(&self) -> u64 {
        let finished = self.load(&["--json"]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let said: Value = serde_json::from_str(&finished.stdout).unwrap();
        said["runs"].as_u64().unwrap()
    }

    /// The one figure that is selected.
    fn figure(&mut self, sql: &str) -> i64 {
        let rows = self.server.rows(&format!("SELECT (SELECT {sql}) AS figure")).unwrap();
        rows[0]["figure"].as_i64().unwrap_or_else(|| panic!("{sql}: {rows:?}"))
    }

    /// Energy of threads by what each table says.
    fn sums(&mut self) -> [i64; 4] {
        [
            "sum(attributed_uj) FROM joular.windows",
            "sum(self_uj + inferred_self_uj) FROM joular.methods",
            "sum(self_uj) FROM joular.methods_hourly",
            "sum(energy_uj) FROM joular.paths_hourly",
        ]
        .map(|sum| self.figure(sum))
    }
}

/// Makes bundles of the fleet in a place.
fn bundle(place: &Path, hours: u32) {
    let fleet = fleet::fleet();
    let mut command = ENGINES.script("bundles.py").unwrap();
    command.arg(fleet.path().join("minutes")).arg(place).arg(hours.to_string());
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// What the fleet's data set says.
fn recorded(sql: &str) -> i64 {
    let rows =
        DataSet::at(fleet::fleet().path().join("minutes")).rows(&format!("SELECT (SELECT {sql}) AS figure")).unwrap();
    rows[0]["figure"].as_i64().unwrap_or_else(|| panic!("{sql}: {rows:?}"))
}

/// Energy of threads that was recorded.
fn attributed() -> i64 {
    recorded("sum(attributed_uj)::BIGINT FROM windows")
}

/// Files of a place's bundles, in order.
fn bundles(place: &Path) -> Vec<PathBuf> {
    DataSet::at(place.join("raw")).files().unwrap().into_keys().map(|file| place.join("raw").join(file)).collect()
}
