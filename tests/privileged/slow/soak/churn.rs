//! Starts and ends JVMs, programs, threads and containers, over and over.

use std::{collections::BTreeSet, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    containers::{
        self,
        image::{Image, named_java_command},
        podman::Podman,
    },
    java::{Collector, Jdk, Jvm, Workload},
    notes,
};

use super::{
    TARGET,
    stop::{Random, Stop},
};

const IMAGE: &str = "localhost/jvm:1";
/// A run lets the files of processes go that ended so long ago.
const RELEASED: Duration = Duration::from_secs(10);
/// JVMs end within seconds; on a loaded machine they may have to wait for a CPU.
const ENDS: Duration = Duration::from_secs(60);
const RELEASES: [u32; 2] = [17, 25];
const COLLECTORS: [Collector; 2] = [Collector::Serial, Collector::G1];

/// What came and went.
#[derive(Default)]
pub struct Came {
    /// Of JVMs, those in containers too.
    pub pids: Vec<u32>,
    pub counts: Vec<(&'static str, u64)>,
    /// Of hostile targets, and of those among them that certainly told of more than they may.
    pub hostile: BTreeSet<u32>,
    pub floods: BTreeSet<u32>,
}

impl Came {
    pub fn count(&mut self, what: &'static str, more: u64) {
        match self.counts.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += more,
            None => self.counts.push((what, more)),
        }
    }

    fn jvm(&mut self, what: &'static str, pid: u32) {
        self.pids.push(pid);
        self.count(what, 1);
    }

    pub fn hostile(&mut self, what: &'static str, pid: u32) {
        self.hostile.insert(pid);
        self.count(what, 1);
    }

    pub fn join(mut self, other: Self) -> Self {
        self.pids.extend(other.pids);
        self.hostile.extend(other.hostile);
        self.floods.extend(other.floods);
        other.counts.into_iter().for_each(|(what, count)| self.count(what, count));
        self
    }
}

fn jdks() -> Result<Vec<&'static Jdk>> {
    let jdks: Vec<_> = Jdk::pinned()?.filter(|jdk| RELEASES.contains(&jdk.release)).collect();
    ensure!(jdks.len() == RELEASES.len(), "JDKs {RELEASES:?} are not all there: {jdks:?}");
    Ok(jdks)
}

/// A JVM of any of these JDKs and collectors; half of them are executed by a shell that they replace.
fn workload(class: &str, jdks: &[&Jdk], random: &mut Random) -> Workload {
    let workload = Workload::new(class).named(TARGET).jdk(random.one_of(jdks)).flag(&random.one_of(&COLLECTORS).flag());
    match random.number(0, 1) {
        0 => workload,
        _ => workload.launched_by(&["sh", "-c", "exec \"$0\" \"$@\""]),
    }
}

fn short_lived(jdks: &[&Jdk], random: &mut Random) -> Result<Jvm> {
    let seconds = ["seconds=0.4", "seconds=1", "seconds=2"];
    workload("ShortLived", jdks, random).argument(random.one_of(&seconds)).argument("last=0.2").start()
}

fn busy(jdks: &[&Jdk], random: &mut Random) -> Result<Jvm> {
    let (threads, seconds) = (random.number(1, 4), random.number(1, 10));
    let workload = workload("Busy", jdks, random).argument("work=5").argument("rest=45");
    workload.argument(&format!("threads={threads}")).argument(&format!("seconds={seconds}")).start()
}

/// JVMs that end by themselves, or are killed.
pub fn jvms(seed: u64, stop: &Stop) -> Result<Came> {
    let (mut came, mut random, jdks) = (Came::default(), Random::new(seed), jdks()?);
    while !stop.is_over() {
        let jvm = if random.number(0, 1) == 0 { short_lived } else { busy }(&jdks, &mut random)?;
        let pid = jvm.pid();
        if random.number(0, 3) == 0 {
            stop.wait(random.milliseconds(0, 2000));
            drop(jvm);
            came.jvm("JVMs killed", pid);
        } else {
            jvm.finish(ENDS)?;
            came.jvm("JVMs that ended", pid);
        }
    }
    Ok(came)
}

/// JVMs of hundreds of threads that wake often; they end when their input does.
pub fn threads(seed: u64, stop: &Stop) -> Result<Came> {
    let (mut came, mut random, jdks) = (Came::default(), Random::new(seed), jdks()?);
    while !stop.is_over() {
        let count = random.number(100, 400);
        let mut workload = workload("Waker", &jdks, &mut random).flag("-Xss256k");
        for _ in 0..count {
            workload = workload.argument(random.one_of(&["sleep-100-10", "park-150-20", "sleep-300-5"]));
        }
        let jvm = workload.start()?;
        came.jvm("JVMs of many threads", jvm.pid());
        came.count("their threads", count);
        stop.wait(random.milliseconds(500, 5000));
        jvm.finish(ENDS)?;
    }
    Ok(came)
}

/// Programs that a shell forks and executes, in bursts.
pub fn programs(seed: u64, stop: &Stop) -> Result<Came> {
    let (mut came, mut random) = (Came::default(), Random::new(seed));
    while !stop.is_over() {
        let count = random.number(20, 150);
        let script = format!("i=0; while [ $i -lt {count} ]; do (:); /bin/true; i=$((i + 1)); done");
        let status = Command::new("sh").args(["-c", &script]).status().context("starting sh")?;
        ensure!(status.success(), "{script}: {status}");
        came.count("programs", 2 * count);
        stop.wait(random.milliseconds(100, 1500));
    }
    Ok(came)
}

/// JVMs in containers, which are removed while they run.
pub fn containers(seed: u64, stop: &Stop) -> Result<Came> {
    let (mut came, mut random) = (Came::default(), Random::new(seed));
    if !containers::are_installed() {
        notes::figure("soak: without containers, because there is no podman");
        return Ok(came);
    }
    let podman = Podman::new()?;
    let image = Image::of(jdks()?[0])?;
    image.link_java(TARGET)?;
    podman.import(&image, IMAGE)?;
    while !stop.is_over() {
        let work = random.one_of(&["work=2", "work=5", "work=9"]);
        let command = [named_java_command(TARGET, "Busy"), vec![work.to_owned(), "rest=40".to_owned()]].concat();
        let container = podman.start(IMAGE, &command)?;
        podman.wait_ready(&container)?;
        came.jvm("containers", container.pid);
        stop.wait(random.milliseconds(500, 6000));
        // Podman unmounts their files, and says so if somebody uses them.
        wait_for("podman to remove a container", RELEASED, || Ok(podman.remove([&container]).ok()))?;
    }
    Ok(came)
}

impl From<(&'static str, u64)> for Came {
    fn from(count: (&'static str, u64)) -> Self {
        Self { counts: vec![count], ..Self::default() }
    }
}
