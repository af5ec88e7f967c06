//! Follows the energy of a fleet's services from three hosts to everybody who asks: a bucket with its tiers, DuckDB, ClickHouse, a
//! server and Grafana's calls. All say the same, to the microjoule: at first, and after a damaged object, a bundle of a newer
//! schema, a host that is late, and an erasure.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_tests::{clickhouse::ClickHouse, dataset::DataSet, notes, python::ENGINES, s3::S3};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    bad_sets, fleet, joular_bpf, pyroscope,
    serve::Served,
    shipping::{done, with},
    tiers,
};

const BUCKET: &str = "fleet";
const PLACE: &str = "s3://fleet";
const TIERS: [&str; 2] = ["minutes", "hourly"];

/// Recordings of tests are older than the last hour, which is what a server shows of a bucket by itself.
const SINCE: &str = "1970-01-02T00:00:00Z";
const SINCE_MS: &str = "86400000";

/// A service that runs on all hosts.
const SERVICE: &str = "checkout";

/// µJ, CPU time in nanoseconds, and samples.
type Figures = [u64; 3];
/// Of the service, and of all services.
type Sums = [Figures; 2];

/// A fleet with all that keeps its data.
struct Chain {
    server: S3,
    house: ClickHouse,
    folder: TempDir,
    /// The hours of the first run, and those after it.
    span: [String; 2],
    /// Names of bundles that cannot be read.
    unreadable: Vec<String>,
}

fn sums(rows: impl Iterator<Item = (String, Figures)>) -> Sums {
    let mut sums = Sums::default();
    for (service, figures) in rows {
        for (at, figure) in figures.into_iter().enumerate() {
            sums[0][at] += if service == SERVICE { figure } else { 0 };
            sums[1][at] += figure;
        }
    }
    sums
}

/// Of a report by service.
fn reported(report: &Value) -> Sums {
    let figures = |row: &Value| ["self_uj", "self_cpu_ns", "self_samples"].map(|name| row[name].as_u64().unwrap());
    let rows = report["tables"][0]["rows"].as_array().unwrap().iter();
    sums(rows.map(|row| (row["name"].as_str().unwrap().to_owned(), figures(row))))
}

impl Chain {
    /// Two hosts have shipped. Runs of the second one are an hour later.
    fn begin() -> Self {
        let mut chain = Self {
            server: S3::with_bucket(BUCKET).unwrap(),
            house: ClickHouse::start().unwrap(),
            folder: tempfile::tempdir().unwrap(),
            span: [String::new(), String::new()],
            unreadable: Vec::new(),
        };
        chain.ship("web-1", 0, "1.0");
        chain.ship("web-2", 1, "2.0");
        chain.span = tiers::around(&chain.environment(), PLACE);
        chain.make_tables();
        chain
    }

    fn make_tables(&mut self) {
        let printed = joular_bpf(&["load", "--schema"]);
        assert_eq!(printed.code(), Some(0), "{printed:?}");
        let schema = self.folder.path().join("schema.sql");
        fs::write(&schema, printed.stdout).unwrap();
        self.house.script(&schema).unwrap();
    }

    /// Erases the service at the place. The database is made anew from that.
    fn erase(&mut self) {
        let erased = with(&self.environment(), &["erase", PLACE, "--service", SERVICE, "--json"]);
        let said = erased.stdout.clone() + &erased.stderr;
        assert!(erased.code() == Some(1) && self.unreadable.iter().all(|name| said.contains(name)), "{erased:?}");
        self.house = ClickHouse::start().unwrap();
        self.make_tables();
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        self.server.environment()
    }

    fn ship(&self, host: &str, hours: i64, version: &str) {
        let data = self.folder.path().join(host);
        fleet::record(&data, host, hours, version);
        done(&with(&self.environment(), &["ship", data.to_str().unwrap(), PLACE, "--json"]));
    }

    /// Sums and loads what is new, and expects that what cannot be read is named.
    fn bring_everywhere(&self) {
        let [since, until] = &self.span;
        let summed =
            done(&with(&self.environment(), &["compact", PLACE, "--since", since, "--until", until, "--json"]));
        let left_out = summed["minutes"]["left_out"].to_string();
        assert!(self.unreadable.iter().all(|name| left_out.contains(name)), "{summed}");
        assert_eq!(self.unreadable.is_empty(), left_out == "[]", "{summed}");
        let loaded = with(&self.environment(), &["load", PLACE, &self.house.url(), "--json"]);
        assert!(matches!(loaded.code(), Some(0 | 1)), "{loaded:?}");
        let checked = with(&self.environment(), &["load", PLACE, &self.house.url(), "--check"]);
        let said = checked.stdout.clone() + &checked.stderr;
        assert!(self.unreadable.iter().all(|name| said.contains(name)), "{checked:?}");
        assert_eq!(checked.code(), Some(i32::from(!self.unreadable.is_empty())), "{checked:?}");
        assert!(!said.contains("\nrun ") && !said.starts_with("run "), "all others are there: {checked:?}");
    }

    /// `--tier` is of the place; a tier has none.
    fn report(&self, place: &str, tier: &str) -> Sums {
        let arguments = ["report", place, "--by", "service", "--top", "0", "--since", SINCE, "--tier", tier, "--json"];
        let report = with(&self.environment(), &arguments);
        if place == PLACE {
            let said = report.stdout.clone() + &report.stderr;
            assert!(self.unreadable.iter().all(|name| said.contains(name)), "{report:?}");
        }
        reported(&done(&report))
    }

    /// Tiers add up, and so does what was shipped, unless some of it cannot be read, which is named then.
    fn audits(&self) {
        for place in [PLACE.to_owned()].into_iter().chain(TIERS.map(|tier| format!("{PLACE}/{tier}"))) {
            let audit = with(&self.environment(), &["audit", &place]);
            if place == PLACE && !self.unreadable.is_empty() {
                let is_named = self.unreadable.iter().any(|name| audit.stderr.contains(name));
                assert!(audit.code() == Some(1) && is_named, "{audit:?}");
            } else {
                assert_eq!(audit.code(), Some(0), "{place}: {audit:?}");
            }
        }
    }

    /// What DuckDB finds in the files of the place or of a tier. It refuses those that cannot be read.
    fn by_duckdb(&mut self) -> Vec<Sums> {
        let saved = self.folder.path().join("saved");
        if saved.exists() {
            fs::remove_dir_all(&saved).unwrap();
        }
        self.server.save(BUCKET, &saved).unwrap();
        ["raw", "minutes/raw", "hourly/raw"].iter().map(|folder| by_sql(&self.readable(&saved.join(folder)))).collect()
    }

    fn readable(&self, folder: &Path) -> Vec<PathBuf> {
        let files = DataSet::at(folder).files().unwrap().into_keys().map(|file| folder.join(file));
        files.filter(|file| !self.unreadable.iter().any(|name| file.to_string_lossy().contains(name))).collect()
    }

    /// Energy by ClickHouse, of the service and of all.
    fn by_clickhouse(&mut self, selected: &str) -> [u64; 2] {
        let sql = format!(
            "SELECT sumIf(uj, service = '{SERVICE}') AS of_service, sum(uj) AS of_all FROM (SELECT {selected})"
        );
        let rows = self.house.rows(&sql).unwrap();
        ["of_service", "of_all"].map(|column| rows[0][column].as_u64().unwrap())
    }

    fn by_server(&self) -> Sums {
        let served = Served::place(PLACE, &self.environment(), &[]);
        let top = served.json(&format!("/api/v1/top?by=service&from={SINCE}"));
        let said = top.to_string();
        assert!(self.unreadable.iter().all(|name| said.contains(name)), "{said}");
        let sums = reported(&top);
        let selectors = [format!("{{service_name=\"{SERVICE}\"}}"), String::new()];
        for (selector, figures) in selectors.iter().zip(sums) {
            for (kind, figure) in
                [("energy:microjoules", figures[0]), ("cpu:nanoseconds", figures[1]), ("samples:count", figures[2])]
            {
                let message = json!({
                    "profileTypeID": format!("joular:{kind}:cpu:nanoseconds"),
                    "labelSelector": selector,
                    "start": SINCE_MS,
                    "end": now_ms(),
                });
                let graph = pyroscope::answer(&served, "SelectMergeStacktraces", &message);
                assert_eq!(graph["flamegraph"]["total"], figure.to_string(), "{message}");
            }
        }
        sums
    }

    /// All say the same. Returns what they say.
    fn expect_the_same(&mut self, after: &str) -> Sums {
        self.bring_everywhere();
        self.audits();
        let expected = self.report(PLACE, "raw");
        assert_eq!(self.report(PLACE, "auto"), expected, "{after}: what is chosen");
        assert!(expected[1].iter().all(|figure| *figure > 0), "{after}: {expected:?}");
        for tier in TIERS {
            assert_eq!(self.report(&format!("{PLACE}/{tier}"), "raw"), expected, "{after}: {tier}");
        }
        for found in self.by_duckdb() {
            assert_eq!(found, expected, "{after}: DuckDB");
        }
        for selected in [
            "service, self_uj AS uj FROM joular.methods_hourly",
            "service, self_uj + inferred_self_uj AS uj FROM joular.methods",
        ] {
            assert_eq!(self.by_clickhouse(selected), expected.map(|figures| figures[0]), "{after}: {selected}");
        }
        assert_eq!(self.by_server(), expected, "{after}: the server");
        expected
    }

    /// Puts a copy of a bundle there that was changed, as another host's.
    fn put_changed(&mut self, host: &str, change: impl FnOnce(&Path)) {
        let (saved, changed) = (self.folder.path().join("saved"), self.folder.path().join(host));
        let whole = self.readable(&saved.join("raw")).remove(0);
        let folder = whole.parent().unwrap().strip_prefix(&saved).unwrap().with_file_name(format!("host={host}"));
        fs::create_dir(&changed).unwrap();
        let file = changed.join(format!("run-of-{host}.parquet"));
        fs::copy(&whole, &file).unwrap();
        change(&file);
        let key = folder.join(file.file_name().unwrap());
        self.server.put(BUCKET, key.to_str().unwrap(), &file).unwrap();
        self.unreadable.push(format!("run-of-{host}.parquet"));
    }
}

fn now_ms() -> String {
    jiff::Timestamp::now().as_millisecond().to_string()
}

/// What DuckDB finds in bundles.
fn by_sql(files: &[PathBuf]) -> Sums {
    assert!(!files.is_empty());
    let list: Vec<String> = files.iter().map(|file| format!("'{}'", file.display())).collect();
    let rows_of = |table: &str| {
        format!(
            "(SELECT unnest({table}, max_depth := 2) FROM read_parquet([{}], hive_partitioning = false))",
            list.join(", ")
        )
    };
    let column = |table: &str, sum: &str| {
        let sql = format!(
            "SELECT coalesce(p.service, '') AS service, sum({sum})::BIGINT AS figure FROM {} AS r JOIN
             (SELECT DISTINCT run_id, pid, process_start, service FROM {} WHERE is_target) AS p
             USING (run_id, pid, process_start) GROUP BY ALL",
            rows_of(table),
            rows_of("processes")
        );
        let found = DataSet::at(files[0].parent().unwrap()).rows(&sql).unwrap();
        let of_row = |row: &Value| (row["service"].as_str().unwrap().to_owned(), row["figure"].as_u64().unwrap());
        found.iter().map(of_row).collect::<Vec<_>>()
    };
    let energy = column("methods", "self_uj + inferred_self_uj").into_iter().map(|(name, uj)| (name, [uj, 0, 0]));
    let cpu = column("threads", "cpu_ns").into_iter().map(|(name, ns)| (name, [0, ns, 0]));
    let samples = column("branches", "samples").into_iter().map(|(name, samples)| (name, [0, 0, samples]));
    sums(energy.chain(cpu).chain(samples))
}

fn halve(file: &Path) {
    let whole = fs::read(file).unwrap();
    fs::write(file, &whole[..whole.len() / 2]).unwrap();
}

#[test]
fn everybody_says_the_same_of_a_fleet_through_what_befalls_it() {
    if let Err(error) = ENGINES.interpreter() {
        return notes::skipped(&format!("PyPI's packages of ClickHouse cannot be installed: {error:#}"));
    }
    let mut chain = Chain::begin();
    let first = chain.expect_the_same("two hosts");
    assert!(first[0].iter().all(|figure| *figure > 0), "{first:?}");

    chain.put_changed("halved", halve);
    assert_eq!(chain.expect_the_same("a damaged object"), first);

    chain.put_changed("newer", |file| bad_sets::of_version(file.parent().unwrap(), *b"99"));
    assert_eq!(chain.expect_the_same("a bundle of a newer schema"), first);

    chain.ship("web-3", 0, "3.0");
    let with_late = chain.expect_the_same("a host that is late");
    for (late, before) in with_late.iter().flatten().zip(first.iter().flatten()) {
        assert!(late > before, "{with_late:?} after {first:?}");
    }

    chain.erase();
    let without = chain.expect_the_same("an erasure");
    assert_eq!(without, [Figures::default(), with_late[1]], "nothing of the service is left, and all sums are");
}
