//! Measures how much is seen of stacks, on each release of Java, and how soon.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    java::{Jdk, Workload},
    known::{self, CallLines, Report, Root},
    profiler::{END, Output, Run},
};

use super::figure::Figure;
use crate::shell;

const STARTS: usize = 6;
const RUNS: usize = 3;

/// Windows short enough to tell when in a second something was seen.
const FINE: &str = "100ms";
const LIFE: Duration = Duration::from_secs(4);

const RECORDED_SECONDS: f64 = 6.0;
const LIMIT: Duration = Duration::from_secs(30);

pub fn measure() -> Result<Vec<Figure>> {
    let mut figures = vec![first_stack()?];
    for jdk in Jdk::pinned()? {
        figures.extend(of_jdk(jdk)?);
    }
    Ok(figures)
}

/// Time from the start of a JVM to the end of the first window with a whole stack of it that has a
/// method of its program.
fn first_stack() -> Result<Figure> {
    shell::step("how soon a new JVM's stacks are whole and named");
    let mut values = Vec::new();
    for _ in 0..STARTS {
        let output = Output::new()?;
        let run = Run::new().with("--comm", "java").with("--frequency", "999").with("--interval", FINE);
        let profiler = run.argument("--quiet").output(output.dir()).start()?;
        let jvm = Workload::new("Busy").argument("seconds=60").start()?;
        thread::sleep(LIFE);
        profiler.stop()?;
        let seconds = output.data.number(&format!(
            "SELECT min(epoch_us(window_start) + window_ns // 1000 - epoch_us(process_start))::DOUBLE / 1e6
             FROM branches WHERE pid = {} AND samples > 0 AND stack_id IN (
                 SELECT stack_id FROM stacks
                 WHERE len(list_filter(frames, lambda f: f.class = 'Busy')) > 0
                   AND len(list_filter(frames, lambda f: f.kind = 'marker')) = 0)",
            jvm.pid()
        ));
        values.push(seconds.context("no whole stack of the JVM was seen")?);
    }
    Ok(Figure {
        name: "first whole stack of a new JVM".to_owned(),
        unit: "s",
        target: "≤ 1 s",
        method: format!(
            "from the start of its process, including the JVM's own start, to the end of the first window ({FINE}) with a \
             stack that reaches the root and contains a method of the program"
        ),
        values,
        digits: 2,
    })
}

/// The workloads of known call paths, all at once.
fn of_jdk(jdk: &Jdk) -> Result<[Figure; 3]> {
    shell::step(&format!("stacks of known call paths on JDK {jdk}"));
    let lines = CallLines::read()?;
    let (mut rate, mut right, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let output = Output::new()?;
        let jvm = known::workload().jdk(jdk).start()?;
        let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999").argument("--quiet");
        run.with("--duration", format!("{RECORDED_SECONDS}s")).output(output.dir()).finish(LIMIT + END)?;
        let stacks = known::stacks(&output.data, jvm.pid())?;
        let total = Report::of(jdk.to_string(), &stacks, &lines, Root::Native).total();
        rate.push(total.frames / RECORDED_SECONDS / 1e3);
        right.push(100.0 * total.right() / total.samples());
        unresolved.push(100.0 * total.unresolved / total.frames);
    }
    let figure = |what: &str, unit, target, digits, values, method: &str| Figure {
        name: format!("{what}, JDK {}", jdk.release),
        unit,
        target,
        method: method.to_owned(),
        values,
        digits,
    };
    Ok([
        figure(
            "right stacks",
            "%",
            "≥ 99.5 %",
            2,
            right,
            "samples of threads whose call paths are known: the stack is whole, no frame is missing or wrong, and each line is \
             that of the call",
        ),
        figure(
            "unresolved frames",
            "%",
            "≤ 0.5 %",
            3,
            unresolved,
            "share of markers among the frames of the same samples",
        ),
        figure(
            "frames",
            "thousand/s",
            "none",
            0,
            rate,
            "frames of the same samples per second, at 999 Hz on every CPU",
        ),
    ])
}
