//! Runs the checks, each with its time; all run even if one fails.
//!
//! There are two sets. The quick one is for each merge. The slow one has what is emulated, packages, and the soak, and is
//! run before an issue is closed. What waits runs beside what computes: downloads beside the build of the tests. Live
//! tests that need no idle machine run beside one another. One build serves all: clippy, unit tests, the program, and the
//! tests that run it.

mod built;
mod checks;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use joular_tests::{jdk, notes, packages, paths, s3};
use rustix::fs::{StatVfsMountFlags, statvfs};

pub use self::checks::Checks;
use self::{built::Built, checks::timed};
use crate::{
    build::{Emulated, Profile},
    dist::{self, Pair},
    setup, shell,
    target::{Library, Processor, Target},
    tidy,
};

/// Unit tests have 9 MB in files at once, and may have more one day.
const ROOM_OF_UNIT_TESTS: u64 = 256 << 20;

/// Live tests of this module measure the machine. They run one at a time.
const ALONE: &str = "alone::";

/// Live tests of this module are of the slow set. They run one at a time, too.
const SLOW: &str = "slow::";

/// Live tests with this in their names try more JDKs and collectors in the slow set.
const ACROSS: &str = "across_jdks";

/// Tests without privileges of this module are of the slow set: they need the packages.
const PACKAGES: &str = "packages::";

/// Tests without privileges of this module cut connections at more requests in the slow set.
const CUTS: &str = "fleet_cuts::";

#[derive(clap::Args, Default)]
pub struct Options {
    /// Leaves out what needs root and a live kernel.
    #[arg(long)]
    no_live: bool,
    /// Runs the slow set instead: emulated machines, packages, and the soak.
    #[arg(long, conflicts_with = "no_live")]
    slow: bool,
}

impl Options {
    /// For the slow set.
    pub fn slow() -> Self {
        Self { slow: true, no_live: false }
    }
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
    let noted = fs::read_to_string(&notes_file).with_context(|| format!("reading {}", notes_file.display()))?;
    checks.conclude("test", &noted, start.elapsed())
}

fn quick(checks: &mut Checks, notes_file: &Path, live: bool) {
    let built = thread::scope(|scope| {
        let rest = scope.spawn(|| timed(setup::run));
        checks.check("format", || shell::run(shell::cargo().args(["fmt", "--all", "--check"])));
        checks.check("tidy", tidy::run);
        let built = checks.check("build", Built::build);
        if let Some(built) = &built {
            checks.check("clippy", || built.has_no_warnings());
        }
        let is_set_up = checks.join("setup", rest).is_some();
        if is_set_up && built.is_some() {
            checks.check("unit tests", || unit_tests(notes_file));
        }
        built.filter(|_| is_set_up)
    });
    let Some(built) = built else {
        return checks.skip("tests of the binary", "something that they need is missing");
    };
    let tests = Tests { built: &built, notes_file, packages: None, for_aarch64: None, is_every: false };
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
    let aarch64 = Target { processor: Processor::Aarch64, library: Library::Musl };
    let for_aarch64 = checks.check("programs for aarch64", || {
        let emulated = Emulated::build(aarch64)?;
        let pair = Pair::with_static(Profile::Dev, Processor::Aarch64, emulated.program.clone())?;
        Ok((emulated, pair))
    });
    let (for_aarch64, pair) = for_aarch64.unzip();
    let Some(made) = checks.check("packages, twice the same", || dist::for_tests(&built.program, pair.as_ref())) else {
        return checks.skip("tests of the binary", "there are no packages to test");
    };
    let for_aarch64 = for_aarch64.as_ref();
    let tests = Tests { built: &built, notes_file, packages: Some(&made), for_aarch64, is_every: true };
    checks.check("links in rustdoc", rustdoc);
    // Advisories are a database on the network: not every build has one.
    checks.check("licences, bans and sources of dependencies", || {
        shell::run(shell::cargo().args(["deny", "check", "bans", "licenses", "sources"]))
    });
    checks.check("cuts at every request", || tests.run(&built.unprivileged, &[CUTS]));
    checks.check("tests of packages", || tests.run(&built.unprivileged, &[PACKAGES]));
    tests.live(checks, "live tests across all JDKs and collectors", &[ACROSS, "--skip", SLOW, "--test-threads=1"]);
    tests.live(checks, "slow live tests, one at a time", &[SLOW, "--test-threads=1"]);
}

/// Tests in the file that they test. Those of `joular-tests` are not among them: most of them need the profiler.
fn unit_tests(notes_file: &Path) -> Result<()> {
    let mut cargo = shell::linting_cargo();
    cargo.env(notes::FILE, notes_file);
    cargo.envs(memory_for_files().map(|directory| ("TMPDIR", directory)));
    shell::run(cargo.args(["test", "--quiet", "--workspace", "--exclude", "joular-tests"]))
}

/// A directory in memory that has room and lets programs run. A disk takes longer for many small files.
fn memory_for_files() -> Option<&'static str> {
    let directory = "/dev/shm";
    let system = statvfs(directory).ok()?;
    let has_room = system.f_bavail.saturating_mul(system.f_frsize) >= ROOM_OF_UNIT_TESTS;
    (has_room && !system.f_flag.contains(StatVfsMountFlags::NOEXEC)).then_some(directory)
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
    /// What runs on an emulated aarch64; `None` if nothing was built for it.
    for_aarch64: Option<&'a Emulated>,
    /// Whether tests across JDKs try all of them, and connections are cut at each request.
    is_every: bool,
}

impl Tests<'_> {
    fn environment(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let always = [("JOULAR_BPF", self.built.program.as_path()), (notes::FILE, self.notes_file)];
        let every: &[&'static str] = if self.is_every { &[jdk::EVERY, s3::EVERY] } else { &[] };
        let every = every.iter().map(|name| (*name, Path::new("1")));
        let packages = self.packages.map(|directory| (packages::DIRECTORY, directory));
        let for_aarch64 = self.for_aarch64.into_iter().flat_map(|built| {
            [(paths::AARCH64, built.program.as_path()), (paths::IMAGE_OF_AARCH64, built.jvm_image.as_path())]
        });
        always.into_iter().chain(packages).chain(for_aarch64).chain(every)
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
