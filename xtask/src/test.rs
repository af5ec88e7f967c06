//! Runs the checks, each with its time; all run even if one fails.
//!
//! There are two sets. The quick one is for each merge. The slow one has what is emulated, packages, and the soak, and is
//! run before an issue is closed. What waits runs beside what computes: downloads beside clippy and the build of the
//! tests. Live tests that need no idle machine run beside one another. One profile builds all: unit tests, the program,
//! and the tests that run it.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use joular_tests::{jdk, notes, packages, paths};

use crate::{dist, setup, shell, tidy};

/// The package of fuzz targets. Clippy checks it; it is built by `cargo fuzz`, with a sanitizer.
const FUZZ: &str = "joular-fuzz";

/// Live tests of this module measure the machine. They run one at a time.
const ALONE: &str = "alone::";

/// Live tests of this module are of the slow set. They run one at a time, too.
const SLOW: &str = "slow::";

/// Live tests with this in their names try more JDKs and collectors in the slow set.
const ACROSS: &str = "across_jdks";

/// Tests without privileges of this module are of the slow set: they need the packages.
const PACKAGES: &str = "packages::";

#[derive(clap::Args)]
pub struct Options {
    /// Leaves out what needs root and a live kernel.
    #[arg(long)]
    no_live: bool,
    /// Runs the slow set instead: emulated machines, packages, and the soak.
    #[arg(long, conflicts_with = "no_live")]
    slow: bool,
}

#[derive(Default)]
struct Checks {
    passed: usize,
    failed: Vec<String>,
    /// What did not run, and why; figures that tests publish.
    notes: BTreeSet<String>,
}

/// What a check gave, and how long it took.
type Timed<T> = (Result<T>, Duration);

fn timed<T>(check: impl FnOnce() -> Result<T>) -> Timed<T> {
    let start = Instant::now();
    let result = check();
    (result, start.elapsed())
}

impl Checks {
    /// Runs one check and reports it.
    fn check<T>(&mut self, name: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        shell::step(name);
        self.report(name, timed(check))
    }

    /// Reports a check that ran beside others.
    fn join<T>(&mut self, name: &str, check: ScopedJoinHandle<'_, Timed<T>>) -> Option<T> {
        let panicked = |_| (Err(anyhow!("it panicked")), Duration::ZERO);
        self.report(name, check.join().unwrap_or_else(panicked))
    }

    fn report<T>(&mut self, name: &str, (result, took): Timed<T>) -> Option<T> {
        let took = seconds(took);
        match result {
            Ok(value) => {
                self.passed += 1;
                println!("== {name}: passed in {took}");
                Some(value)
            }
            Err(error) => {
                self.failed.push(name.to_owned());
                println!("== {name}: FAILED in {took}: {error:#}");
                None
            }
        }
    }

    fn skip(&mut self, name: &str, reason: &str) {
        println!("== {name}: skipped: {reason}");
        self.notes.insert(format!("{}{name}: {reason}", notes::SKIPPED));
    }

    fn conclude(mut self, notes_file: &Path, took: Duration) -> Result<()> {
        let noted = fs::read_to_string(notes_file).with_context(|| format!("reading {}", notes_file.display()))?;
        self.notes.extend(noted.lines().map(str::to_owned));
        for note in &self.notes {
            println!("{note}");
        }
        let skipped = match self.notes.iter().filter(|note| note.starts_with(notes::SKIPPED)).count() {
            0 => String::new(),
            count => format!(", {count} skipped (see above)"),
        };
        if !self.failed.is_empty() {
            bail!("{} checks passed, FAILED: {}{skipped}, in {}", self.passed, self.failed.join(", "), seconds(took));
        }
        println!("test: all {} checks passed{skipped}, in {}", self.passed, seconds(took));
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// An empty file for the lines that tests want to be seen.
fn new_notes() -> Result<PathBuf> {
    let file = paths::target().join("test-notes.txt");
    fs::write(&file, "").with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

pub fn run(options: Options) -> Result<()> {
    let start = Instant::now();
    // Compilers need these; everything else is fetched while they work.
    setup::toolchain()?;
    let notes_file = new_notes()?;
    let mut checks = Checks::default();
    if options.slow {
        slow(&mut checks, &notes_file);
    } else {
        quick(&mut checks, &notes_file, !options.no_live);
    }
    checks.conclude(&notes_file, start.elapsed())
}

fn quick(checks: &mut Checks, notes_file: &Path, live: bool) {
    let built = thread::scope(|scope| {
        let rest = scope.spawn(|| timed(setup::run));
        checks.check("format", || shell::run(shell::cargo().args(["fmt", "--all", "--check"])));
        checks.check("tidy", tidy::run);
        checks.check("clippy, of fuzz targets as well", || {
            let mut clippy = shell::cargo();
            shell::run(clippy.args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
        });
        let built = checks.check("build", Built::build);
        let is_set_up = checks.join("setup", rest).is_some();
        if is_set_up && built.is_some() {
            checks.check("unit tests", || {
                // Of the others, `joular-tests`, most need the profiler.
                let mut cargo = shell::cargo();
                cargo.env(notes::FILE, notes_file);
                cargo.args(["test", "--quiet", "--workspace", "--exclude", FUZZ, "--exclude", "joular-tests"]);
                shell::run(&mut cargo)
            });
        }
        if is_set_up {
            // Advisories are a database on the network: not every build has one.
            checks.check("licences, bans and sources of dependencies", || {
                shell::run(shell::cargo().args(["deny", "check", "bans", "licenses", "sources"]))
            });
        }
        built.filter(|_| is_set_up)
    });
    let Some(built) = built else {
        return checks.skip("tests of the binary", "something that they need is missing");
    };
    let tests = Tests { built: &built, notes_file, packages: None, every_jdk: false };
    checks.check("tests without privileges", || {
        tests.run(&built.support, &[])?;
        tests.run(&built.unprivileged, &["--skip", PACKAGES])
    });
    if !live {
        return checks.skip("live tests", "--no-live");
    }
    // Three at once: two CPUs are busy then, though each waits for its windows now and then.
    tests.live(checks, "live tests, side by side", &["--skip", ALONE, "--skip", SLOW, "--test-threads=3"]);
    tests.live(checks, "live tests, one at a time", &[ALONE, "--test-threads=1"]);
}

fn slow(checks: &mut Checks, notes_file: &Path) {
    let is_set_up = checks.check("setup", || setup::run().and_then(|()| setup::slow())).is_some();
    let Some(built) = checks.check("build", Built::build).filter(|_| is_set_up) else {
        return checks.skip("tests of the binary", "something that they need is missing");
    };
    let Some(made) = checks.check("packages, twice the same", || dist::for_tests(&built.program)) else {
        return checks.skip("tests of the binary", "there are no packages to test");
    };
    let tests = Tests { built: &built, notes_file, packages: Some(&made), every_jdk: true };
    checks.check("links in rustdoc", rustdoc);
    checks.check("tests of packages", || tests.run(&built.unprivileged, &[PACKAGES]));
    tests.live(checks, "live tests across all JDKs and collectors", &[ACROSS, "--skip", SLOW, "--test-threads=1"]);
    tests.live(checks, "slow live tests, one at a time", &[SLOW, "--test-threads=1"]);
}

/// Links between items are right, those of private items too.
fn rustdoc() -> Result<()> {
    let mut cargo = shell::cargo();
    cargo.env("RUSTDOCFLAGS", "--deny rustdoc::broken_intra_doc_links");
    shell::run(cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]))
}

/// Programs with tests, and what they are told.
struct Tests<'a> {
    built: &'a Built,
    notes_file: &'a Path,
    /// The directory of the packages under test; `None` if none were made.
    packages: Option<&'a Path>,
    /// Whether tests across JDKs try all of them.
    every_jdk: bool,
}

impl Tests<'_> {
    fn environment(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let always = [("JOULAR_BPF", self.built.program.as_path()), (notes::FILE, self.notes_file)];
        let every_jdk = self.every_jdk.then_some((jdk::EVERY, Path::new("1")));
        always.into_iter().chain(self.packages.map(|directory| (packages::DIRECTORY, directory))).chain(every_jdk)
    }

    /// Runs tests that need no privileges.
    fn run(&self, program: &Path, arguments: &[&str]) -> Result<()> {
        shell::run(Command::new(program).envs(self.environment()).arg("--quiet").args(arguments))
    }

    /// Runs live tests, as root.
    fn live(&self, checks: &mut Checks, name: &str, arguments: &[&str]) {
        if !shell::is_root() && !sudo_works() {
            let reason = "they load eBPF programs, we are not root, and `sudo -n` asks for a password";
            if env::var_os("CI").is_some() {
                checks.check::<()>(name, || bail!(reason));
            } else {
                checks.skip(name, reason);
            }
            return;
        }
        let mut command = shell::as_root("env", &["-n"]);
        command.args(self.environment().map(|(name, value)| format!("{name}={}", value.display())));
        if let Some(ci) = env::var_os("CI") {
            command.arg(format!("CI={}", ci.display()));
        }
        // Of a hundred tests' output it is the messages that matter, at its end.
        command.arg("RUST_BACKTRACE=0");
        // Each test's time is printed, which the test harness of a stable compiler does only if it is told so.
        command.arg("RUSTC_BOOTSTRAP=1").arg(&self.built.live).args(["-Zunstable-options", "--report-time"]);
        command.args(arguments);
        checks.check(name, || shell::run(&mut command));
    }
}

fn sudo_works() -> bool {
    Command::new("sudo").args(["-n", "true"]).status().is_ok_and(|status| status.success())
}

/// The program, and test programs that are not cargo's to run: they need it, some of
/// them root.
struct Built {
    program: PathBuf,
    support: PathBuf,
    unprivileged: PathBuf,
    live: PathBuf,
}

impl Built {
    /// Builds all there is at once, as the developer. For a part of the workspace, or
    /// without the tests, crates may have fewer features, and would be built again.
    fn build() -> Result<Self> {
        let mut cargo = shell::cargo();
        // The report of what took how long lies in `target/cargo-timings`.
        cargo.args(["build", "--timings", "--workspace", "--exclude", FUZZ, "--all-targets"]);
        cargo.arg("--message-format=json-render-diagnostics");
        let messages = shell::capture(&mut cargo)?;
        let artifacts: Vec<serde_json::Value> =
            messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let program = |name: &str, is_test: bool| {
            let is_it = |artifact: &&serde_json::Value| {
                artifact["target"]["name"] == name && artifact["profile"]["test"] == is_test
            };
            let program = artifacts.iter().filter(is_it).filter_map(|artifact| artifact["executable"].as_str()).next();
            program.map(PathBuf::from).with_context(|| format!("cargo built no '{name}'"))
        };
        Ok(Self {
            program: program("joular-bpf", false)?,
            support: program("joular_tests", true)?,
            unprivileged: program("it", true)?,
            live: program("privileged", true)?,
        })
    }
}
