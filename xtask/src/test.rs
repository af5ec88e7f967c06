//! Every check there is, each with its time; all run even if one fails.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use joular_tests::paths;

use crate::{build, setup, shell, tidy};

#[derive(Default)]
struct Checks {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Checks {
    /// Runs one check and reports it.
    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        shell::step(name);
        let start = Instant::now();
        let result = check();
        let took = seconds(start.elapsed());
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("== {name}: passed in {took}");
            }
            Err(error) => {
                self.failed.push(name.to_owned());
                println!("== {name}: FAILED in {took}: {error:#}");
            }
        }
    }

    fn skip(&mut self, name: &str, reason: &str) {
        println!("== {name}: skipped: {reason}");
        self.skipped.push(name.to_owned());
    }

    fn conclude(self, took: Duration) -> Result<()> {
        let skipped = match self.skipped.as_slice() {
            [] => String::new(),
            names => format!(", skipped: {}", names.join(", ")),
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

pub fn run(live: bool) -> Result<()> {
    let start = Instant::now();
    setup::run()?;
    let mut checks = Checks::default();
    checks.check("format", || shell::run(shell::cargo().args(["fmt", "--all", "--check"])));
    checks.check("tidy", tidy::run);
    checks.check("clippy", || {
        let mut clippy = shell::cargo();
        shell::run(clippy.args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    });
    checks.check("unit tests", || {
        // joular-tests needs the profiler: its turn comes below.
        shell::run(shell::cargo().args(["test", "--quiet", "--workspace", "--exclude", "joular-tests"]))
    });
    let mut profiler = None;
    checks.check("release build", || {
        profiler = Some(build::build(true)?);
        Ok(())
    });
    match profiler {
        Some(profiler) => with_profiler(&mut checks, &profiler, live),
        None => checks.skip("tests of the binary", "there is none"),
    }
    checks.conclude(start.elapsed())
}

fn with_profiler(checks: &mut Checks, profiler: &Path, live: bool) {
    checks.check("tests without privileges", || {
        let mut cargo = shell::cargo();
        cargo.env("JOULAR_BPF", profiler);
        shell::run(cargo.args(["test", "--quiet", "--package", "joular-tests", "--lib", "--test", "it"]))
    });
    if !live {
        checks.skip("live tests", "--no-live");
    } else if !shell::is_root() && !sudo_works() {
        checks.skip("live tests", "they load eBPF programs, we are not root, and `sudo -n` asks for a password");
    } else {
        checks.check("live tests", || {
            let tests = privileged_binary()?;
            // One at a time: they measure the machine that they run on.
            let mut command = shell::as_root("env", &["-n"]);
            command.arg(format!("JOULAR_BPF={}", profiler.display()));
            // Of a hundred tests' output it is the messages that matter, at its end.
            command.arg("RUST_BACKTRACE=0").arg(&tests).arg("--test-threads=1");
            shell::run(&mut command)
        });
    }
}

fn sudo_works() -> bool {
    Command::new("sudo").args(["-n", "true"]).status().is_ok_and(|status| status.success())
}

/// Builds the live tests as the developer; returns the binary to run as root.
fn privileged_binary() -> Result<PathBuf> {
    let messages = shell::capture(shell::cargo().args([
        "test",
        "--package",
        "joular-tests",
        "--test",
        "privileged",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]))?;
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable = artifacts
        .filter(|artifact| artifact["target"]["name"] == "privileged")
        .find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from));
    executable.with_context(|| format!("cargo built no live tests below {}", paths::target().display()))
}
