//! Judges whether stacks are right, by workloads whose call paths are known in advance
//! (`tests/fixtures/java/known`).
//!
//! For each scenario a regular language of methods says every path that its thread can be on. A
//! stack is exact if its methods are a word of that language, its frames have the lines of the
//! calls that were made, and it goes on to the thread's native root. Any other stack is either
//! marked as incomplete, which is honest, or wrong.

mod dump;
mod language;
mod lines;
mod report;
mod scenarios;
mod stack;
mod verdict;

pub use dump::thread_dump;
pub use language::Language;
pub use lines::CallLines;
pub use report::{Report, Tally};
pub use scenarios::{SCENARIOS, Scenario, scenario};
pub use stack::{Frame, Stack, stacks};
pub use verdict::{Root, Verdict, judge};

use crate::java::Workload;

/// All scenarios that a JVM can run, one thread each.
pub fn workload() -> Workload {
    // One carrier, whose name is known.
    let one_carrier = ["parallelism", "maxPoolSize"].map(|name| format!("-Djdk.virtualThreadScheduler.{name}=1"));
    // Deep enough for dumps of the deepest recursion.
    Workload::new("known.Main").flag(&one_carrier[0]).flag(&one_carrier[1]).flag("-XX:MaxJavaStackTraceDepth=1100")
}
