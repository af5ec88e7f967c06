//! Tests two methods whose shares the workload itself measures: the profiler must report the same,
//! within what sampling allows.

use std::time::Duration;

use anyhow::Result;
use joular_tests::{
    chance::repeat_once,
    java::Workload,
    profiler::{END, Output, Run},
    truths::split,
};

const RECORDED: Duration = Duration::from_secs(10);

#[test]
fn shares_of_two_methods_are_those_measured_inside_the_workload() -> Result<()> {
    repeat_once(two_methods)
}

fn two_methods(measures: u32) -> Result<()> {
    let output = Output::new()?;
    let workload = Workload::new("Split").frame_pointers().argument("seconds=120");
    let jvm = workload.dont_inline("Split::heavy").dont_inline("Split::light").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999");
    let run = run.with("--duration", format!("{}s", (measures * RECORDED).as_secs()));
    let finished = run.output(output.dir()).finish(measures * RECORDED + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");

    split::check(&output.data, &jvm.records(), 6_600.0, "two methods")
}
