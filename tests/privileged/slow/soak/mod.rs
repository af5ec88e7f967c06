//! Tests a long run on a machine where nothing stays: JVMs, programs, threads and containers come and go, a CPU too, and
//! somebody sets the clock. Hostile processes are among them. The run loses nothing that it should count, and grows by
//! nothing.

mod churn;
mod disturb;
mod expect;
mod hostile;
mod look;
mod stop;

use std::{
    env, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    bpf_objects,
    clock::{monotonic_ns, wait_for},
    java::{Jvm, Workload},
    notes,
    profiler::{Output, Profiler, Run},
};

use self::{
    churn::Came,
    look::Look,
    stop::{EndsIt, Stop},
};

const MINUTES: &str = "SOAK_MINUTES";
const SEED: &str = "SOAK_SEED";
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The figures of so many moments are published.
const PUBLISHED: u32 = 12;
const CLOCK_IS_SET: u32 = 8;
/// The kernel frees maps after all CPUs have passed through the scheduler.
const FREED: Duration = Duration::from_secs(10);
/// Starting and ending take some of it.
const SLACK: Duration = Duration::from_secs(600);
/// The name by which targets are found: nobody else's JVM has it.
const TARGET: &str = "soaked-java";
/// Nearly as many as the kernel allows by default.
const MAPPINGS: usize = 60_000;

fn number(variable: &str, default: u64) -> Result<u64> {
    env::var(variable).map_or(Ok(default), |text| text.parse().with_context(|| format!("{variable}={text}")))
}

/// Looks at the profiler until the time is over, or somebody failed.
fn watch(profiler: &Profiler, length: Duration, stop: &Stop) -> Result<Vec<Look>> {
    let _end = EndsIt(stop);
    let (begin, mut looks, mut published) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < length && !stop.wait(LOOK_EVERY) {
        let look = Look::at(begin.elapsed(), profiler.pid())?;
        if look.at >= length * published / PUBLISHED {
            notes::figure(&format!("soak: {look}"));
            published += 1;
        }
        looks.push(look);
    }
    Ok(looks)
}

/// Everything comes and goes while the profiler is looked at.
fn churn(profiler: &Profiler, length: Duration, seed: u64) -> Result<(Vec<Look>, Came)> {
    let stop = &Stop::default();
    let pause = length / CLOCK_IS_SET;
    thread::scope(|scope| {
        let run = |churn: Box<dyn FnOnce() -> Result<Came> + Send>| {
            scope.spawn(move || {
                let _end = EndsIt(stop);
                churn()
            })
        };
        let threads = [
            run(Box::new(move || churn::jvms(seed, stop))),
            run(Box::new(move || churn::threads(seed + 1, stop))),
            run(Box::new(move || churn::programs(seed + 2, stop))),
            run(Box::new(move || churn::containers(seed + 3, stop))),
            run(Box::new(move || disturb::cpus(seed + 4, stop))),
            run(Box::new(move || disturb::clock(seed + 5, pause, stop))),
            run(Box::new(move || hostile::targets(seed + 6, stop))),
            run(Box::new(move || hostile::strangers(length, stop))),
        ];
        let looks = watch(profiler, length, stop);
        let came = threads.into_iter().map(|thread| thread.join().expect("it returns an error, if any"));
        let came = came.collect::<Result<Vec<_>>>()?;
        anyhow::Ok((looks?, came.into_iter().fold(Came::default(), Came::join)))
    })
}

/// JVMs that live from before the beginning to the end.
struct Steady {
    mapped: Jvm,
    others: [Jvm; 2],
}

impl Steady {
    fn start(length: Duration) -> Result<Self> {
        let seconds = format!("seconds={}", (length + SLACK).as_secs());
        let new = |class| Workload::new(class).named(TARGET);
        let waker = new("Waker").argument("sleep-20-40").argument("park-50-100").start()?;
        let renamed = new("Renamed").argument("per-second=100").argument(&seconds).start()?;
        let mapped = new("ManyMappings").argument(&format!("mappings={MAPPINGS}")).argument("rest=20");
        Ok(Self { mapped: mapped.argument(&seconds).start()?, others: [waker, renamed] })
    }
}

/// It takes as long as it says: half an hour, or `SOAK_MINUTES`.
#[test]
fn a_long_run_among_what_comes_and_goes_stays_exact_and_does_not_grow() -> Result<()> {
    let length = Duration::from_secs(60 * number(MINUTES, 30)?);
    let seed = number(SEED, monotonic_ns())?;
    notes::figure(&format!("soak: {SEED}={seed}"));
    let output = Output::new()?;
    let steady = Steady::start(length)?;
    let run = Run::modelled().with("--comm", TARGET).with("--frequency", "199").with("--flush", "10s");
    let mut profiler = run.argument("--alloc").argument("--json").output(output.dir()).start()?;
    // By then the steady ones have their probes.
    (0..6).try_for_each(|_| profiler.wait_window().map(drop))?;
    let (first, files) = (Look::at(Duration::ZERO, profiler.pid())?, look::files(profiler.pid())?);
    notes::figure(&format!("soak: {first}"));

    let began_ns = monotonic_ns();
    let (looks, came) = churn(&profiler, length, seed)?;
    let length_ns = monotonic_ns() - began_ns;
    notes::figure(&format!("soak: came and went: {:?}", came.counts));
    let (mapped, others) = (steady.mapped.pid(), steady.others.each_ref().map(Jvm::pid));
    let released = expect::released(&profiler, &first, &files, length);
    drop(steady);
    let objects = bpf_objects::of(profiler.pid())?;
    ensure!(!objects.is_empty(), "a running profiler holds programs");
    let finished = profiler.stop()?;
    wait_for("the kernel to free all eBPF objects", FREED, || {
        Ok(bpf_objects::all().is_disjoint(&objects).then_some(()))
    })?;
    // All are told of: nobody repeats half an hour for the second one.
    let data = &output.data;
    let found = [
        released,
        expect::flat(&looks),
        expect::nothing_lost(data),
        expect::whole(data, &came, length_ns),
        expect::whole_stacks(data, &came, &others, mapped),
        expect::named(data, &finished, &came),
    ];
    let complaints: Vec<_> = found.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}
