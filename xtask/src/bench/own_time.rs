//! Finds what the profiler's own time goes to: a second joular-bpf profiles the first one.

use std::time::Duration;

use anyhow::{Result, ensure};
use joular_tests::profiler::{Output, Profiler, Run};

use super::figure::Figure;

const MEASURED: &str = "20s";
const LIMIT: Duration = Duration::from_secs(60);
/// The profiler needs a hundredth of a CPU: at 99 Hz that would be 20 samples.
const FREQUENCY_HZ: &str = "4999";

/// What the time goes to, and a function that is on the stack then. The first one that is counts.
const STAGES: [(&str, &str); 8] = [
    ("reading targets, on threads of their own", "Thread>::new::thread_start"),
    ("taking in new stacks and events", "Run::drain_ring"),
    ("draining the window's counts", "Banks::drain_ended"),
    ("passing the boundary", "Run::pass_boundary"),
    ("naming frames", "SymbolFeed::resolve"),
    ("dividing energy", "Engine::apply"),
    ("writing the data set", "ParquetOutput as joular_data::output::Output"),
    ("all else", ""),
];

/// Profiles the profiler for a while, in its steady state.
pub fn of(profiler: &Profiler, load: &str) -> Result<Vec<Figure>> {
    let output = Output::new()?;
    let run = Run::modelled().pid(profiler.pid()).with("--frequency", FREQUENCY_HZ).with("--duration", MEASURED);
    let finished = run.argument("--quiet").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "profiling the profiler: {finished:?}");
    let samples = (0..STAGES.len()).map(|stage| samples(&output, stage)).collect::<Result<Vec<_>>>()?;
    let all: f64 = samples.iter().sum();
    let stages = STAGES.iter().zip(samples);
    stages
        .map(|((name, function), samples)| {
            // A function that was renamed would be in no stack.
            ensure!(samples > 0.0, "none of {all} stacks has {function}");
            Ok(Figure {
                name: format!("of it {name}, {load}"),
                unit: "%",
                target: "none",
                digits: 0,
                values: vec![100.0 * samples / all],
                method: method(all),
            })
        })
        .collect()
}

/// Samples whose stack has this stage's function, and none of the stages before it.
fn samples(output: &Output, stage: usize) -> Result<f64> {
    let has = |function: &str| format!("contains(folded, '{function}')");
    let before: String = STAGES[..stage].iter().map(|(_, function)| format!(" AND NOT {}", has(function))).collect();
    output.data.number(&format!(
        "SELECT coalesce(sum(samples), 0)::DOUBLE FROM branches
         JOIN (SELECT DISTINCT stack_id, folded FROM stacks) USING (stack_id)
         WHERE {}{before}",
        has(STAGES[stage].1)
    ))
}

fn method(all: f64) -> String {
    let functions: Vec<String> =
        STAGES[..STAGES.len() - 1].iter().map(|(_, function)| format!("`{function}`")).collect();
    format!(
        "by the first of these functions that is on a stack, in this order, or none: {}; of {all} samples that a second \
         joular-bpf took of the first at {FREQUENCY_HZ} Hz in {MEASURED}",
        functions.join(", ")
    )
}
