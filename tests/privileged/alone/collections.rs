//! Tests what `--alloc` says of garbage collections: which there were, and which paths are charged for them.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    clock::wait_for,
    dataset::{DataSet, float, text},
    java::{Collector, Jdk, Jvm, Workload},
    notes,
    profiler::{END, Output, Run},
    truths::collections::{METHODS, check},
};
use rustix::process::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

/// The program, each of whose methods is compiled by itself, in a heap that it fills again and again.
fn collecting(jdk: &Jdk) -> Workload {
    METHODS
        .iter()
        .fold(Workload::new("Collections").jdk(jdk).flag("-Xmx160m"), |workload, method| workload.dont_inline(method))
}

/// What a program says when it has allocated in this way.
fn collected(jvm: &mut Jvm, how: &str) -> Result<Value> {
    let before = jvm.records().len();
    jvm.say(how)?;
    wait_for("a program to allocate", LIMIT, || Ok(jvm.records().get(before).cloned()))
}

/// Records programs while each allocates in this way, one after the other, so many times; returns what they say at last.
fn record(output: &Output, jvms: &mut [(Collector, Jvm)], how: &str, times: u32) -> Result<Vec<Value>> {
    let run = Run::modelled().with("--interval", "500ms").argument("--json").argument("--alloc").output(output.dir());
    let run = jvms.iter().fold(run, |run, (_, jvm)| run.pid(jvm.pid()));
    let mut profiler = run.start()?;
    // By then each JVM is known and has its probes.
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    for _ in 1..times {
        jvms.iter_mut().try_for_each(|(_, jvm)| collected(jvm, how).map(drop))?;
    }
    let told = jvms.iter_mut().map(|(_, jvm)| collected(jvm, how)).collect::<Result<_>>()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    Ok(told)
}

#[test]
fn collections_are_those_that_java_counts_and_all_their_energy_is_charged_across_jdks_and_collectors() -> Result<()> {
    for pairs in Jdk::pairs()?.chunk_by(|(first, _), (second, _)| first.version == second.version) {
        repeat_once(|measures| expect_those_of_java(pairs, measures))?;
    }
    Ok(())
}

fn expect_those_of_java(pairs: &[(&Jdk, Collector)], measures: u32) -> Result<()> {
    let output = Output::new()?;
    let mut jvms = Vec::new();
    for (jdk, collector) in pairs {
        jvms.push((*collector, collecting(jdk).flag(&collector.flag()).start()?));
    }
    let told = record(&output, &mut jvms, "ratio", measures)?;
    for (((collector, jvm), told), (jdk, _)) in jvms.iter().zip(&told).zip(pairs) {
        check(&output.data, jvm.pid(), told, &format!("{jdk} {collector}"))?;
    }
    Ok(())
}

/// What each method is charged, in microjoules, by what was allocated and by what survived, and samples that tell it.
fn charged(data: &DataSet) -> Result<BTreeMap<String, [f64; 3]>> {
    let rows = data.rows(
        "WITH named AS (SELECT DISTINCT ON (stack_id) stack_id, frames[-1].class || '.' || frames[-1].method AS method FROM stacks),
           charged AS (SELECT method, sum(gc_charged_uj)::DOUBLE AS allocated,
               sum(gc_charged_by_survival_uj)::DOUBLE AS survived
             FROM gc_charges JOIN named USING (stack_id) GROUP BY 1),
           sampled AS (SELECT method, sum(samples)::DOUBLE AS samples FROM allocations JOIN named USING (stack_id) GROUP BY 1)
         SELECT * FROM charged JOIN sampled USING (method)",
    )?;
    let row = |row: &Value| {
        Ok((
            text(row, "method")?.to_owned(),
            [float(row, "allocated")?, float(row, "survived")?, float(row, "samples")?],
        ))
    };
    rows.iter().map(row).collect()
}

/// The share of the first method in what both are charged, and the samples of both.
fn share(charged: &BTreeMap<String, [f64; 3]>, figure: usize) -> Result<(f64, f64)> {
    let of = |method: &str| charged.get(method).copied().with_context(|| format!("no {method} in {charged:?}"));
    let [first, second] = [of(METHODS[0])?, of(METHODS[1])?];
    Ok((first[figure] / (first[figure] + second[figure]), first[2] + second[2]))
}

/// Serial, Parallel and G1 do, and show what survives.
fn moves(collector: Collector) -> bool {
    !matches!(collector, Collector::Z | Collector::Shenandoah)
}

#[test]
fn methods_that_allocate_three_to_one_are_charged_so_across_jdks_where_all_lives_equally_long() -> Result<()> {
    let mut pairs = Jdk::pairs()?.into_iter().filter(|(jdk, _)| jdk.release >= 21);
    pairs.try_for_each(|(jdk, collector)| repeat_once(|measures| expect_three_to_one(jdk, collector, measures)))
}

fn expect_three_to_one(jdk: &Jdk, collector: Collector, measures: u32) -> Result<()> {
    let output = Output::new()?;
    let mut jvms = [(collector, collecting(jdk).flag(&collector.flag()).start()?)];
    record(&output, &mut jvms, "ratio", measures)?;
    let charged = charged(&output.data)?;
    let figures: &[usize] = if moves(collector) { &[0, 1] } else { &[0] };
    for figure in figures {
        let (share, samples) = share(&charged, *figure)?;
        notes::figure(&format!("{collector}: {share:.3} by figure {figure}, {samples} samples"));
        // Energy differs from window to window, so that some samples count more than others.
        let deviation = 2.0 * (0.75 * 0.25 / samples).sqrt();
        ensure!((share - 0.75).abs() <= 5.0 * deviation, "{collector}: {share} ± {deviation}: {charged:?}");
    }
    Ok(())
}

#[test]
fn of_methods_that_allocate_alike_the_one_whose_objects_live_is_charged_for_survivors_across_jdks() -> Result<()> {
    let mut pairs = Jdk::pairs()?.into_iter().filter(|(_, collector)| moves(*collector));
    pairs.try_for_each(|(jdk, collector)| repeat_once(|measures| expect_survivors(jdk, collector, measures)))
}

fn expect_survivors(jdk: &Jdk, collector: Collector, measures: u32) -> Result<()> {
    let output = Output::new()?;
    let mut jvms = [(collector, collecting(jdk).flag(&collector.flag()).start()?)];
    record(&output, &mut jvms, "lifetimes", measures)?;
    let charged = charged(&output.data)?;
    let ((allocated, samples), (survived, _)) = (share(&charged, 0)?, share(&charged, 1)?);
    notes::figure(&format!("{jdk} {collector}: {allocated:.3} by allocation, {survived:.3} by survival"));
    let deviation = 2.0 * (0.5 * 0.5 / samples).sqrt();
    ensure!((allocated - 0.5).abs() <= 5.0 * deviation, "{jdk} {collector}: {allocated} ± {deviation}: {charged:?}");
    ensure!(survived > 0.95, "{jdk} {collector}: {survived}: {charged:?}");
    Ok(())
}
