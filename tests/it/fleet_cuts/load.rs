//! Cuts `load` at each request to the bucket and to the database.

use std::{collections::BTreeMap, fs};

use joular_tests::{
    clickhouse::ClickHouse,
    notes,
    process::Finished,
    python::ENGINES,
    s3::{Cut, S3},
};
use serde_json::Value;
use tempfile::TempDir;

use super::{Environment, share, ship, side_by_side, step};
use crate::{joular_bpf, shipping::with};

/// A bucket with bundles, and databases for them.
struct Bench {
    bucket: S3,
    house: ClickHouse,
    folder: TempDir,
}

/// What is cut.
#[derive(Clone, Copy, Debug)]
enum At {
    Bucket(Cut),
    /// All requests to the database from this one on, which is done.
    House(u64),
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            bucket: S3::with_bucket("whole").unwrap(),
            house: ClickHouse::start().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        ship(&bench.bucket.environment(), "s3://whole");
        bench
    }

    /// A copy of the bucket, and a database of the same name.
    fn prepare(&mut self, name: &str) {
        self.bucket.tell(&format!("copy whole {name}")).unwrap();
        self.bucket.cut(name, None).unwrap();
        let printed = joular_bpf(&["load", "--schema", "--database", name]);
        assert_eq!(printed.code(), Some(0), "{printed:?}");
        let file = self.folder.path().join("schema.sql");
        fs::write(&file, printed.stdout).unwrap();
        self.house.script(&file).unwrap();
        self.cut_house(0);
    }

    fn cut_house(&mut self, number: u64) {
        self.house.tell(&format!("cut on {number}")).unwrap();
    }

    fn load(&self, environment: &Environment, name: &str) -> Finished {
        with(environment, &["load", &format!("s3://{name}"), &self.house.url(), "--database", name, "--json"])
    }

    fn load_all(&self, name: &str) {
        let finished = self.load(&self.bucket.environment(), name);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    }

    /// Energy by what each table says, and how many runs there are.
    fn sums(&mut self, name: &str) -> Vec<Value> {
        let sums = [
            "sum(attributed_uj) FROM windows",
            "sum(self_uj + inferred_self_uj) FROM methods",
            "sum(self_uj) FROM methods_hourly",
            "sum(energy_uj) FROM paths_hourly",
            "count() FROM runs",
            "count() FROM windows",
            "count() FROM methods",
            "count() FROM processes",
        ];
        let one = |sum: &str| {
            let sql = format!("SELECT (SELECT {}) AS figure", sum.replace("FROM ", &format!("FROM {name}.")));
            self.house.rows(&sql).unwrap()[0]["figure"].clone()
        };
        sums.map(one).to_vec()
    }

    /// Objects of a bucket. Lists of what goes together say when they were made.
    fn objects(&mut self, name: &str) -> BTreeMap<String, String> {
        let digests = self.bucket.digests(name).unwrap();
        let of_list = |(key, digest): (String, String)| {
            let digest = if key.starts_with("claims/load/") { String::new() } else { digest };
            (key, digest)
        };
        digests.into_iter().map(of_list).collect()
    }

    fn survive(&mut self, name: &str, at: At) {
        match at {
            At::Bucket(cut) => self.bucket.cut(name, Some(cut)).unwrap(),
            At::House(number) => self.cut_house(number),
        }
        let patient = matches!(at, At::Bucket(Cut::Write(_)));
        let environment = if patient { self.bucket.environment() } else { self.bucket.environment_of_the_hasty() };
        let finished = self.load(&environment, name);
        assert_eq!(finished.code() == Some(0), patient, "{at:?}: {finished:?}");
        self.bucket.cut(name, None).unwrap();
        self.cut_house(0);
        if !patient {
            self.load_all(name);
        }
    }
}

fn share_of(worker: usize) -> [u64; 2] {
    let mut bench = Bench::new();
    let undisturbed = format!("whole{worker}");
    bench.prepare(&undisturbed);
    bench.load_all(&undisturbed);
    let seen = bench.bucket.seen(&undisturbed).unwrap();
    let asked = bench.house.tell("seen").unwrap().as_u64().unwrap();
    let (sums, objects) = (bench.sums(&undisturbed), bench.objects(&undisturbed));
    assert!(sums.iter().all(|sum| sum.as_i64() > Some(0)), "{sums:?}");
    let of_bucket = (1..=seen.requests).step_by(step()).map(Cut::FromOn).chain((1..=seen.writes).map(Cut::Write));
    for (index, at) in share(of_bucket.map(At::Bucket).chain((1..=asked).map(At::House)), worker) {
        let name = format!("trial{worker}x{index}");
        bench.prepare(&name);
        bench.survive(&name, at);
        assert_eq!(bench.sums(&name), sums, "{at:?} of {seen:?}");
        assert_eq!(bench.objects(&name), objects, "{at:?} of {seen:?}");
    }
    [seen.requests, asked]
}

#[test]
fn a_database_has_each_run_once_wherever_its_loading_is_cut() {
    if let Err(error) = ENGINES.interpreter() {
        return notes::skipped(&format!("PyPI's packages of ClickHouse cannot be installed: {error:#}"));
    }
    let [of_bucket, of_house] = side_by_side(share_of);
    assert!(of_bucket > 8 && of_house > 3, "{of_bucket} and {of_house} requests");
}
