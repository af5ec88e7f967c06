//! Records an hour of ten JVMs that never ran, as large as a real one: what the
//! figures of reports and of data sets' sizes are measured with.
//!
//! `record_hour FILE.jrec [SECONDS [STACKS]]` writes a recording, which `joular-bpf
//! --replay` makes a data set of. Equal arguments give equal bytes. Rare stacks are
//! never seen: of 180 000 in an hour 103 000 are.
//!
//! # What is in it
//! - 10 JVMs with 15 to 40 threads, of which 2 to 7 run in a window of one second;
//! - two of eight CPUs are busy, in waves, sampled at 99 Hz: about 200 samples a window;
//! - 20 000 stacks (STACKS) of 20 to 60 frames, grown as a tree (a stack shares a part of an
//!   earlier one), taken in Zipf's proportions, over 5 000 methods with up to three
//!   lines each; JDK and framework methods are the same in all JVMs;
//! - two energy counters, package and memory.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures, all of them small")]

use std::{
    env,
    fs::File,
    io::{BufWriter, Write as _},
};

use anyhow::{Context as _, Result};
use joular_data::{
    events::{
        CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunEnd, RunInfo, Runtime, SampleCount, Symbol,
        ThreadTime, Window, recording::RecordingWriter,
    },
    model::{
        domain::{Domain, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        quality::{StackQuality, Unwinder, WalkEnd},
        units::{Address, MonotonicNs, Pid, Tid, UnixMicros},
    },
};
use joular_ebpf::abi::{Place, ThreadKey};

const SECOND: u64 = 1_000_000_000;
/// 2026-03-01T12:00:00Z.
const STARTED: i64 = 1_772_366_400_000_000;
const JVMS: u64 = 10;
const CPUS: u32 = 8;
const HZ: u64 = 99;
const STACKS: u64 = 20_000;
/// Of all JVMs alike: JDK and frameworks.
const SHARED_METHODS: u64 = 2_000;
const OWN_METHODS: u64 = 300;

/// Random numbers that are the same each time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        twox_hash::XxHash64::oneshot(11, &self.0.to_le_bytes())
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// From 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A rank below `limit` whose chance falls as 1 / (rank + 1), nearly.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    fn zipf(&mut self, limit: u64) -> u64 {
        (((limit as f64 + 1.0).powf(self.unit())) as u64).clamp(1, limit) - 1
    }
}

/// A JVM and all that will ever be seen of it.
struct Jvm {
    number: u64,
    threads: Vec<(Tid, &'static str)>,
    /// Methods and lines, leaf first.
    stacks: Vec<Vec<u64>>,
    is_sent: Vec<bool>,
}

impl Jvm {
    fn new(number: u64, stack_count: u64, noise: &mut Noise) -> Self {
        let name = |thread: u64| match thread {
            0 => "VM Thread",
            1 => "C2 CompilerThre",
            2 => "C1 CompilerThre",
            3 | 4 => "GC Thread#0",
            _ => ["http-nio-8080-e", "ForkJoinPool-1-", "kafka-consumer", "scheduling-1"][(thread % 4) as usize],
        };
        let count = 15 + noise.below(26);
        let threads = (0..count).map(|thread| (Tid((10_000 * (number + 1) + thread) as u32), name(thread))).collect();
        let mut stacks: Vec<Vec<u64>> = Vec::new();
        for index in 0..stack_count {
            let depth = 20 + noise.below(41) as usize;
            let mut stack = if index < 4 {
                Vec::new()
            } else {
                // Grown from an earlier one: most of the way is common.
                let from = &stacks[noise.zipf(index) as usize];
                from[..(from.len() * (4 + noise.below(6) as usize) / 10).min(depth)].to_vec()
            };
            while stack.len() < depth {
                stack.push(Self::frame(number, noise));
            }
            stacks.push(stack);
        }
        stacks.iter_mut().for_each(|stack| stack.reverse());
        Self { number, threads, is_sent: vec![false; stacks.len()], stacks }
    }

    /// A method and one of its lines, as an address.
    fn frame(number: u64, noise: &mut Noise) -> u64 {
        let is_shared = noise.below(3) > 0;
        let method =
            if is_shared { noise.zipf(SHARED_METHODS) } else { 10_000 * (number + 1) + noise.zipf(OWN_METHODS) };
        (method << 8) | noise.zipf(3)
    }

    fn pid(&self) -> Pid {
        Pid((10_000 * (self.number + 1)) as u32)
    }

    fn info(&self) -> ProcessInfo {
        ProcessInfo {
            pid: self.pid(),
            start_boottime_ns: 50 * SECOND,
            parent: Pid(1),
            comm: "java".into(),
            command_line: vec![
                "java".into(),
                "-Xmx2g".into(),
                "-jar".into(),
                format!("/srv/app-{}.jar", self.number).into(),
            ],
            executable: Some("/usr/bin/java".into()),
            uid: 1000,
            gid: 1000,
            runtime: Runtime::Jvm {
                version: Some("21.0.2".into()),
                main_class: Some(format!("com.acme.service{}.Main", self.number).into()),
                collector: Some("G1".into()),
                debug_non_safepoints: Some(false),
                unwinding: Some("hotspot".into()),
            },
            is_target: true,
            ..ProcessInfo::default()
        }
    }

    fn symbols(&self) -> Event {
        let mut addresses: Vec<u64> = self.stacks.iter().flatten().copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let symbol = |address| Symbol { address: Address(address), frames: vec![method(address)] };
        let symbols = addresses.into_iter().map(symbol).collect();
        Event::Symbols { pid: self.pid(), start_boottime_ns: 50 * SECOND, symbols }
    }

    /// Sends a stack before its first sample.
    fn stack(&mut self, index: usize, events: &mut Vec<Event>) -> u64 {
        let id = self.number * self.stacks.len() as u64 + index as u64 + 1;
        if !std::mem::replace(&mut self.is_sent[index], true) {
            let frames = self.stacks[index].iter().copied().map(Address).collect();
            let quality = StackQuality { unwinder: Unwinder::Tables, end: WalkEnd::Root };
            events.push(Event::Stack(RawStack { id, is_kernel: false, quality, frames }));
        }
        id
    }
}

fn method(address: u64) -> Frame {
    let (number, line) = (address >> 8, address & 0xff);
    let (package, class) = match number {
        0..10_000 => (["java.util.concurrent", "org.springframework.web.servlet", "io.netty.channel"], number / 8),
        _ => (["com.acme.orders.service", "com.acme.orders.persistence", "com.acme.web"], number % 10_000 / 6),
    };
    let kinds = [FrameKind::CompiledC2, FrameKind::CompiledC2, FrameKind::CompiledC1, FrameKind::Interpreted];
    let simple = format!("Component{}Handler{class}", number / 10_000);
    Frame {
        file: Some(format!("{simple}.java").into()),
        class: Some(format!("{}.{simple}", package[(class % 3) as usize]).into()),
        signature: Some(["()V", "(Ljava/lang/String;I)V", "(Ljava/lang/Object;)Z"][(number % 3) as usize].into()),
        line: Some((number % 700 + 17 * line) as u32),
        ..Frame::new(kinds[(number % 4) as usize], format!("handle{number}"))
    }
}

fn run_info() -> RunInfo {
    let meter = Meter::Counter { range_uj: 262_143_328_850, unit_uj: 61, max_watts: 1_000 };
    let domain = |name: &str| Domain::new(name, Some(0), "powercap", Label::Measured, meter);
    RunInfo {
        run_id: "hour-20260301T120000-1".into(),
        host: "hour".into(),
        started: UnixMicros(STARTED),
        version: env!("CARGO_PKG_VERSION").into(),
        command_line: vec!["joular-bpf".into(), "--comm".into(), "java".into()],
        sampling_event: "cpu-clock".into(),
        frequency_hz: HZ as u32,
        interval_ns: SECOND,
        energy_source: "powercap".into(),
        domains: vec![domain("package"), domain("dram")],
        profiler_pid: Pid(99),
        online_cpus: CPUS,
        sockets: 1,
        ..RunInfo::default()
    }
}

/// What ran in a window; new stacks go to `events` before it.
fn window(index: u64, jvms: &mut [Jvm], noise: &mut Noise, events: &mut Vec<Event>) -> Window {
    let (mut threads, mut samples) = (Vec::new(), Vec::new());
    for jvm in jvms.iter_mut() {
        // Load comes in waves, different ones for each.
        let wave = 1 + (index / 60 + 7 * jvm.number) % 5;
        for _ in 0..2 + noise.below(6) {
            let (tid, comm) = jvm.threads[noise.zipf(jvm.threads.len() as u64) as usize];
            if threads.iter().any(|time: &ThreadTime| time.tid == tid) {
                continue;
            }
            let cpu_ns = 1_000_000 + noise.below(38_000_000) * wave;
            let count = ((cpu_ns * HZ + noise.below(SECOND)) / SECOND) as u32;
            let start_boottime_ns = 51 * SECOND;
            let key = ThreadKey::new(tid.0, start_boottime_ns, Place::new(0, 0)).0;
            for _ in 0..count {
                let user_stack = jvm.stack(noise.zipf(jvm.stacks.len() as u64) as usize, events);
                let seen =
                    samples.iter_mut().find(|seen: &&mut SampleCount| seen.tid == tid && seen.user_stack == user_stack);
                match seen {
                    Some(seen) => seen.count += 1,
                    None => samples.push(SampleCount {
                        tid,
                        pid: jvm.pid(),
                        thread_key: key,
                        user_stack,
                        count: 1,
                        ..SampleCount::default()
                    }),
                }
            }
            let mut name = [0; 16];
            name.iter_mut().zip(comm.bytes()).for_each(|(to, from)| *to = from);
            threads.push(ThreadTime {
                tid,
                pid: jvm.pid(),
                socket: 0,
                core: 0,
                start_boottime_ns,
                is_kernel: false,
                comm: name,
                cpu_ns,
                corun_ns: cpu_ns / 5,
                cycles: 0,
                samples: count,
                switches: 1 + noise.below(300) as u32,
            });
        }
    }
    Window {
        index,
        start: MonotonicNs(index * SECOND),
        end: MonotonicNs((index + 1) * SECOND),
        wall_start: UnixMicros(STARTED + (index * 1_000_000).cast_signed()),
        cpus: cpus(threads.iter().map(|time| time.cpu_ns).sum()),
        threads,
        samples,
        losses: Vec::new(),
    }
}

/// CPUs that were busy for as long as the threads ran.
fn cpus(busy_ns: u64) -> Vec<CpuTimes> {
    let count = u64::from(CPUS);
    let cpu = |cpu: u32| {
        let busy_ns = busy_ns / count + if cpu == 0 { busy_ns % count } else { 0 };
        CpuTimes { cpu, busy_ns, idle_ns: SECOND.saturating_sub(busy_ns), switches: 900, ..CpuTimes::default() }
    };
    (0..CPUS).map(cpu).collect()
}

fn reading(second: u64, counters: [u64; 2]) -> Event {
    let readings = counters.map(Reading::CounterUj).to_vec();
    Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND + 40_000), readings })
}

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().context("usage: record_hour FILE.jrec [SECONDS [STACKS]]")?;
    let mut count = |default| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let (seconds, stacks) = (count(3_600)?, count(STACKS)?);
    let file = File::create(&path).with_context(|| format!("creating {path}"))?;
    let mut recording = RecordingWriter::new(BufWriter::new(file))?;
    let mut noise = Noise(0);
    let mut jvms: Vec<Jvm> = (0..JVMS).map(|number| Jvm::new(number, stacks / JVMS, &mut noise)).collect();
    recording.write(&Event::RunStarted(Box::new(run_info())))?;
    for jvm in &jvms {
        recording.write(&Event::Process(Box::new(jvm.info())))?;
        recording.write(&jvm.symbols())?;
    }
    let mut counters = [1_000_000, 2_000_000];
    recording.write(&reading(0, counters))?;
    for index in 0..seconds {
        let mut events = Vec::new();
        let window = window(index, &mut jvms, &mut noise, &mut events);
        let busy_us: u64 = window.threads.iter().map(|time| time.cpu_ns / 1000).sum();
        // Watts: 12 when idle and 9 for each busy CPU; memory 2 to 3.
        counters[0] += 12_000_000 + 9 * busy_us + noise.below(300_000);
        counters[1] += 2_000_000 + noise.below(1_000_000);
        events.push(reading(index + 1, counters));
        events.push(Event::Window(Box::new(window)));
        events.iter().try_for_each(|event| recording.write(event))?;
    }
    let ended = UnixMicros(STARTED + (seconds * 1_000_000).cast_signed());
    recording.write(&Event::RunEnded(RunEnd { ended, reason: "duration".into() }))?;
    recording.finish()?.flush().with_context(|| format!("writing {path}"))
}
