//! Tests stacks through stubs: code that HotSpot writes for itself, with frames of all kinds, and
//! with names of its own.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::{
    java::Workload,
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
/// Of the samples of all families.
const WHOLE: f64 = 0.995;
/// Of those of each, which differ from run to run with what is compiled when.
const WHOLE_OF_FAMILY: f64 = 0.98;
/// Fewer would say nothing of such a share.
const LEAST_SAMPLES: f64 = 300.0;
/// Whole stacks without the method that the thread works in: from when it begins, and from what the
/// loop around the method calls besides. Those that end in that loop do not count: they have no
/// caller that could be wrong, and part of what HotSpot inlines into the loop is the loop's by its
/// own tables (0.5 to 1 % of the samples of `checksums`).
const ASTRAY: f64 = 0.01;

/// A family, and how the name of a stub begins that it works in soon, in all JDKs and on all
/// processors, if there is one.
const FAMILIES: [(&str, Option<&str>); 10] = [
    ("digests", None),
    ("ciphers", None),
    ("checksums", Some("updateBytesCRC32")),
    ("bigIntegers", None),
    ("base64", None),
    ("copies", Some("jbyte_")),
    ("strings", None),
    ("mismatches", None),
    ("trigonometry", None),
    ("sorts", None),
];

/// Each thread is named as the method that it works in. Inlined methods are to be told apart.
fn expect_whole(jdk: &Jdk) -> Result<()> {
    let output = Output::new()?;
    let jvm = Workload::new("Intrinsics")
        .jdk(jdk)
        .flag("-XX:+UnlockDiagnosticVMOptions")
        .flag("-XX:+DebugNonSafepoints")
        .start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "10s").with("--frequency", "1499");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let of_threads = "FROM branches JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)";
    let sums = output.data.rows(&format!(
        "SELECT thread_name AS family, sum(samples)::DOUBLE AS samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE AS whole,
           coalesce(sum(samples) FILTER (is_complete AND NOT contains(folded, 'Intrinsics.' || thread_name)
             AND NOT ends_with(folded, ';Intrinsics.run')), 0)::DOUBLE AS astray
         {of_threads} GROUP BY ALL"
    ))?;
    let (mut sum_whole, mut sum) = (0.0, 0.0);
    for (family, stub) in FAMILIES {
        let row = sums.iter().find(|row| row["family"] == family).with_context(|| format!("no thread {family}"))?;
        let number = |name: &str| row[name].as_f64().with_context(|| format!("no {name}: {row:?}"));
        let samples = number("samples")?;
        let (whole, astray) = (number("whole")? / samples, number("astray")? / samples);
        notes::figure(&format!("{}: {family}: {samples} samples, {whole:.4} whole, {astray:.4} astray", jdk.version));
        ensure!(samples >= LEAST_SAMPLES, "{}: {family}: only {samples} samples", jdk.version);
        sum_whole += whole * samples;
        sum += samples;
        if whole < WHOLE_OF_FAMILY {
            let ends = output.data.rows(&format!(
                "SELECT walk_end, frames[-1].method AS leaf, sum(samples)::BIGINT AS samples {of_threads}
                 WHERE thread_name = '{family}' AND NOT coalesce(is_complete, false)
                 GROUP BY ALL ORDER BY samples DESC LIMIT 10"
            ))?;
            bail!("{}: {family}: {whole} of {samples} samples are whole: {ends:?}", jdk.version);
        }
        ensure!(astray <= ASTRAY, "{}: {family}: {astray} of {samples} stacks lack its method", jdk.version);
        if let Some(stub) = stub {
            let condition = format!("thread_name = '{family}' AND is_complete AND contains(folded, ';{stub}')");
            let found = output.data.number(&format!("SELECT count(*)::DOUBLE {of_threads} WHERE {condition}"))?;
            ensure!(found > 0.0, "{}: {family} has no {stub}", jdk.version);
            output.data.expect_none(
                "stubs below a method that calls none",
                &format!("SELECT folded {of_threads} WHERE {condition} AND contains(folded, 'Intrinsics.run;{stub}')"),
            )?;
        }
    }
    ensure!(sum_whole >= WHOLE * sum, "{}: {sum_whole} of {sum} samples are whole", jdk.version);
    output.data.expect_none(
        "frames with the name of their blob only",
        &format!("SELECT folded {of_threads} WHERE category = 'java' AND contains(folded, 'StubRoutines')"),
    )
}

#[test]
fn stacks_through_stubs_are_whole_and_stubs_have_their_names_across_jdks() -> Result<()> {
    Jdk::tried()?.into_iter().try_for_each(expect_whole)
}
