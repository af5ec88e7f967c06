//! Records virtual threads that share carriers and are resumed at other depths of their stacks than they began at, so
//! that older frames stay in the heap (`ResumedThreads.java`), and judges their stacks: they are whole, and what the
//! threads did before and after they blocked has its share.

use std::{collections::BTreeMap, fmt, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    clock::wait_for,
    dataset::{float, text},
    java::{Jvm, Workload},
    jdk::Jdk,
    notes,
    profiler::{Output, Run},
    statistics::RARE_SIGMAS,
};

const LIMIT: Duration = Duration::from_secs(60);
/// Short, so that little is between what the program counts and what windows have.
const WINDOW: &str = "100ms";
/// Windows after which the layout of a JVM's stacks is known.
const KNOWN_AFTER: usize = 10;
/// Of the samples of a case that are not too deep to be kept.
const WHOLE: f64 = 0.995;
/// Of the samples of one way to block, of which there are fewer.
const WHOLE_OF_WAY: f64 = 0.98;
const WAYS: [&str; 6] = ["sleeps", "parks", "locks", "monitors", "semaphores", "sockets"];
/// More threads than these have less than a round in a second.
const MANY: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
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

    /// They take some tens of microseconds, and some hundreds in the interpreter.
    const fn iterations(self) -> u32 {
        match self {
            Self::C1 | Self::C2 => 20_000,
            Self::None => 10_000,
        }
    }

    /// Threads that have ended before anybody looks, if they are few.
    const fn rounds(self) -> u32 {
        match self {
            Self::C1 | Self::C2 => 5_000,
            Self::None => 500,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub release: u32,
    pub compiler: Compiler,
    pub carriers: u32,
    pub threads: u32,
    pub depth: u32,
    /// Of the JVM, e.g. for a collector.
    pub flags: &'static [&'static str],
}

impl Case {
    pub const fn new(release: u32, compiler: Compiler, carriers: u32, threads: u32, depth: u32) -> Self {
        Self { release, compiler, carriers, threads, depth, flags: &[] }
    }

    /// Long enough for several rounds.
    const fn seconds(self) -> u32 {
        match self.compiler {
            _ if self.threads <= MANY => 3,
            Compiler::C1 | Compiler::C2 => 20,
            Compiler::None => 40,
        }
    }

    /// Taking a sample takes some tens of microseconds, longer where most of the stack is in the heap. No sample hits that
    /// time, but the program's clock contains it: at 999 Hz the share after blocking is 0.4 points lower than the clock's.
    /// Only cases with many samples show that.
    const fn frequency_hz(self) -> u32 {
        if self.threads > MANY { 249 } else { 999 }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { release, compiler, carriers, threads, depth, flags } = self;
        write!(
            f,
            "JDK {release}, {compiler:?}, {carriers} carriers, {threads} threads, {depth} deep {}",
            flags.join(" ")
        )
    }
}

/// Samples below a method that blocks, from when the JVM's layout was known; on a busy machine that takes a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    pub all: f64,
    pub whole: f64,
    /// Those with more frames than are kept: the interpreter's are copied by a recursion, so deep stacks double.
    pub too_deep: f64,
    /// Those within what is computed, and of them those after the thread was resumed.
    computed: f64,
    after: f64,
}

impl Samples {
    fn add(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            whole: self.whole + other.whole,
            too_deep: self.too_deep + other.too_deep,
            computed: self.computed + other.computed,
            after: self.after + other.after,
        }
    }

    /// Those that can be whole.
    fn kept(self) -> f64 {
        self.all - self.too_deep
    }

    /// Whether this part of those that can be whole may be: of few samples more are cut by chance.
    fn is_whole(self, part: f64) -> bool {
        let expected = (1.0 - part) * self.kept();
        self.kept() - self.whole <= expected + RARE_SIGMAS * expected.sqrt()
    }

    /// How many standard deviations the share of what is computed after blocking is off, which should be this.
    fn deviations(self, share: f64) -> f64 {
        (self.after / self.computed - share) / (share * (1.0 - share) / self.computed).sqrt()
    }
}

/// Samples by the way in which threads block. Those of what is computed are of the time between two looks; a window that is
/// partly in it counts in part.
fn samples(output: &Output, first: Look, last: Look) -> Result<BTreeMap<String, Samples>> {
    let between = format!(
        "samples * greatest(0, least({}, epoch_ms(window_start) + window_ns / 1e6) - greatest({}, epoch_ms(window_start)))
             / (window_ns / 1e6)",
        last.at_ms, first.at_ms
    );
    let rows = output.data.rows(&format!(
        "SELECT regexp_extract(folded, 'ResumedThreads[.](sleeps|parks|locks|monitors|semaphores|sockets);', 1) AS way,
           sum(samples)::DOUBLE AS all_samples,
           coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE AS whole,
           coalesce(sum(samples) FILTER (walk_end = 'depth'), 0)::DOUBLE AS too_deep,
           coalesce(sum({between}) FILTER (regexp_matches(folded, 'ResumedThreads[.](before|after)')), 0)::DOUBLE AS computed,
           coalesce(sum({between}) FILTER (contains(folded, 'ResumedThreads.after')), 0)::DOUBLE AS after
         FROM branches JOIN (SELECT DISTINCT ON (stack_id) * EXCLUDE (window_start) FROM stacks) USING (stack_id)
         WHERE category = 'java' AND unwinder = 'tables' GROUP BY 1 HAVING way <> ''",
    ))?;
    let row = |row: &serde_json::Value| {
        let [all, whole, too_deep, computed, after] =
            ["all_samples", "whole", "too_deep", "computed", "after"].map(|name| float(row, name));
        let samples = Samples { all: all?, whole: whole?, too_deep: too_deep?, computed: computed?, after: after? };
        Ok((text(row, "way")?.to_owned(), samples))
    };
    rows.iter().map(row).collect()
}

/// CPU time for which threads have computed before and after they blocked, at some moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    before_ns: f64,
    after_ns: f64,
    at_ms: f64,
}

fn look(jvm: &mut Jvm) -> Result<Look> {
    let said = jvm.records().len();
    jvm.say("how long")?;
    let record = wait_for("the program to say how long it computed", LIMIT, || Ok(jvm.records().get(said).cloned()))?;
    let [before, after, at_ms] = ["before_ns", "after_ns", "at_ms"].map(|name| float(&record, name));
    Ok(Look { before_ns: before?, after_ns: after?, at_ms: at_ms? })
}

/// Which part of what was computed between two looks was after blocking. With very many threads it differs from three
/// quarters: many more may have begun than have ended.
fn share(first: Look, last: Look) -> f64 {
    let (before_ns, after_ns) = (last.before_ns - first.before_ns, last.after_ns - first.after_ns);
    after_ns / (before_ns + after_ns)
}

/// What a recording of a case has, and what the program says.
struct Recorded {
    output: Output,
    /// By the way in which threads block.
    ways: BTreeMap<String, Samples>,
    /// Of what was computed, the part after blocking.
    share: f64,
}

fn record(case: Case, measures: u32) -> Result<Recorded> {
    let Case { release, compiler, carriers, threads, depth, flags } = case;
    let jdk = Jdk::pinned()?.find(|jdk| jdk.release == release).with_context(|| format!("no JDK {release}"))?;
    let output = Output::new()?;
    let workload = Workload::new("ResumedThreads").jdk(jdk).flag("--enable-preview").flag(compiler.flag());
    // For the CPU time of carriers.
    let workload = workload.flag("--add-opens").flag("java.base/java.lang=ALL-UNNAMED");
    let workload = workload.flag(&format!("-Djdk.virtualThreadScheduler.parallelism={carriers}"));
    let workload = flags.iter().fold(workload, |workload, flag| workload.flag(flag));
    let workload = if threads > MANY { workload.flag("-Xmx1g") } else { workload };
    // Else the leaf may be named by its caller.
    let workload = ["before", "after"]
        .iter()
        .fold(workload, |workload, method| workload.dont_inline(&format!("ResumedThreads::{method}")));
    let arguments = [threads, depth, compiler.iterations(), threads.max(compiler.rounds())];
    let workload = arguments.iter().fold(workload, |workload, argument| workload.argument(&argument.to_string()));
    let mut jvm = workload.start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--interval", WINDOW).argument("--json");
    let mut profiler = run.with("--frequency", case.frequency_hz().to_string()).output(output.dir()).start()?;
    (0..KNOWN_AFTER).try_for_each(|_| profiler.wait_window().map(drop))?;
    let first = look(&mut jvm)?;
    thread::sleep(Duration::from_secs((measures * case.seconds()).into()));
    let last = look(&mut jvm)?;
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{case}: {finished:?}");
    drop(jvm);
    let ways = samples(&output, first, last)?;
    Ok(Recorded { output, ways, share: share(first, last) })
}

fn figures(samples: Samples, share: f64) -> String {
    let Samples { all, too_deep, .. } = samples;
    format!(
        "n = {all}, {too_deep} too deep, {:.2} % whole, share {:.4} of {share:.4} ({:+.1} σ)",
        100.0 * samples.whole / samples.kept(),
        samples.after / samples.computed,
        samples.deviations(share)
    )
}

fn figures_of_way(samples: Samples) -> String {
    format!("{}: {:.1} %", samples.all, 100.0 * samples.whole / samples.kept())
}

/// Records a case, says what it saw, and judges it. `deviations` is how far the share may be off.
pub fn expect_whole(case: Case, deviations: f64) -> Result<()> {
    repeat_once(|measures| judge(case, deviations, measures))
}

fn judge(case: Case, deviations: f64, measures: u32) -> Result<()> {
    let Recorded { output, ways, share } = record(case, measures)?;
    let sum = ways.values().fold(Samples::default(), |sum, samples| sum.add(*samples));
    let mut said = format!("{case}: {}", figures(sum, share));
    for (way, samples) in &ways {
        said.push_str(&format!("; {way} {}", figures_of_way(*samples)));
    }
    notes::figure(&said);
    // A machine that others keep busy gives few.
    ensure!(sum.kept() >= 50.0 && sum.is_whole(WHOLE), "{said}: {WHOLE} of them should be whole");
    ensure!(sum.deviations(share).abs() <= deviations, "{said}: {sum:?}");
    for way in WAYS {
        let samples = ways.get(way).copied().unwrap_or_default();
        // Of very many threads few have a connection.
        let is_rare = way == "sockets" && case.threads > MANY;
        ensure!(is_rare || samples.all >= 1.0, "{said}: {way} is missing");
        ensure!(samples.is_whole(WHOLE_OF_WAY), "{said}: {way}");
    }
    expect_callers(&output, case)
}

/// Whole stacks have all calls of the thread, and those by which its carrier runs it. The method in between is known
/// from the first stack of which nothing is in the heap.
fn expect_callers(output: &Output, case: Case) -> Result<()> {
    let depth = case.depth + 1;
    output.data.expect_none(
        "threads that did not call themselves so often, or were not entered by their carriers",
        &format!(
            "SELECT folded FROM stacks
             WHERE is_complete AND regexp_matches(folded, 'ResumedThreads.descend;.*ResumedThreads[.](before|after)') AND
               (len(string_split(folded, 'ResumedThreads.descend')) - 1 <> {depth}
                OR NOT regexp_matches(folded, 'VirtualThread.runContinuation;.*Continuation.run;.*Continuation.enter;'))"
        ),
    )?;
    let entered = output.data.number(
        "WITH entering AS (SELECT window_start, samples, contains(folded, 'Continuation.enterSpecial;') AS is_known
           FROM branches JOIN (SELECT DISTINCT ON (stack_id) * EXCLUDE (window_start) FROM stacks) USING (stack_id)
           WHERE is_complete AND regexp_matches(folded, 'ResumedThreads.descend;.*ResumedThreads[.](before|after)'))
         SELECT sum(samples) FILTER (is_known)::DOUBLE / sum(samples) FROM entering
         WHERE window_start >= (SELECT min(window_start) FROM entering WHERE is_known)",
    )?;
    ensure!(entered >= 0.9, "{case}: {entered} of the whole stacks have the method that enters the thread");
    Ok(())
}
