//! Tests survival where a collector cannot move everything: G1 since JDK 22 leaves a region in place in which native code
//! holds an array, with all that is in it, dead or alive.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::float,
    java::{Jdk, Workload},
    native, notes,
    profiler::{END, Output, Run},
};
use rustix::process::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
/// Releases that pin regions; an earlier one does not collect while an array is held.
const SINCE: u32 = 22;
const METHODS: [&str; 2] = ["Pinned.kept", "Pinned.dropped"];
/// Of which half is kept, less than the program keeps at a time: so all of it outlives its first collection.
const YOUNG: &str = "-Xmn32m";
/// Some of what is held has survived as well, though nobody keeps it.
const LEAST_SHARE: f64 = 0.95;

/// What was recorded of a method's objects: bytes that it allocated, and those of them that outlived a young collection.
#[derive(Clone, Copy, Debug, Default)]
struct Method {
    allocated: f64,
    survived: f64,
}

fn recorded(output: &Output) -> Result<[Method; 2]> {
    let mut found = [Method::default(); 2];
    for (method, found) in METHODS.iter().zip(&mut found) {
        let rows = output.data.rows(&format!(
            "WITH named AS (SELECT DISTINCT ON (stack_id) stack_id, frames[-1].class || '.' || frames[-1].method AS method
               FROM stacks),
               allocated AS (SELECT sum(allocated_bytes)::DOUBLE AS bytes FROM allocations JOIN named USING (stack_id)
                 WHERE method = '{method}'),
               survived AS (SELECT sum(young_survived_bytes)::DOUBLE AS bytes FROM gc_charges JOIN named USING (stack_id)
                 WHERE method = '{method}')
             SELECT coalesce((SELECT bytes FROM allocated), 0) AS allocated,
               coalesce((SELECT bytes FROM survived), 0) AS survived"
        ))?;
        let row = rows.first().context("sums")?;
        *found = Method { allocated: float(row, "allocated")?, survived: float(row, "survived")? };
    }
    Ok(found)
}

/// Records the program while it allocates in this way.
fn record(jdk: &Jdk, library: &str, how: &str) -> Result<(Value, [Method; 2])> {
    let output = Output::new()?;
    let workload =
        METHODS.iter().fold(Workload::new("Pinned").jdk(jdk), |workload, method| workload.dont_inline(method));
    let mut jvm = workload.flag("-Xmx192m").flag(YOUNG).flag("-XX:+UseG1GC").argument(library).start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--interval", "500ms").argument("--json").argument("--alloc");
    let mut profiler = run.output(output.dir()).start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    jvm.say(how)?;
    let told = wait_for("a program to allocate", LIMIT, || Ok(jvm.records().last().cloned()))?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    Ok((told, recorded(&output)?))
}

#[test]
fn what_survives_is_known_where_native_code_holds_objects_in_place() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let library = directory.path().join("libpinned.so");
    native::compile_library("pinned.c", "PINNED", &library)?;
    let library = library.to_str().context("a path of text")?;
    let jdks: Vec<_> = Jdk::pinned()?.filter(|jdk| jdk.release >= SINCE).collect();
    ensure!(!jdks.is_empty(), "no JDK since {SINCE}");
    for jdk in jdks {
        for how in ["moved", "pinned"] {
            let (told, [kept, dropped]) = record(jdk, library, how)?;
            let share = kept.survived / (kept.survived + dropped.survived);
            notes::figure(&format!(
                "{jdk}, {how}: {told}: of {:.0} and {:.0} MB {:.0} and {:.1} MB survived, {share:.3} of it was kept",
                kept.allocated / 1e6,
                dropped.allocated / 1e6,
                kept.survived / 1e6,
                dropped.survived / 1e6
            ));
            let held = told["held"].as_u64().context("held")?;
            ensure!((held > 0) == (how == "pinned") && told["collections"].as_u64() > Some(5), "{told}");
            // All that is kept outlives its first collection. The figure is an estimate from below: what a region in place
            // hides does not count, nor does what is not remembered.
            ensure!(kept.survived > 0.5 * kept.allocated, "{how}: {kept:?}");
            ensure!(kept.survived < 1.1 * kept.allocated, "{how}: {kept:?}");
            ensure!(share > LEAST_SHARE, "{how}: {kept:?} {dropped:?}");
        }
    }
    Ok(())
}
