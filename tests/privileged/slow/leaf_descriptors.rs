//! Tests which of a compiler's descriptors speaks for interrupted code: the first one at or above
//! its address, or the last one below.
//!
//! A method and another one that is inlined into it burn known parts of the time. The places where
//! samples found it are looked up both ways; the workload knows which is right.

use std::{collections::HashMap, fs::File, path::Path};

use anyhow::Result;
use joular_data::{
    events::{Event, recording::RecordingReader},
    model::units::Pid,
};
use joular_ebpf::abi::{FrameRef, FrameWord};
use joular_tests::java::Jdk;
use joular_user::runtimes::hotspot::{jvm::Jvm, nmethod::LookUp};

use super::inlined_split::{Described, Recorded, expect_within_3_sigma};
use crate::capture;

/// Samples in `outer` itself, and in what was inlined into it.
#[derive(Debug)]
pub struct Leaves {
    /// Looked up at or above, and as the last below.
    pub ways: [(f64, f64); 2],
}

impl Leaves {
    /// Of a recording, while the JVM is still there.
    pub fn read(recording: &Path, pid: u32) -> Result<Self> {
        let places = LeafSamples::of(recording, pid)?;
        let mut jvm = capture::attach(pid)?;
        let ways = [LookUp::AtOrAbove, LookUp::LastBelow];
        Ok(Self { ways: ways.map(|look_up| places.split(&mut jvm, look_up)) })
    }
}

/// What samples found, by the place in compiled code that was interrupted.
pub struct LeafSamples {
    pub samples: HashMap<FrameWord, u64>,
}

impl LeafSamples {
    pub fn of(recording: &Path, pid: u32) -> Result<Self> {
        let mut leaves = HashMap::new();
        let mut places = Self { samples: HashMap::new() };
        for event in RecordingReader::new(File::open(recording)?)? {
            match event? {
                Event::Stack(stack) if !stack.is_kernel => {
                    leaves.insert(stack.id, stack.frames.first().map(|address| FrameWord(address.0)));
                }
                Event::Window(window) => {
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

    fn split(&self, jvm: &mut Jvm, look_up: LookUp) -> (f64, f64) {
        jvm.set_leaf_look_up(look_up);
        let (mut outer, mut inlined) = (0, 0);
        for (word, count) in &self.samples {
            match jvm.resolve_all(&[*word]).concat().last().map(|frame| frame.method().into_raw()).as_deref() {
                Some("InlinedSplit.outer") => outer += count,
                Some("InlinedSplit.inlined") => inlined += count,
                _ => {}
            }
        }
        (outer as f64, inlined as f64)
    }
}

/// By default there is a descriptor for places only where threads can be stopped: the
/// loop that is inlined has one, at its end. The last one below is of the other loop.
/// The few instructions behind it count as the next one's either way, so at or above
/// may be off as well here, but by far less.
#[test]
fn the_first_descriptor_at_or_above_is_right_and_the_last_below_is_not() -> Result<()> {
    for jdk in Jdk::pinned()? {
        let looked_up = Recorded::first(jdk, Described::Safepoints)?.looked_up();
        let [at_or_above, last_below] = looked_up.map(|share| share.distance());
        assert!(last_below > 3.0, "{jdk}: {last_below:.1} σ: this code does not tell them apart");
        assert!(at_or_above < last_below / 3.0, "{jdk}: {at_or_above:.1} σ, last below {last_below:.1} σ");
    }
    Ok(())
}

/// With many more, both neighbours of an instruction in a loop are mostly of the same
/// method: this workload does not tell the ways apart, but at or above stays right.
#[test]
fn descriptors_everywhere_leave_the_first_at_or_above_right() -> Result<()> {
    expect_within_3_sigma(Described::Everything, |run| {
        let [at_or_above, ..] = run.looked_up();
        at_or_above
    })
}
