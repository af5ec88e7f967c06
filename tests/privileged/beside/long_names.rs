//! Tests that Java threads have their whole names, of which the kernel keeps 15 bytes.

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    jdk::Jdk,
    profiler::{Output, Run},
};

/// JVMs that are recorded at once.
const AT_ONCE: usize = 10;
/// Windows before a thread takes another name, and after that: a JVM is read in the first or the second.
const WINDOWS: usize = 4;

#[test]
fn java_threads_have_their_whole_names_across_jdks_and_collectors() -> Result<()> {
    let flags: Vec<_> = Jdk::pairs()?.into_iter().map(|(jdk, collector)| (jdk, vec![collector.flag()])).collect();
    expect_names(&flags)
}

/// Objects have other headers then, and references other widths.
#[test]
fn java_threads_have_their_whole_names_however_objects_are_laid_out_across_jdks() -> Result<()> {
    let mut flags = Vec::new();
    for jdk in Jdk::tried()? {
        let compact: &[&str] = match jdk.release {
            25.. => &["-XX:+UseCompactObjectHeaders"],
            24 => &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"],
            _ => &["-XX:-UseCompressedOops"],
        };
        for given in [compact, &["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]] {
            flags.push((jdk, given.iter().map(|&flag| flag.to_owned()).collect()));
        }
    }
    expect_names(&flags)
}

fn expect_names(all: &[(&Jdk, Vec<String>)]) -> Result<()> {
    for some in all.chunks(AT_ONCE) {
        let start = |(jdk, flags): &(&Jdk, Vec<String>)| {
            let workload = Workload::new("LongNames").jdk(jdk);
            flags.iter().fold(workload, |workload, flag| workload.flag(flag)).start()
        };
        let mut jvms = some.iter().map(start).collect::<Result<Vec<_>>>()?;
        let output = Output::new()?;
        let pids: Vec<String> = jvms.iter().map(|jvm| jvm.pid().to_string()).collect();
        let run = Run::modelled().with("--pid", pids.join(",")).argument("--json").output(output.dir());
        let mut profiler = run.start()?;
        (0..WINDOWS).try_for_each(|_| profiler.wait_window().map(drop))?;
        jvms.iter_mut().try_for_each(|jvm| jvm.say("now the second name"))?;
        (0..WINDOWS).try_for_each(|_| profiler.wait_window().map(drop))?;
        profiler.stop()?;
        for ((jdk, flags), jvm) in some.iter().zip(&jvms) {
            judge(&output, jvm.pid()).with_context(|| format!("JDK {jdk}, {flags:?}"))?;
        }
    }
    Ok(())
}

fn judge(output: &Output, pid: u32) -> Result<()> {
    let sql = format!("SELECT DISTINCT thread_name FROM threads WHERE pid = {pid} AND category = 'java'");
    let rows = output.data.rows(&sql)?;
    let names: Vec<&str> = rows.iter().filter_map(|row| row["thread_name"].as_str()).collect();
    for name in [
        "http-nio-8080-exec-1",
        "http-nio-8080-enterprise-1",
        "Bestellungen-größer-als-null",
        "short",
        // For the kernel both are one.
        "stage-of-the-pipeline-one",
        "stage-of-the-pipeline-two",
    ] {
        ensure!(names.contains(&name), "'{name}' is not among {names:?}");
    }
    let longest = names.iter().filter(|name| name.bytes().all(|byte| byte == b'x')).map(|name| name.len()).max();
    ensure!(longest == Some(512), "the longest name has {longest:?} bytes");
    Ok(())
}
