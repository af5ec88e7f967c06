//! Which of a compiler's descriptors speaks for interrupted code: the first one at or
//! above its address, or the last one below?
//!
//! A method and another one that is inlined into it burn known parts of the time. The
//! places where samples found it are looked up both ways; the workload knows which
//! is right.

use std::{collections::HashMap, fmt::Write as _, fs::File, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_data::{
    events::{Event, recording::RecordingReader},
    model::units::Pid,
};
use joular_ebpf::abi::{FrameRef, FrameWord};
use joular_tests::{
    java::Jdk,
    profiler::{END, Run},
};
use joular_user::runtimes::hotspot::{jvm::Jvm, nmethod::LookUp};

use crate::{inlined_split, jvm_images};

const RECORDED: &str = "10s";
const LIMIT: Duration = Duration::from_secs(15);
const EVERYWHERE: [&str; 2] = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];

/// What samples found, by the place in compiled code that was interrupted.
struct Places {
    samples: HashMap<FrameWord, u64>,
    start_us: f64,
    end_us: f64,
}

impl Places {
    fn read(recording: File, pid: u32) -> Result<Self> {
        let mut leaves = HashMap::new();
        let mut places = Self { samples: HashMap::new(), start_us: f64::MAX, end_us: 0.0 };
        for event in RecordingReader::new(recording)? {
            match event? {
                Event::Stack(stack) if !stack.is_kernel => {
                    leaves.insert(stack.id, stack.frames.first().map(|address| FrameWord(address.0)));
                }
                Event::Window(window) => {
                    let start = window.wall_start.0 as f64;
                    places.start_us = places.start_us.min(start);
                    places.end_us = start + (window.end.0 - window.start.0) as f64 / 1e3;
                    for sample in window.samples.iter().filter(|sample| sample.pid == Pid(pid)) {
                        let leaf = leaves.get(&sample.user_stack).copied().flatten();
                        let is_compiled = |word: &FrameWord| matches!(word.decode(), FrameRef::CompiledAt { .. });
                        if let Some(word) = leaf.filter(is_compiled) {
                            *places.samples.entry(word).or_default() += u64::from(sample.count);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(places)
    }

    /// Samples in `outer` itself, and in what was inlined into it.
    fn split(&self, jvm: &mut Jvm, look_up: LookUp) -> (f64, f64) {
        jvm.set_leaf_look_up(look_up);
        let (mut outer, mut inlined) = (0, 0);
        for (word, count) in &self.samples {
            match jvm.resolve(*word).last().map(|frame| frame.method()).as_deref() {
                Some("InlinedSplit.outer") => outer += count,
                Some("InlinedSplit.inlined") => inlined += count,
                _ => {}
            }
        }
        (outer as f64, inlined as f64)
    }
}

/// For each way, how many σ its split is off what the workload measured.
fn distances(jdk: &Jdk, flags: &[&str]) -> Result<[f64; 3]> {
    let dir = tempfile::tempdir()?;
    let recording = dir.path().join("leaves.jrec");
    let jvm = inlined_split::start(jdk, flags)?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999").with("--duration", RECORDED);
    let run = run.argument("--quiet").argument("--no-output").with("--record", &recording);
    let finished = run.finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let places = Places::read(File::open(&recording)?, jvm.pid())?;
    let expected = inlined_split::measured_share(&jvm, places.start_us, places.end_us)?;
    let mut attached = jvm_images::attach(jvm.pid())?;
    let mut report = format!("{jdk} {flags:?}: {} places, outer measured {expected:.4}:", places.samples.len());
    let distances = [LookUp::AtOrAbove, LookUp::Above, LookUp::LastBelow].map(|look_up| {
        let (outer, inlined) = places.split(&mut attached, look_up);
        let samples = outer + inlined;
        let sigma = (expected * (1.0 - expected) / samples).sqrt();
        let distance = (outer / samples - expected).abs() / sigma;
        let _ = write!(report, " {look_up:?} {:.4} of {samples} ({distance:.1} σ)", outer / samples);
        distance
    });
    println!("{report}");
    Ok(distances)
}

/// By default there is a descriptor for places only where threads can be stopped: the
/// loop that is inlined has one, at its end. The last one below is of the other loop.
/// The few instructions behind it count as the next one's either way, so at or above
/// may be off as well here, but by far less.
#[test]
fn the_first_descriptor_at_or_above_is_right_and_the_last_below_is_not() -> Result<()> {
    for jdk in Jdk::pinned()? {
        let [at_or_above, _, last_below] = distances(jdk, &[]).with_context(|| jdk.to_string())?;
        assert!(last_below > 3.0, "{jdk}: {last_below:.1} σ: this code does not tell them apart");
        assert!(at_or_above < last_below / 3.0, "{jdk}: {at_or_above:.1} σ, last below {last_below:.1} σ");
    }
    Ok(())
}

/// With many more, both neighbours of an instruction in a loop are mostly of the same
/// method: this workload does not tell the ways apart, but at or above stays right.
#[test]
fn descriptors_everywhere_leave_the_first_at_or_above_right() -> Result<()> {
    for jdk in Jdk::pinned()? {
        let [at_or_above, ..] = distances(jdk, &EVERYWHERE).with_context(|| jdk.to_string())?;
        assert!(at_or_above <= 3.0, "{jdk}: {at_or_above:.1} σ");
    }
    Ok(())
}
