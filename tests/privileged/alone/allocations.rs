//! Tests `--alloc`: what threads allocate is what their JVM counts, by method and class as the program knows, and a
//! probe is in a JVM's code for as long as it is needed.

use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    clock::wait_for,
    dataset::DataSet,
    java::{Collector, Jdk, Jvm, Workload},
    notes,
    profiler::{END, Output, Run},
    truths::allocations::{self, METHODS, recorded},
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
fn recording(output: &Output, jvms: &[&Jvm]) -> Run {
    let run = Run::modelled().with("--interval", "500ms").argument("--json").output(output.dir());
    jvms.iter().fold(run, |run, jvm| run.pid(jvm.pid()))
}

/// The program, each of whose methods is compiled by itself.
fn allocating(jdk: &Jdk) -> Workload {
    let methods = METHODS.iter().map(|(_, method, _)| method);
    methods.fold(Workload::new("Allocations").jdk(jdk), |workload, method| workload.dont_inline(method))
}

/// What a program says when it has allocated what it was told to.
fn allocated(jvm: &mut Jvm) -> Result<Value> {
    told(jvm, "go")
}

fn told(jvm: &mut Jvm, how: &str) -> Result<Value> {
    let before = jvm.records().len();
    jvm.say(how)?;
    wait_for("a program to allocate", LIMIT, || Ok(jvm.records().get(before).cloned()))
}

/// Compares one program's account with what was recorded of it.
fn check(data: &DataSet, jvm: &Jvm, told: &[Value], of: &str) -> Result<()> {
    allocations::check(data, jvm.pid(), told, of)
}

#[test]
fn bytes_and_classes_are_the_programs_across_jdks_and_collectors() -> Result<()> {
    for pairs in Jdk::pairs()?.chunk_by(|(first, _), (second, _)| first.version == second.version) {
        repeat_once(|measures| expect_the_programs(pairs, measures))?;
    }
    Ok(())
}

fn expect_the_programs(pairs: &[(&Jdk, Collector)], measures: u32) -> Result<()> {
    let output = Output::new()?;
    let mut jvms = Vec::new();
    for (jdk, collector) in pairs {
        jvms.push((format!("{jdk} {collector}"), allocating(jdk).flag(&collector.flag()).start()?));
    }
    let targets: Vec<&Jvm> = jvms.iter().map(|(_, jvm)| jvm).collect();
    let mut profiler = recording(&output, &targets).argument("--alloc").start()?;
    // By then each JVM is known and has its probes.
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    let mut told = Vec::new();
    for (_, jvm) in &mut jvms {
        told.push((0..measures).map(|_| allocated(jvm)).collect::<Result<Vec<_>>>()?);
    }
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    jvms.iter().zip(&told).try_for_each(|((of, jvm), told)| check(&output.data, jvm, told, of))
}

/// Bytes in which the code of a JVM's library differs from its file.
fn changed_bytes(jvm: &Jvm) -> Result<usize> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", jvm.pid()))?;
    let code = maps.lines().find(|line| line.contains("r-xp") && line.ends_with("/libjvm.so")).context("its code")?;
    let mut fields = code.split_whitespace();
    let (range, offset) = (fields.next().context("a range")?, fields.nth(1).context("an offset")?);
    let (start, end) = range.split_once('-').context("a range")?;
    let [start, end, offset] = [start, end, offset].map(|number| u64::from_str_radix(number, 16));
    let (start, end, offset) = (start?, end?, offset?);
    let path = code.split_whitespace().next_back().context("a path")?;
    let read = |path: &str, at| -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end - start)?];
        let read = fs::File::open(path)?.read_at(&mut bytes, at)?;
        bytes.truncate(read);
        Ok(bytes)
    };
    let (file, memory) = (read(path, offset)?, read(&format!("/proc/{}/mem", jvm.pid()), start)?);
    Ok(file.iter().zip(&memory).filter(|(file, memory)| file != memory).count())
}

#[test]
fn probes_are_in_a_jvm_only_while_they_are_asked_for_however_that_ends() -> Result<()> {
    let mut jvm = Workload::new("Allocations").start()?;
    let without = Output::new()?;
    let mut profiler = recording(&without, &[&jvm]).start()?;
    profiler.wait_window()?;
    ensure!(changed_bytes(&jvm)? == 0, "it is changed though nothing was asked for");
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    ensure!(!without.dir().join("allocations").exists());
    for end in [Signal::INT, Signal::KILL] {
        let output = Output::new()?;
        let mut profiler = recording(&output, &[&jvm]).argument("--alloc").start()?;
        (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
        ensure!(changed_bytes(&jvm)? == 5, "five probes are five bytes");
        allocated(&mut jvm)?;
        profiler.signal(end)?;
        drop(profiler.finish(END));
        wait_for("the JVM's code to be as it was", END, || Ok((changed_bytes(&jvm)? == 0).then_some(())))?;
        allocated(&mut jvm).with_context(|| format!("after {end:?}"))?;
    }
    Ok(())
}

fn jdk_17() -> Result<&'static Jdk> {
    Jdk::pinned()?.find(|jdk| jdk.release == 17).context("no JDK 17")
}

/// Where copies of JDKs can share files with them.
fn copies() -> Result<TempDir> {
    Ok(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?)
}

/// A copy of a JDK whose files are the original's, but for its libjvm, which a test may change.
fn copied_jdk(jdk: &Jdk, directory: &Path) -> Result<(Jdk, PathBuf)> {
    let home = jdk.java.ancestors().nth(2).context("java is in bin")?;
    let copy = directory.join(jdk.release.to_string());
    ensure!(Command::new("cp").arg("-rl").arg(home).arg(&copy).status()?.success());
    let library = copy.join("lib/server/libjvm.so");
    let own = library.with_extension("own");
    fs::copy(&library, &own)?;
    fs::rename(&own, &library)?;
    Ok((Jdk { java: copy.join("bin/java"), ..jdk.clone() }, library))
}

fn strip(library: &Path) -> Result<()> {
    ensure!(Command::new("strip").arg("--strip-all").arg(library).status()?.success());
    Ok(())
}

#[test]
fn a_jvm_whose_library_is_replaced_while_it_has_probes_goes_on_and_is_recorded_whole() -> Result<()> {
    let directory = copies()?;
    let (jdk, library) = copied_jdk(jdk_17()?, directory.path())?;
    let mut jvm = allocating(&jdk).start()?;
    let output = Output::new()?;
    let mut profiler = recording(&output, &[&jvm]).argument("--alloc").start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    // As package managers do it: another file gets the name.
    let new = library.with_extension("new");
    fs::copy(&library, &new)?;
    fs::rename(&new, &library)?;
    let told = allocated(&mut jvm)?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    check(&output.data, &jvm, &[told], "a JDK that was upgraded")?;
    allocated(&mut jvm).context("after the recording")?;
    Ok(())
}

#[test]
fn functions_of_stripped_jvms_are_found_by_what_their_code_does() -> Result<()> {
    let directory = copies()?;
    for jdk in Jdk::pinned()? {
        let (stripped, library) = copied_jdk(jdk, directory.path())?;
        strip(&library)?;
        let mut jvm = allocating(&stripped).start()?;
        let output = Output::new()?;
        let mut profiler = recording(&output, &[&jvm]).argument("--alloc").start()?;
        (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
        ensure!(changed_bytes(&jvm)? == 5, "{jdk}: it has the probes that others have");
        let allocator = allocated(&mut jvm)?;
        let short = told(&mut jvm, "threads")?;
        (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
        profiler.signal(Signal::INT)?;
        profiler.finish(END)?;
        check(&output.data, &jvm, &[allocator], &format!("stripped {jdk}"))?;
        let found = output.data.number(
            "SELECT sum(allocated_bytes)::DOUBLE FROM allocations WHERE thread_name = 'short' AND sampled_by IS DISTINCT FROM 'cpu-time'",
        )?;
        let expected = short["all"].as_f64().context("all")?;
        notes::figure(&format!("stripped {jdk}: threads that ended: {found} bytes of {expected}"));
        ensure!(
            (expected..expected * 1.01).contains(&found),
            "{jdk}: {found} of {expected} bytes of threads that ended"
        );
    }
    Ok(())
}

/// Changes the name of the flag by which functions are found without symbols, so that they are not.
fn hide_functions(library: &Path) -> Result<()> {
    strip(library)?;
    let mut bytes = fs::read(library)?;
    let name = b"\0DTraceAllocProbes\0";
    let at = bytes.windows(name.len()).position(|window| window == name).context("the flag's name")?;
    bytes[at + 1] = b'd';
    Ok(fs::write(library, bytes)?)
}

#[test]
fn of_a_jvm_whose_functions_are_not_found_bytes_are_known_and_samples_of_cpu_time_tell_where() -> Result<()> {
    let directory = copies()?;
    let (jdk, library) = copied_jdk(jdk_17()?, directory.path())?;
    hide_functions(&library)?;
    let mut jvm = allocating(&jdk).start()?;
    let output = Output::new()?;
    let mut profiler = recording(&output, &[&jvm]).argument("--alloc").start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    ensure!(changed_bytes(&jvm)? == 2, "only its collections can be seen");
    let told = allocated(&mut jvm)?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    let finished = profiler.finish(END)?;
    let found = recorded(&output.data, jvm.pid())?;
    let expected = told["all"].as_f64().context("all")?;
    let all: f64 = found.values().map(|(bytes, _)| bytes).sum();
    ensure!((expected..expected * 1.001).contains(&all), "{all} of {expected}: {found:?}");
    ensure!(found.keys().all(|(_, class)| class.is_empty()), "{found:?}");
    // Time is not a measure of bytes, so no share is expected; but the thread does hardly anything but allocate there.
    let in_methods = METHODS.iter().filter_map(|(_, method, _)| found.get(&((*method).to_owned(), String::new())));
    let share = in_methods.map(|(bytes, _)| bytes).sum::<f64>() / all;
    notes::figure(&format!("functions that are not found: {share:.3} of all bytes are at the methods that allocate"));
    ensure!(share > 0.5, "{share}: {found:?}");
    output.data.expect_none(
        "rows that say of what their samples are",
        "SELECT * FROM allocations WHERE (samples > 0) <> (sampled_by IS NOT NULL) OR sampled_by = 'allocation'",
    )?;
    ensure!(finished.stderr.contains("where it allocates is inferred from samples of CPU time"), "{finished:?}");
    Ok(())
}

/// JVMs that end at the same time.
const ENDING: usize = 16;
const WINDOW: Duration = Duration::from_millis(500);

/// Closing the probes of one takes the kernel about half a second.
#[test]
fn jvms_that_end_together_hold_up_no_window() -> Result<()> {
    let workload = || Workload::new("Busy").flag("-Xmx16m").flag("-XX:+UseSerialGC").argument("rest=200");
    let jvms = (0..ENDING).map(|_| workload().start()).collect::<Result<Vec<_>>>()?;
    let staying = workload().start()?;
    let output = Output::new()?;
    let all: Vec<&Jvm> = jvms.iter().chain([&staying]).collect();
    let mut profiler = recording(&output, &all).argument("--alloc").start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    jvms.iter().try_for_each(|jvm| jvm.signal(Signal::KILL))?;
    drop(jvms);
    (0..6).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    let longest_ns = output.data.number("SELECT max(window_ns) FROM windows")?;
    notes::figure(&format!("{ENDING} JVMs with probes ended at once: no window was longer than {longest_ns} ns"));
    ensure!(longest_ns < 3.0 * WINDOW.as_nanos() as f64, "a window took {longest_ns} ns");
    Ok(())
}
