//! Tests that JVMs themselves confirm what the tests of stacks expect: thread dumps of the known
//! workloads are all on the paths that the scenarios' languages allow.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use joular_tests::{
    clock::wait_for,
    java::{Jdk, Jvm},
    known::{self, CallLines, Root, Verdict},
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);
const DUMPS: usize = 8;

/// The last line of a dump.
const DUMP_END: &str = "JNI global ref";

/// Lets the JVM print where its threads are.
fn dump(jvm: &Jvm) -> Result<String> {
    let dumps = |text: &str| text.matches(DUMP_END).count();
    let before = dumps(&jvm.stdout());
    jvm.signal(Signal::QUIT)?;
    wait_for("a thread dump", LIMIT, || {
        let text = jvm.stdout();
        Ok((dumps(&text) > before).then_some(text))
    })
}

/// Dumps show no carriers' virtual threads, under no shortened name.
fn is_in_dumps(thread: &str) -> bool {
    !thread.starts_with("ForkJoinPool")
}

fn expect_agreement(jdk: &Jdk, mode: &str) -> Result<()> {
    let lines = CallLines::read()?;
    let workload = known::workload().jdk(jdk).flag("-XX:+UseSerialGC").flag(mode);
    // Lambda forms are frames for us, too.
    let jvm = workload.flag("-XX:+UnlockDiagnosticVMOptions").flag("-XX:+ShowHiddenFrames").start()?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..DUMPS {
        let text = dump(&jvm)?;
        for thread in known::SCENARIOS.iter().filter(|thread| is_in_dumps(thread)) {
            let Some(frames) = known::thread_dump(&text, thread) else { continue };
            let scenario = known::scenario(thread).expect("a scenario of each name");
            let verdict = known::judge(&scenario, &frames, &lines, Root::Any);
            assert!(matches!(verdict, Verdict::Exact | Verdict::OnItsWay), "{jdk} {mode}: {thread}: {verdict:#?}");
            *seen.entry((*thread).to_owned()).or_default() += 1;
        }
    }
    let least = if jdk.release >= 21 { 15 } else { 13 };
    assert!(seen.len() >= least, "{jdk} {mode}: dumps show {seen:?} only");
    Ok(())
}

#[test]
fn thread_dumps_are_on_the_expected_paths_across_jdks() -> Result<()> {
    for jdk in Jdk::tried()? {
        for mode in ["-XX:+TieredCompilation", "-Xint"] {
            expect_agreement(jdk, mode)?;
        }
    }
    Ok(())
}
