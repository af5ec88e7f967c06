//! Measures the mean cost of the eBPF programs, as the kernel itself counts it
//! (`BPF_ENABLE_STATS`): nanoseconds and runs per program.

use std::{fs, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    bpf_stats::{BpfStats, Program, programs},
    java::Workload,
    process::Running,
    profiler::{Output, Run},
};

use super::figure::Figure;
use crate::shell;

const PERIODS: usize = 6;
const PERIOD: Duration = Duration::from_secs(3);
/// What the benchmark of switches needs at least, per second.
const SWITCH_LOAD: f64 = 50_000.0;
/// `enum bpf_prog_type`: samples are of the first kind, probes in JVMs of the second, all else of others.
const PERF_EVENT: u32 = 7;
const KPROBE: u32 = 2;

pub fn measure() -> Result<Vec<Figure>> {
    let _stats = BpfStats::enable()?;
    let mut figures = Vec::new();
    for (frequency, depth) in [(99, 50), (999, 50), (999, 1000)] {
        figures.push(sample(frequency, depth)?);
    }
    figures.push(switch()?);
    figures.push(allocation(&[])?);
    figures.push(allocation(&SMALL_BUFFERS)?);
    figures.push(collection()?);
    figures.push(io()?);
    Ok(figures)
}

fn sample(frequency: u32, depth: u32) -> Result<Figure> {
    shell::step(&format!("cost of a sample at {frequency} Hz: JVM threads below {depth} frames on every CPU"));
    let threads = format!("threads={}", thread::available_parallelism()?);
    // Compiled, each frame on the stack itself, and no flag that would help to walk it.
    let jvm = Workload::new("Busy").dont_inline("Busy::descend").dont_inline("Busy::spin");
    let jvm = jvm.argument(&format!("depth={depth}")).argument(&threads).argument("seconds=120").start()?;
    let values = observe(jvm.pid(), (frequency, &["--sampler", "cpu-clock"]), |program| program.kind == PERF_EVENT)?;
    Ok(Figure {
        name: format!("sample, {depth} frames, at {frequency} Hz"),
        unit: "µs",
        target: target(depth, frequency),
        method: format!(
            "run time of the sampling program at the event cpu-clock per run, which is a sample, by the kernel's statistics over {PERIODS} × {PERIOD:?}, for stacks \
             of {depth} compiled Java frames that are not inlined and the frames around them; at a low rate the code and \
             data of each sample are no longer in the caches"
        ),
        values: values.iter().map(|ns| ns / 1000.0).collect(),
        digits: 2,
    })
}

const fn target(depth: u32, frequency: u32) -> &'static str {
    match (depth, frequency) {
        (..=50, ..=99) => "≤ 8 µs",
        (..=50, _) => "≤ 6 µs",
        _ => "≤ 100 µs",
    }
}

fn switch() -> Result<Figure> {
    shell::step("cost of a thread switch, under a load of switches");
    let mut command = Command::new(std::env::current_exe()?);
    let mut load = Running::spawn("switch-load", command.args(["switch-load", "120"]))?;
    load.wait_stdout("ready", Duration::from_secs(10))?;
    let before = (context_switches()?, std::time::Instant::now());
    let values = observe(load.pid(), (99, &[]), |program| program.kind != PERF_EVENT)?;
    let rate = (context_switches()? - before.0) as f64 / before.1.elapsed().as_secs_f64();
    ensure!(rate >= SWITCH_LOAD, "only {rate:.0} switches per second: too few to measure");
    Ok(Figure {
        name: "switch".to_owned(),
        unit: "ns",
        target: "≤ 200 ns",
        method: format!("the same for the switch program, at {rate:.0} switches per second in a profiled process"),
        values,
        digits: 0,
    })
}

/// Flags for buffers so small that hardly any of them is sampled: few samples are taken in a second, however many there
/// are.
const SMALL_BUFFERS: [&str; 3] = ["-XX:MinTLABSize=2k", "-XX:TLABSize=4k", "-XX:-ResizeTLAB"];

fn allocation(flags: &[&str]) -> Result<Figure> {
    shell::step("cost of a new allocation buffer with --alloc, in a JVM that allocates on every CPU");
    let jvm = flags.iter().fold(Workload::new("Throughput").argument("seconds=120"), |jvm, flag| jvm.flag(flag));
    let (name, target, walks) = if flags.is_empty() {
        ("allocation buffer, with --alloc", "none", "the walk of the stack is in it where the object is sampled")
    } else {
        ("allocation buffer that is not sampled, with --alloc", "≤ 1 µs", "buffers are so small that few are sampled")
    };
    let jvm = jvm.start()?;
    Ok(Figure {
        name: name.to_owned(),
        unit: "µs",
        target,
        method: format!(
            "the same for the program of the probe where a thread took a new allocation buffer; {walks}, and the trap \
             that leads to the program is not in it"
        ),
        values: observe(jvm.pid(), (99, &["--alloc"]), |program| program.kind == KPROBE)?
            .iter()
            .map(|ns| ns / 1000.0)
            .collect(),
        digits: 2,
    })
}

fn collection() -> Result<Figure> {
    shell::step("cost of the end of a collection with --alloc, in a JVM that collects often");
    let jvm = Workload::new("Throughput").flag("-Xmn16m").argument("seconds=120").start()?;
    Ok(Figure {
        name: "end of a collection of a memory pool, with --alloc".to_owned(),
        unit: "µs",
        target: "none",
        method:
            "the same for the program of the probe at the end of a collection, which runs once for each pool that was \
                 collected and looks at the objects that were sampled since the last one"
                .to_owned(),
        values: observe(jvm.pid(), (99, &["--alloc"]), |program| program.name == "collection_ends")?
            .iter()
            .map(|ns| ns / 1000.0)
            .collect(),
        digits: 2,
    })
}

/// Bytes of a read.
const BLOCK: u32 = 4096;

fn io() -> Result<Figure> {
    shell::step("cost of a call that moves bytes with --io, of a process that reads a file from memory");
    let file = tempfile::NamedTempFile::new()?;
    file.as_file().set_len(64 << 20)?;
    let read = format!("while :; do dd if='{}' of=/dev/null bs={BLOCK} 2> /dev/null; done", file.path().display());
    let mut command = Command::new("sh");
    let load = Running::spawn("reads", command.args(["-c", &read]))?;
    Ok(Figure {
        name: format!("call that moves bytes, {BLOCK} at once, with --io"),
        unit: "ns",
        target: "none",
        method: "the same for the program that counts bytes and runs most often, where half of the calls are reads from a \
                 file and half are writes to /dev/null; at functions of the kernel it runs for reads only, at tracepoints \
                 for every system call"
            .to_owned(),
        values: observe(load.pid(), (99, &["--io"]), |program| program.name.starts_with("io_"))?,
        digits: 0,
    })
}

/// Profiles a process; mean nanoseconds per run, one value per period, of that
/// program of the wanted kind that ran most often.
fn observe(pid: u32, (frequency, options): (u32, &[&str]), wanted: impl Fn(&Program) -> bool) -> Result<Vec<f64>> {
    let output = Output::new()?;
    let run = Run::new().pid(pid).with("--frequency", frequency.to_string()).argument("--quiet").output(output.dir());
    let profiler = options.iter().fold(run, |run, option| run.argument(option)).start()?;
    // The first samples of new stacks cost more than all later ones.
    thread::sleep(PERIOD);
    let mut values = Vec::new();
    for _ in 0..PERIODS {
        let before = programs(&profiler)?;
        thread::sleep(PERIOD);
        let period = programs(&profiler)?.into_iter().filter(|(_, program)| wanted(program)).map(|(id, after)| {
            let start = before.get(&id).cloned().unwrap_or_default();
            (after.runs - start.runs, after.run_time_ns - start.run_time_ns)
        });
        let (runs, nanoseconds) = period.max().context("joular-bpf holds no such program")?;
        ensure!(runs > 0, "the program never ran");
        values.push(nanoseconds as f64 / runs as f64);
    }
    profiler.stop()?;
    Ok(values)
}

/// Switches of the whole machine since boot.
fn context_switches() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("ctxt ")).context("/proc/stat has no ctxt")?;
    Ok(line.trim().parse()?)
}
