//! Tests stacks of virtual threads that share carriers and are resumed at other depths of their stacks than
//! they began at: they are whole, or go on in the carrier behind what is in the heap.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{float, text},
    java::Workload,
    jdk::Jdk,
    notes,
    profiler::{END, Output, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
/// Of the samples of a case.
const FOLLOWED: f64 = 0.995;
/// Of the samples of one way to block, of which there are fewer.
const FOLLOWED_OF_WAY: f64 = 0.98;
const WAYS: [&str; 6] = ["sleeps", "parks", "locks", "monitors", "semaphores", "sockets"];
/// What is computed after a thread was resumed, of all.
const AFTER: f64 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    C1,
    C2,
    None,
}

impl Compiler {
    const fn flag(self) -> &'static str {
        match self {
            Self::C1 => "-XX:TieredStopAtLevel=1",
            Self::C2 => "-XX:+TieredCompilation",
            Self::None => "-Xint",
        }
    }

    /// About as much time in all cases: some tens of microseconds.
    const fn iterations(self) -> u32 {
        match self {
            Self::C1 | Self::C2 => 20_000,
            Self::None => 1_000,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    release: u32,
    compiler: Compiler,
    carriers: u32,
    threads: u32,
    depth: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { release, compiler, carriers, threads, depth } = self;
        write!(f, "JDK {release}, {compiler:?}, {carriers} carriers, {threads} threads, {depth} deep")
    }
}

/// Samples below a method that blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    all: f64,
    whole: f64,
    /// Also those that end where older frames are in the heap, and then go on in the carrier.
    followed: f64,
    /// Those within what is computed, and of them those after the thread was resumed.
    computed: f64,
    after: f64,
}

impl Samples {
    fn add(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            whole: self.whole + other.whole,
            followed: self.followed + other.followed,
            computed: self.computed + other.computed,
            after: self.after + other.after,
        }
    }

    /// How many standard deviations the share of what is computed after blocking is off.
    fn deviations(self) -> f64 {
        (self.after / self.computed - AFTER) / (AFTER * (1.0 - AFTER) / self.computed).sqrt()
    }
}

fn samples(output: &Output) -> Result<BTreeMap<String, Samples>> {
    let rows = output.data.rows(
        "SELECT regexp_extract(folded, 'ResumedThreads[.](sleeps|parks|locks|monitors|semaphores|sockets);', 1) AS way,
           sum(samples)::DOUBLE AS all_samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE AS whole,
           coalesce(sum(samples) FILTER (is_complete OR walk_end = 'frozen'
             AND contains(folded, 'ForkJoinWorkerThread.run')), 0)::DOUBLE AS followed,
           coalesce(sum(samples) FILTER (regexp_matches(folded, 'ResumedThreads[.](before|after)')), 0)::DOUBLE AS computed,
           coalesce(sum(samples) FILTER (contains(folded, 'ResumedThreads.after')), 0)::DOUBLE AS after
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)
         WHERE category = 'java' GROUP BY 1 HAVING way <> ''",
    )?;
    let row = |row: &serde_json::Value| {
        let [all, whole, followed, computed, after] =
            ["all_samples", "whole", "followed", "computed", "after"].map(|name| float(row, name));
        let samples = Samples { all: all?, whole: whole?, followed: followed?, computed: computed?, after: after? };
        Ok((text(row, "way")?.to_owned(), samples))
    };
    rows.iter().map(row).collect()
}

/// Records a case; its samples by the way in which threads block.
fn record(case: Case) -> Result<(Output, BTreeMap<String, Samples>)> {
    let Case { release, compiler, carriers, threads, depth } = case;
    let jdk = Jdk::pinned()?.find(|jdk| jdk.release == release).with_context(|| format!("no JDK {release}"))?;
    let output = Output::new()?;
    let workload = Workload::new("ResumedThreads").jdk(jdk).flag("--enable-preview").flag(compiler.flag());
    let workload = workload.flag(&format!("-Djdk.virtualThreadScheduler.parallelism={carriers}"));
    // Else the leaf may be named by its caller.
    let workload = ["before", "after"]
        .iter()
        .fold(workload, |workload, method| workload.dont_inline(&format!("ResumedThreads::{method}")));
    let arguments = [threads, depth, compiler.iterations(), 10_000];
    let workload = arguments.iter().fold(workload, |workload, argument| workload.argument(&argument.to_string()));
    let jvm = workload.start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "2s").with("--frequency", "999");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{case}: {finished:?}");
    drop(jvm);
    let samples = samples(&output)?;
    Ok((output, samples))
}

/// Records a case and says what it saw.
fn measure(case: Case) -> Result<(Output, BTreeMap<String, Samples>, Samples)> {
    let (output, ways) = record(case)?;
    let sum = ways.values().fold(Samples::default(), |sum, samples| sum.add(*samples));
    let mut figures = format!("{case}: {}", figures(sum));
    for (way, samples) in &ways {
        figures.push_str(&format!("; {way} {}", figures_of_way(*samples)));
    }
    notes::figure(&figures);
    Ok((output, ways, sum))
}

fn figures(samples: Samples) -> String {
    let Samples { all, whole, followed, .. } = samples;
    let part = |of: f64| 100.0 * of / all;
    format!(
        "n = {all}, {:.2} % whole, {:.2} % whole or with frames in the heap, share {:+.1} σ",
        part(whole),
        part(followed),
        samples.deviations()
    )
}

fn figures_of_way(samples: Samples) -> String {
    let Samples { all, whole, followed, .. } = samples;
    format!("{all}: {:.1}, {:.1} %", 100.0 * whole / all, 100.0 * followed / all)
}

fn expect_followed(case: Case) -> Result<()> {
    let (output, ways, sum) = measure(case)?;
    let part = sum.followed / sum.all;
    ensure!(sum.all >= 200.0 && part >= FOLLOWED, "{case}: {part} of {} samples are followed", sum.all);
    // A round of very many threads takes as long as the recording. Of the others one would be off by three in a run
    // of seventy.
    ensure!(case.threads > 1_000 || sum.deviations().abs() <= 4.0, "{case}: {sum:?}");
    for way in WAYS {
        let Samples { all, followed, .. } = ways.get(way).copied().unwrap_or_default();
        // Of very many threads few have a connection.
        let is_rare = way == "sockets" && case.threads > 1_000;
        let is_seen = is_rare || all >= 10.0;
        ensure!(is_seen && followed >= FOLLOWED_OF_WAY * all, "{case}: {way}: {followed} of {all} samples");
    }
    expect_callers(&output, case)
}

/// Whole stacks have all calls of the thread, and those by which its carrier runs it.
fn expect_callers(output: &Output, case: Case) -> Result<()> {
    let depth = case.depth + 1;
    output.data.expect_none(
        "threads that did not call themselves so often, or were not entered by their carriers",
        &format!(
            "SELECT folded FROM stacks
             WHERE is_complete AND regexp_matches(folded, 'ResumedThreads[.](before|after)') AND
               (len(string_split(folded, 'ResumedThreads.descend')) - 1 <> {depth}
                OR NOT regexp_matches(folded, 'VirtualThread.runContinuation;.*Continuation.run;.*Continuation.enterSpecial;\
             .*Continuation.enter;'))"
        ),
    )
}

const CASES: [Case; 6] = [
    Case { release: 25, compiler: Compiler::C2, carriers: 2, threads: 200, depth: 5 },
    Case { release: 25, compiler: Compiler::C1, carriers: 1, threads: 1_000, depth: 50 },
    Case { release: 25, compiler: Compiler::None, carriers: 4, threads: 200, depth: 5 },
    Case { release: 25, compiler: Compiler::C2, carriers: 4, threads: 10_000, depth: 5 },
    Case { release: 21, compiler: Compiler::C1, carriers: 2, threads: 200, depth: 5 },
    Case { release: 21, compiler: Compiler::C2, carriers: 4, threads: 1_000, depth: 500 },
];

#[test]
fn stacks_of_resumed_virtual_threads_go_on_in_their_carriers() -> Result<()> {
    CASES.into_iter().try_for_each(expect_followed)
}

/// Takes some minutes.
#[test]
#[ignore = "measures all cases, for documents"]
fn stacks_of_resumed_virtual_threads_in_all_cases() -> Result<()> {
    for release in [21, 25] {
        for compiler in [Compiler::C1, Compiler::C2, Compiler::None] {
            for carriers in [1, 2, 4] {
                for (threads, depth) in [(200, 5), (200, 50), (200, 500), (10_000, 5)] {
                    measure(Case { release, compiler, carriers, threads, depth })?;
                }
            }
        }
    }
    Ok(())
}
