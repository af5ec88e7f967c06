//! Tests that nothing is lost and nothing counts twice, wherever connections are cut: at each request of `ship`, `compact`, `expire`
//! and `load`, when it is done and its answer is due.
//!
//! Then either nobody answers any more, so the command fails, and is repeated; or the client repeats the request. Both leave the
//! objects that a run without a cut leaves. The quick set takes every third request of long commands, the slow one all.

mod load;
mod stopped;

use std::{env, path::Path, sync::Arc, thread};

use jiff::Timestamp;
use joular_tests::{
    process::Finished,
    s3::{self, Cut, S3, Seen},
    shared::Shared,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    diff, fleet, joular_bpf,
    shipping::{done, with},
    tiers::HOUR,
};

/// Servers with their clients, side by side: they wait for each other most of the time.
const WORKERS: usize = 2;

/// Longer than a claim of who sums lasts.
const CLAIM_S: u32 = 31 * 60;

type Environment = [(&'static str, String)];

/// A folder with the data set `recorded`, of two hosts in the same hour.
fn hosts() -> Arc<TempDir> {
    static HOSTS: Shared<TempDir> = Shared::new();
    let make = || {
        let folder = tempfile::tempdir()?;
        for (host, version) in [("cut-1", "1.0"), ("cut-2", "2.0")] {
            fleet::record(&folder.path().join("recorded"), host, 0, version);
        }
        Ok(folder)
    };
    HOSTS.get(make).unwrap()
}

/// The data set of these hosts.
fn recorded(hosts: &TempDir) -> String {
    hosts.path().join("recorded").to_str().unwrap().to_owned()
}

/// When the first run of a data set began, and two hours later.
fn span(data: &str) -> [String; 2] {
    let runs = done(&joular_bpf(&["runs", data, "--json"]));
    let started = |run: &Value| run["started"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let first = runs.as_array().unwrap().iter().map(started).min().unwrap();
    [first, first + 2 * HOUR].map(|time| time.to_string())
}

fn ship(environment: &Environment, place: &str) {
    let hosts = hosts();
    // What has arrived is noted beside what was recorded, of which others ship as well.
    let parent = tempfile::tempdir().unwrap();
    let own = parent.path().join("own");
    diff::copy(Path::new(&recorded(&hosts)), &own);
    done(&with(environment, &["ship", own.to_str().unwrap(), place, "--json"]));
}

fn compact(environment: &Environment, place: &str) -> Finished {
    let [since, until] = span(&recorded(&hosts()));
    with(environment, &["compact", place, "--since", &since, "--until", &until, "--json"])
}

/// One of how many requests of a long command is cut.
fn step() -> usize {
    if env::var_os(s3::EVERY).is_some() { 1 } else { 3 }
}

/// Items that are this worker's.
fn share<T>(items: impl Iterator<Item = T>, worker: usize) -> impl Iterator<Item = (usize, T)> {
    items.enumerate().filter(move |(index, _)| index % WORKERS == worker)
}

/// Has each worker do its share. Returns what the first one returns.
fn side_by_side<T: Send>(work: impl Fn(usize) -> T + Sync) -> T {
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        let mut done: Vec<T> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        done.remove(0)
    })
}

/// A command, and the place that it is for.
struct Case<'a> {
    /// Makes a place ready.
    prepare: &'a (dyn Fn(&Environment, &str) + Sync),
    command: &'a (dyn Fn(&Environment, &str) -> Finished + Sync),
    step: usize,
}

impl Case<'_> {
    /// Cuts at each request, and expects what is left without a cut.
    fn expect_the_same(&self) -> Seen {
        side_by_side(|worker| self.share_of(worker))
    }

    fn share_of(&self, worker: usize) -> Seen {
        let mut server = S3::with_bucket("whole").unwrap();
        (self.prepare)(&server.environment(), "s3://whole");
        let bucket = format!("undisturbed-{worker}");
        server.tell(&format!("copy whole {bucket}")).unwrap();
        server.cut(&bucket, None).unwrap();
        let finished = (self.command)(&server.environment(), &format!("s3://{bucket}"));
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let (seen, expected) = (server.seen(&bucket).unwrap(), server.digests(&bucket).unwrap());
        assert_ne!(server.digests("whole").unwrap(), expected, "it does something");
        let cuts = (1..=seen.requests).step_by(self.step).map(Cut::FromOn).chain((1..=seen.writes).map(Cut::Write));
        for (index, cut) in share(cuts, worker) {
            let bucket = format!("trial-{worker}-{index}");
            server.tell(&format!("copy whole {bucket}")).unwrap();
            self.survive(&mut server, &bucket, cut);
            assert_eq!(server.digests(&bucket).unwrap(), expected, "{cut:?} of {seen:?}");
        }
        seen
    }

    fn survive(&self, server: &mut S3, bucket: &str, cut: Cut) {
        let place = format!("s3://{bucket}");
        server.cut(bucket, Some(cut)).unwrap();
        match cut {
            Cut::Write(_) => {
                let finished = (self.command)(&server.environment(), &place);
                assert_eq!(finished.code(), Some(0), "{cut:?}: {finished:?}");
            }
            Cut::FromOn(number) => {
                let finished = (self.command)(&server.environment_of_the_hasty(), &place);
                // It does not matter whether a claim can be given back, which comes last.
                assert!(finished.code() != Some(0) || number > 5, "{cut:?}: {finished:?}");
                assert!(!finished.stderr.contains("panicked"), "{cut:?}: {finished:?}");
                server.cut(bucket, None).unwrap();
                server.tell(&format!("age {bucket} {CLAIM_S}")).unwrap();
                let again = (self.command)(&server.environment(), &place);
                assert_eq!(again.code(), Some(0), "{cut:?}: {again:?}");
            }
        }
    }
}

#[test]
fn what_is_shipped_arrives_once_wherever_it_is_cut() {
    let (hosts, folder) = (hosts(), tempfile::tempdir().unwrap());
    let ship = |environment: &Environment, place: &str| {
        // Each place has a copy of what was recorded, and of what is known to have arrived.
        let own = folder.path().join(place.trim_start_matches("s3://"));
        if !own.exists() {
            diff::copy(Path::new(&recorded(&hosts)), &own);
        }
        with(environment, &["ship", own.to_str().unwrap(), place, "--json"])
    };
    let seen = Case { prepare: &|_, _| {}, command: &ship, step: 1 }.expect_the_same();
    assert!(seen.writes == 2 && seen.requests > 2, "two runs: {seen:?}");
}

#[test]
fn tiers_are_the_same_wherever_their_making_is_cut() {
    let seen = Case { prepare: &ship, command: &compact, step: step() }.expect_the_same();
    assert!(seen.writes > 10 && seen.requests > 30, "{seen:?}");
}

#[test]
fn what_expires_is_gone_and_tiers_are_there_wherever_it_is_cut() {
    let prepare = |environment: &Environment, place: &str| {
        ship(environment, place);
        done(&compact(environment, place));
    };
    let expire = |environment: &Environment, place: &str| with(environment, &["expire", place, "--keep-days", "1"]);
    let seen = Case { prepare: &prepare, command: &expire, step: 1 }.expect_the_same();
    assert!(seen.writes > 0, "{seen:?}");
}
