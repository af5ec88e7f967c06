//! Judges a long run: by its memory, by what it let go, and by what it recorded.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::{DataSet, float},
    notes,
    process::Finished,
    profiler::{Profiler, Run},
    statistics::{RARE_SIGMAS, median},
};
use serde_json::Value;

use super::{
    churn::Came,
    look::{self, Look},
};

/// A run lets files go 10 s after their process has ended. A busy machine may let it do so later.
const RELEASED: Duration = Duration::from_secs(15);
/// It reads thousands of files.
const AUDITED: Duration = Duration::from_secs(600);

/// How notices end or go on that name who had too much.
const TOO_MUCH: [&str; 3] = ["share of the ring buffer", "more collections than", "more than "];
/// A run names no more processes than that.
const MOST_NAMED: usize = 64;
const WHOLE: f64 = 0.995;
/// Windows after which a JVM has been read.
const GROWN: u32 = 2;

/// By which the memory of the last third may exceed that of the middle one.
const GROWTH: f64 = 0.05;
/// Until then, tables fill that have a bound, and the largest moment is still to come: a shorter run is not
/// judged by its memory.
const SETTLED: Duration = Duration::from_secs(9 * 60);

/// What a run of seconds and one of hours has room for alike: the kernel's maps are sized for more
/// than comes in a window here.
const NEVER: [&str; 7] = [
    "lost_thread_map_full",
    "lost_sample_map_full",
    "lost_stack_ring_full",
    "lost_lifecycle_ring_full",
    "lost_known_stacks_full",
    "lost_allocation_map_full",
    "lost_collection_ring_full",
];

pub fn flat(looks: &[Look]) -> Result<()> {
    let third = looks.len() / 3;
    let medians = |looks: &[Look]| {
        let of = |value: fn(&Look) -> u64| median(&looks.iter().map(|look| value(look) as f64).collect::<Vec<_>>());
        (of(|look| look.own_kib), of(|look| look.threads))
    };
    let (before_kib, threads_before) = medians(&looks[third..2 * third]);
    let (after_kib, threads_after) = medians(&looks[2 * third..]);
    notes::figure(&format!("soak: {before_kib} KiB of its own in the middle third, {after_kib} KiB in the last"));
    let has_settled = looks.get(third).is_some_and(|look| look.at >= SETTLED);
    ensure!(
        !has_settled || after_kib <= before_kib * (1.0 + GROWTH),
        "memory grew from {before_kib} to {after_kib} KiB"
    );
    // One more may be reading a file.
    ensure!(threads_after <= threads_before + 1.0, "threads grew from {threads_before} to {threads_after}");
    Ok(())
}

/// Nothing of what has ended is held, and all else is as it was at the beginning.
pub fn released(profiler: &Profiler, first: &Look, files: &BTreeSet<PathBuf>, length: Duration) -> Result<()> {
    let pid = profiler.pid();
    let released = wait_for("what is gone to be let go", RELEASED, || {
        let is_released = look::gone(pid, files)?.is_empty() && Look::at(length, pid)?.threads <= first.threads;
        Ok(is_released.then_some(()))
    });
    released.with_context(|| format!("{} threads; open: {:?}", first.threads, look::gone(pid, files)))?;
    let last = Look::at(length, pid)?;
    notes::figure(&format!("soak: after all has ended: {last}"));
    ensure!(last.lasting() == first.lasting(), "descriptors: {:?}, then {:?}", first.lasting(), last.lasting());
    let objects = |look: &Look| (look.programs, look.maps, look.links);
    ensure!(objects(&last) == objects(first), "eBPF objects: {:?}, then {:?}", objects(first), objects(&last));
    Ok(())
}

pub fn nothing_lost(data: &DataSet) -> Result<()> {
    let losses = data.losses()?;
    ensure!(NEVER.iter().all(|name| losses.contains_key(*name)), "other columns: {losses:?}");
    let lost: Vec<_> = losses.iter().filter(|(_, count)| **count != 0).collect();
    notes::figure(&format!("soak: losses: {lost:?}"));
    let never = NEVER.join(" + ");
    data.expect_none(
        "windows that lost what there is room for",
        &format!(
            "SELECT DISTINCT window_index, window_ns, switches, cpu_unslotted_ns, cpu_busy_ns, cpu_idle_ns, {0}
             FROM windows WHERE {never} > 0 ORDER BY 1",
            NEVER.join(", ")
        ),
    )
}

/// The data set has every JVM, all of the time in order, and every microjoule.
pub fn whole(data: &DataSet, came: &Came, length_ns: u64) -> Result<()> {
    let audit = Run::new().argument("audit").argument(data.dir()).finish(AUDITED)?;
    notes::figure(&format!("soak: audit: {}", audit.stdout.lines().last().unwrap_or_default()));
    ensure!(audit.code() == Some(0) && audit.stdout.contains("every microjoule is accounted for"), "{audit:?}");
    let seen = data.rows("SELECT DISTINCT pid FROM threads")?;
    let seen: BTreeSet<_> = seen.iter().filter_map(|row| row["pid"].as_u64()).collect();
    let missing: Vec<_> = came.pids.iter().filter(|pid| !seen.contains(&u64::from(**pid))).collect();
    ensure!(missing.is_empty(), "without a row: JVMs {missing:?}");
    let windows = "SELECT DISTINCT window_start, window_ns, window_index FROM windows";
    let recorded_ns = data.number(&format!("SELECT sum(window_ns)::DOUBLE FROM ({windows})"))?;
    #[allow(clippy::cast_precision_loss, reason = "nanoseconds of an hour")]
    let length_ns = length_ns as f64;
    ensure!(recorded_ns >= length_ns, "{recorded_ns} ns in windows, {length_ns} ns of churn");
    data.expect_none(
        "windows that begin before those before them",
        &format!(
            "WITH pairs AS (SELECT *, lead(window_start) OVER (ORDER BY window_index) AS next FROM ({windows}))
             SELECT * FROM pairs WHERE next <= window_start"
        ),
    )?;
    Ok(())
}

/// Stacks of Java threads of some processes, by the age that their process had, in windows: how they end, and how many are
/// whole. Frames may lack names: those of a JVM that was killed before they were asked for.
fn stacks(data: &DataSet, processes: &str) -> Result<Vec<Value>> {
    data.rows(&format!(
        "WITH aged AS (SELECT *, least(window_index - min(window_index) OVER (PARTITION BY pid, process_start), {GROWN}) AS age
           FROM quality JOIN (SELECT DISTINCT window_start, window_index FROM windows) USING (window_start)
           WHERE pid {processes})
         SELECT age::DOUBLE AS age, coalesce(walk_end, '') || ' ' || coalesce(unnamed, '') AS ending,
           sum(samples)::DOUBLE AS samples,
           coalesce(is_complete, false)::DOUBLE AS whole
         FROM aged WHERE category = 'java' GROUP BY ALL ORDER BY ALL"
    ))
}

/// What hostile targets do takes nothing from the stacks of others; nor do tens of thousands of mappings. Only JVMs that
/// this test started are judged: somebody else's may have stacks that cannot be whole.
pub fn whole_stacks(data: &DataSet, came: &Came, steady: &[u32], mapped: u32) -> Result<()> {
    let honest = came.pids.iter().chain(steady).filter(|pid| **pid != mapped && !came.hostile.contains(pid));
    let honest: Vec<String> = honest.map(u32::to_string).collect();
    let cases = [("of others", format!("IN ({})", honest.join(", "))), ("of many mappings", format!("= {mapped}"))];
    for (of, processes) in cases {
        let stacks = stacks(data, &processes)?;
        let sum = |counts: fn(&Value) -> bool| {
            let samples = stacks.iter().filter(|row| counts(row)).map(|row| float(row, "samples"));
            samples.sum::<Result<f64>>()
        };
        let (all, grown) = (sum(|_| true)?, sum(|row| row["age"] == f64::from(GROWN))?);
        let whole = sum(|row| row["whole"] == 1.0)?;
        let whole_grown = sum(|row| row["whole"] == 1.0 && row["age"] == f64::from(GROWN))?;
        notes::figure(&format!(
            "soak: {:.2} % of the {all} stacks of Java threads {of} are whole, {:.2} % of the {grown} of JVMs that had been \
             there for {GROWN} windows: {stacks:?}",
            100.0 * whole / all,
            100.0 * whole_grown / grown
        ));
        let error = RARE_SIGMAS * (WHOLE * (1.0 - WHOLE) / grown).sqrt();
        let is_whole = whole_grown / grown >= WHOLE - error;
        ensure!(grown > 100.0 && is_whole, "{of}: {whole_grown} of {grown} stacks are whole");
    }
    Ok(())
}

/// What was lost because a process told of too much, or had too much, is named, and was a hostile one's.
pub fn named(data: &DataSet, finished: &Finished, came: &Came) -> Result<()> {
    let lines = finished.stderr.lines().filter(|line| TOO_MUCH.iter().any(|text| line.contains(text)));
    let named: BTreeSet<u32> = lines.clone().filter_map(process_of).collect();
    let lost = data.number(
        "SELECT coalesce(sum(lost), 0)::DOUBLE
         FROM (SELECT DISTINCT window_start, lost_ring_share_used AS lost FROM windows)",
    )?;
    let said = finished.stderr.lines().filter(|line| line.contains("lost")).collect::<Vec<_>>();
    notes::figure(&format!("soak: {lost} lost of shares of the ring, {} processes named; {said:?}", named.len()));
    let others: Vec<_> =
        lines.filter(|line| process_of(line).is_some_and(|pid| !came.hostile.contains(&pid))).collect();
    ensure!(others.is_empty(), "lost of honest processes: {others:?}");
    let unnamed: Vec<_> = came.floods.difference(&named).collect();
    ensure!(unnamed.is_empty() || named.len() >= MOST_NAMED, "told too much and are not named: {unnamed:?}");
    ensure!(came.floods.is_empty() == (lost == 0.0), "{lost} lost of shares of the ring: {:?}", came.floods);
    Ok(())
}

/// The process that a notice names.
fn process_of(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("process ")?;
    rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}
