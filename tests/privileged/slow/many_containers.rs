//! Tests many containers of one image: what they have in common is read and kept once.
//!
//! The kernel has room for the unwind tables of a dozen JDKs. If each container had its own, most of them
//! would have none.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    containers::{
        self,
        image::{Image, java_command},
        podman::{Container, Podman},
    },
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const IMAGE: &str = "localhost/jvm:1";
const CONTAINERS: usize = 64;
const LIMIT: Duration = Duration::from_secs(20);

/// Two are started at a time.
fn start_all(podman: &Podman, command: &[String]) -> Result<Vec<Container>> {
    let half = || (0..CONTAINERS / 2).map(|_| podman.start(IMAGE, command)).collect::<Result<Vec<_>>>();
    let containers = thread::scope(|scope| {
        let other = scope.spawn(half);
        let mut started = half()?;
        started.extend(other.join().expect("it returns an error, if any")?);
        anyhow::Ok(started)
    })?;
    containers.iter().try_for_each(|container| podman.wait_ready(container))?;
    Ok(containers)
}

#[test]
fn sixty_four_containers_of_one_image_share_what_is_read_of_it() -> Result<()> {
    if !containers::are_installed() {
        notes::skipped("there is no podman to run containers with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let (podman, output) = (Podman::new()?, Output::new()?);
    podman.import(&Image::of(Jdk::pinned()?.last().context("no pinned JDK")?)?, IMAGE)?;
    // All of them together keep half a CPU busy.
    let command = [java_command("Busy"), ["work=2", "rest=250", "seconds=120"].map(str::to_owned).to_vec()].concat();
    let containers = start_all(&podman, &command)?;
    let pids: Vec<String> = containers.iter().map(|container| container.pid.to_string()).collect();
    let run = Run::modelled().with("--pid", pids.join(",")).with("--duration", "6s");
    let finished = run.with("--frequency", "499").output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(!finished.stderr.contains("there is room for"), "{}", finished.stderr);
    podman.remove(&containers)?;
    let rows = output.data.rows(
        "SELECT count(DISTINCT pid) AS jvms, sum(samples)::DOUBLE AS samples,
           sum(samples) FILTER (is_complete)::DOUBLE / sum(samples) AS whole
         FROM quality WHERE category = 'java'",
    )?;
    let row = rows.first().context("sums")?;
    let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
    notes::figure(&format!("{CONTAINERS} containers of one image: {row:?}"));
    ensure!(number("jvms")? == CONTAINERS as f64 && number("whole")? > 0.99, "{row:?}");
    Ok(())
}
