//! Does what would harm others if nothing bounded it: strangers that fork and take names as fast as they can, and targets
//! of which there is too much, or what never comes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    fakes::{Fakes, NOBODY, PAGE},
    java::Workload,
    native,
    process::{Finished, Running},
    strangers::{self, Strangers},
};
use tempfile::TempDir;

use super::{
    TARGET,
    churn::Came,
    stop::{Random, Stop},
};

/// More than a machine can do, so as much as it can.
const PER_SECOND: u32 = 1_000_000;
/// Of a stranger that leaves some time to others.
const RENAMES_PER_SECOND: u32 = 10_000;
const ENDS: Duration = Duration::from_secs(60);
const STARTED: Duration = Duration::from_secs(60);

/// How many forks or names a program says there were.
fn done(finished: &Finished) -> Result<u64> {
    let count = finished.stdout.lines().find_map(|line| line.strip_prefix("done "));
    Ok(count.with_context(|| format!("{finished:?}"))?.parse()?)
}

/// Programs that are not targets: one forks and executes, one takes names.
pub fn strangers(length: Duration, stop: &Stop) -> Result<Came> {
    let (strangers, mut came) = (Strangers::new()?, Came::default());
    let kinds =
        [("fork", PER_SECOND, "programs of a fork storm"), ("rename", RENAMES_PER_SECOND, "names of a stranger")];
    let start = |(what, per_second, _)| strangers.start(what, per_second, length.as_secs());
    let running = kinds.map(start).into_iter().collect::<Result<Vec<_>>>()?;
    while !stop.wait(length) {}
    for (stranger, (.., name)) in running.into_iter().zip(kinds) {
        came.count(name, done(&stranger.finish(ENDS)?)?);
    }
    Ok(came)
}

/// What hostile targets are made of.
struct Means {
    fakes: Fakes,
    renames: PathBuf,
    other_jvm: TempDir,
    _strangers: Strangers,
}

impl Means {
    fn new() -> Result<Self> {
        let (strangers, other_jvm) = (Strangers::new()?, tempfile::tempdir()?);
        native::compile("other_jvm.c", &other_jvm.path().join(TARGET))?;
        native::compile_library("other_jvm.c", "LIBRARY", &other_jvm.path().join("libjvm.so"))?;
        let renames = strangers.named(TARGET)?;
        Ok(Self { fakes: Fakes::named(TARGET)?, renames, other_jvm, _strangers: strangers })
    }

    fn without_end(&self, life: Duration, stop: &Stop) -> Result<u32> {
        let fake = self.fakes.start_as(NOBODY, Path::new("-"))?;
        stop.wait(life);
        Ok(fake.pid())
    }

    fn memory_that_never_comes(&self, life: Duration, stop: &Stop) -> Result<u32> {
        let mirror = self.fakes.mirror()?;
        let fake = self.fakes.start_as(NOBODY, &mirror.path().join(PAGE))?;
        mirror.die();
        stop.wait(life);
        Ok(fake.pid())
    }

    /// Its perf map is a FIFO, from which nothing comes.
    fn fifo(&self, life: Duration, stop: &Stop) -> Result<u32> {
        let mut command = Command::new(self.other_jvm.path().join(TARGET));
        command.arg(self.other_jvm.path().join("libjvm.so"));
        let mut fake = Running::spawn("another JVM", &mut command)?;
        fake.wait_stdout("ready", STARTED)?;
        let (made, map) = (self.other_jvm.path().join("fifo"), format!("/tmp/perf-{}.map", fake.pid()));
        let status = Command::new("mkfifo").arg(&made).status().context("starting mkfifo")?;
        ensure!(status.success(), "mkfifo {}: {status}", made.display());
        // There may be the map of a process that had this number before.
        let map = Fifo(PathBuf::from(map));
        fs::rename(&made, &map.0).context("moving a FIFO")?;
        stop.wait(life);
        Ok(fake.pid())
    }

    fn names(&self, life: Duration, stop: &Stop) -> Result<u32> {
        let fake =
            strangers::start(Command::new(&self.renames), ("thread", PER_SECOND, (life + ENDS).as_secs()), None)?;
        stop.wait(life);
        Ok(fake.pid())
    }
}

struct Fifo(PathBuf);

impl Drop for Fifo {
    fn drop(&mut self) {
        let _missing = fs::remove_file(&self.0);
    }
}

/// A JVM that does nothing but collect.
fn collections(life: Duration, stop: &Stop) -> Result<u32> {
    let seconds = format!("seconds={}", (life + ENDS).as_secs());
    let workload =
        Workload::new("CollectionFlood").named(TARGET).flag("-Xmx8m").flag("-XX:+UseSerialGC").argument(&seconds);
    let jvm = workload.start()?;
    stop.wait(life);
    Ok(jvm.pid())
}

/// One hostile target after the other, so that others get some time, too.
pub fn targets(seed: u64, stop: &Stop) -> Result<Came> {
    let (mut came, mut random, means) = (Came::default(), Random::new(seed), Means::new()?);
    while !stop.is_over() {
        let life = random.milliseconds(3_000, 10_000);
        let what = random.number(0, 4);
        let (name, pid) = match what {
            0 => ("targets without end", means.without_end(life, stop)?),
            1 => ("targets whose memory never comes", means.memory_that_never_comes(life, stop)?),
            2 => ("targets with a FIFO", means.fifo(life, stop)?),
            3 => ("targets that take names", means.names(life, stop)?),
            _ => ("targets that collect", collections(life, stop)?),
        };
        came.hostile(name, pid);
        // A life that was cut short may have told of little.
        if what == 3 && !stop.is_over() {
            came.floods.insert(pid);
        }
        stop.wait(random.milliseconds(1_000, 5_000));
    }
    Ok(came)
}
