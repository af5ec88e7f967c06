//! Tests that threads which come and go leave nothing in the recorder's memory: two million of them, as a server that
//! starts a thread for each request has in a day.

use std::{
    env,
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Jvm, Workload},
    notes,
    profiler::{Output, Profiler, Run},
    statistics::mean,
};

const THREADS: &str = "SHORT_THREADS";
const USUAL: u64 = 2_000_000;
/// Rows wait in memory until they are written, so the memory that a recorder needs goes with how many threads a second has.
/// This many each machine starts; as many as one can are by 10 % more or fewer a minute later.
const A_SECOND: u64 = 4_000;
/// More do not start more of them: the JVM starts one after the other.
const STARTERS: u32 = 4;
/// Of its own, so that nobody else records it.
const NAME: &str = "short-java";
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A thousand a second take half an hour, where a machine starts no more.
const LIMIT: Duration = Duration::from_secs(40 * 60);
/// Of all threads. In the first tenth tables grow to the size that they need. What a recorder holds rises and falls with
/// its writing, so three tenths after that are compared with the last three.
const PARTS: u64 = 10;
const FIRST: std::ops::Range<usize> = 1..4;
const LAST: std::ops::Range<usize> = 7..10;
const GROWTH: f64 = 0.05;

/// A recorder, and what memory it had in each part.
struct Recorder {
    name: &'static str,
    output: Output,
    profiler: Profiler,
    kib: Vec<Vec<f64>>,
}

impl Recorder {
    fn start(name: &'static str, jvm: &Jvm, options: &[&str]) -> Result<Self> {
        let output = Output::new()?;
        // Soon compared with a part.
        let run = Run::modelled().pid(jvm.pid()).with("--flush", "2s").argument("--quiet").output(output.dir());
        let profiler = options.iter().fold(run, |run, option| run.argument(*option)).start()?;
        Ok(Self { name, output, profiler, kib: vec![Vec::new(); PARTS as usize] })
    }

    fn look(&mut self, part: usize) -> Result<()> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.profiler.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon")?;
        self.kib[part].push(line.trim().trim_end_matches(" kB").parse()?);
        Ok(())
    }

    /// It ends well, has had all threads, and has grown by next to nothing.
    fn judge(self, threads: u64) -> Result<()> {
        let Self { name, output, profiler, kib } = self;
        profiler.stop()?;
        let means: Vec<f64> = kib.iter().map(|looks| mean(looks)).collect();
        let growth = mean(&means[LAST]) / mean(&means[FIRST]) - 1.0;
        let mut text = format!("{threads} short threads, {name}: KiB of anonymous memory by tenths:");
        means.iter().try_for_each(|kib| write!(text, " {kib:.0}"))?;
        write!(text, "; from tenths 2 to 4 to the last three {:+.1} %", 100.0 * growth)?;
        let lost = output.data.number(
            "SELECT sum(lost)::DOUBLE FROM (SELECT DISTINCT window_start,
               lost_thread_map_full + lost_lifecycle_ring_full + lost_allocation_map_full AS lost FROM windows)",
        )?;
        let seen = output.data.number("SELECT count(*)::DOUBLE FROM threads WHERE thread_name = 'short'")?;
        notes::figure(&format!("{text}; {lost} lost, {seen} rows of such threads"));
        ensure!(growth <= GROWTH, "{text}");
        ensure!(lost == 0.0 && seen >= 0.99 * threads as f64, "{name}: {lost} lost, {seen} of {threads} threads");
        Ok(())
    }
}

/// How many threads the JVM says there were.
fn started(jvm: &Jvm) -> u64 {
    jvm.records().last().and_then(|record| record["threads"].as_u64()).unwrap_or(0)
}

/// Both kinds of runs watch the same JVM, so that both see the same threads.
#[test]
fn two_million_short_threads_leave_nothing_behind() -> Result<()> {
    let threads = env::var(THREADS).map_or(Ok(USUAL), |text| text.parse().context(text))?;
    let workload = Workload::new("ShortThreads").named(NAME).argument(&format!("starters={STARTERS}"));
    let workload = workload.argument(&format!("a_second={A_SECOND}"));
    let mut jvm = workload.argument(&format!("threads={threads}")).flag("-Xss256k").start()?;
    let mut recorders =
        [Recorder::start("without --alloc", &jvm, &[])?, Recorder::start("with --alloc", &jvm, &["--alloc"])?];
    jvm.say("go")?;
    let begin = Instant::now();
    while started(&jvm) < threads {
        ensure!(begin.elapsed() < LIMIT, "{} threads in {LIMIT:?}", started(&jvm));
        std::thread::sleep(LOOK_EVERY);
        let part = (started(&jvm) * PARTS / threads).min(PARTS - 1) as usize;
        recorders.iter_mut().try_for_each(|recorder| recorder.look(part))?;
    }
    notes::figure(&format!("{:.0} short threads a second", threads as f64 / begin.elapsed().as_secs_f64()));
    let judged = recorders.map(|recorder| recorder.judge(threads));
    let complaints: Vec<_> = judged.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}
