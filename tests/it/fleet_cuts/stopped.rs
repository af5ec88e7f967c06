//! Stops one who sums at each of its writes, for longer than its claim lasts. Meanwhile a host ships what is late, and another one
//! sums that. What the first one does afterwards changes nothing.

use std::{collections::BTreeMap, path::Path, process::Command};

use joular_tests::{paths, process::Running, s3::S3};

use super::{CLAIM_S, Environment, compact, hosts, recorded, share, ship, side_by_side, span, step};
use crate::{
    LIMIT, fleet,
    shipping::{done, with},
};

const LATE: &str = "late-3";

/// A data set of a host that ships later than the others.
fn late(parent: &Path) -> String {
    let data = parent.join("late");
    fleet::record(&data, LATE, 0, "3.0");
    data.to_str().unwrap().to_owned()
}

/// What a bucket has after both have been summed without a stop.
fn expected(server: &mut S3, late: &str) -> BTreeMap<String, String> {
    server.tell("copy whole expected").unwrap();
    both(&server.environment(), late, "s3://expected");
    server.digests("expected").unwrap()
}

fn both(environment: &Environment, late: &str, place: &str) {
    done(&with(environment, &["ship", late, place, "--json"]));
    done(&compact(environment, place));
}

fn share_of(worker: usize) -> u64 {
    let parent = tempfile::tempdir().unwrap();
    let late = late(parent.path());
    let mut server = S3::with_bucket("whole").unwrap();
    let environment = server.environment();
    ship(&environment, "s3://whole");
    let expected = expected(&mut server, &late);
    server.tell("copy whole counted").unwrap();
    server.cut("counted", None).unwrap();
    done(&compact(&environment, "s3://counted"));
    let writes = server.seen("counted").unwrap().writes;
    let [since, until] = span(&recorded(&hosts()));
    for (_, number) in share((1..=writes).step_by(step()), worker) {
        let bucket = format!("stopped-{number}");
        let place = format!("s3://{bucket}");
        server.tell(&format!("copy whole {bucket}")).unwrap();
        server.tell(&format!("hold {bucket} {number}")).unwrap();
        let mut command = Command::new(paths::joular_bpf());
        command.args(["compact", &place, "--since", &since, "--until", &until]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let stopped = Running::spawn("joular-bpf compact", &mut command).unwrap();
        server.tell(&format!("held {bucket}")).unwrap();
        server.tell(&format!("age {bucket} {CLAIM_S}")).unwrap();
        both(&environment, &late, &place);
        assert_eq!(server.digests(&bucket).unwrap(), expected, "before write {number} of {writes} goes on");
        server.tell(&format!("release {bucket}")).unwrap();
        let finished = stopped.finish(LIMIT).unwrap();
        assert_eq!(finished.code(), Some(0), "{number} of {writes}: {finished:?}");
        assert_eq!(server.digests(&bucket).unwrap(), expected, "write {number} of {writes}: {finished:?}");
    }
    writes
}

#[test]
fn one_who_goes_on_after_a_long_stop_undoes_nothing() {
    let writes = side_by_side(share_of);
    assert!(writes > 10, "{writes}");
}
