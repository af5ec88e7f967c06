//! Makes a release: checks all that it needs, writes the version, commits, makes the packages, and tags. It never pushes.
//!
//! The tag comes last: a commit without it is a release that failed.

mod places;

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::paths;

use crate::{
    dist::{self, changelog::Changelog},
    setup, shell,
    test::{self, Checks},
};

#[derive(clap::Subcommand)]
pub enum Task {
    /// Makes the archive, packages and the container image in target/dist.
    Dist(dist::Options),
    /// Checks everything for a release, writes its version, makes the packages, and commits and tags it here.
    Release(Options),
}

impl Task {
    pub fn run(self) -> Result<()> {
        match self {
            Self::Dist(options) => dist::run(options),
            Self::Release(options) => run(options),
        }
    }
}

#[derive(clap::Args)]
pub struct Options {
    /// Version of the release: MAJOR.MINOR.PATCH
    version: String,
    /// Check everything, and change nothing; packages have the present version
    #[arg(long)]
    dry_run: bool,
    /// Run the tests in a dry run too, the slow ones included
    #[arg(long, requires = "dry_run")]
    tests: bool,
    /// Look for advisories about dependencies, in a database on the network
    #[arg(long)]
    advisories: bool,
    #[command(flatten)]
    dist: dist::Options,
}

fn run(options: Options) -> Result<()> {
    let start = Instant::now();
    let Options { version, dry_run, tests, advisories, dist } = options;
    let mut checks = Checks::default();
    state(&mut checks, &version, dry_run);
    signing(&mut checks, &dist, dry_run);
    dependencies(&mut checks, advisories);
    if dry_run {
        if tests {
            run_tests(&mut checks);
        } else {
            checks.skip("tests", "a release runs `cargo xtask test` and `cargo xtask test --slow`; --tests does here");
        }
        checks.check("packages, twice the same", || dist::run_twice(dist));
        return checks.conclude("release, dry run", "", start.elapsed());
    }
    // Tests take hours: nothing that is quick to see may be wrong before.
    checks.conclude("release, checks", "", start.elapsed())?;
    let mut checks = Checks::default();
    run_tests(&mut checks);
    checks.conclude("release, tests", "", start.elapsed())?;
    commit(&version)?;
    dist::run_twice(dist).with_context(|| {
        format!("making packages of the commit of {version}, which has no tag: undo it by `git reset --keep HEAD~1`")
    })?;
    git(&["tag", "--annotate", "--message", &format!("joular-bpf {version}"), &format!("v{version}")])?;
    println!("release: v{version} is a commit and a tag here; push both, and hand out the files above");
    Ok(())
}

/// What the tree must be like.
fn state(checks: &mut Checks, version: &str, dry_run: bool) {
    checks.check("version", || {
        let current = places::current(paths::root())?;
        ensure!(
            places::numbers(version)? > places::numbers(&current)?,
            "version {version} is not newer than {current}, which Cargo.toml has: give a newer one"
        );
        let tag = git(&["tag", "--list", &format!("v{version}")])?;
        ensure!(tag.trim().is_empty(), "there is a tag v{version} already: give a newer version");
        Ok(())
    });
    checks.check("version in all places", || places::check(paths::root(), &places::current(paths::root())?));
    checks.check("version in Cargo.lock", || update_lock(&["--locked"]));
    checks.check("changelog", || Changelog::read()?.unreleased().map(drop));
    checks.check("clean tree", || {
        let changed = git(&["status", "--porcelain"])?;
        ensure!(changed.is_empty(), "the tree has changes: commit or remove them:\n{changed}");
        Ok(())
    });
    checks.check("branch", || {
        let branch = git(&["branch", "--show-current"])?;
        ensure!(branch.trim() == "main", "the branch is '{}': releases are made of main", branch.trim());
        Ok(())
    });
    if dry_run && is_placeholder(dist::MAINTAINER) {
        return checks.skip("maintainer", "a release needs a real address in `authors` of Cargo.toml");
    }
    checks.check("maintainer", || {
        ensure!(!is_placeholder(dist::MAINTAINER), "{} is nobody's: change `authors` in Cargo.toml", dist::MAINTAINER);
        Ok(())
    });
}

/// Whether an address is of the domain that never exists.
fn is_placeholder(maintainer: &str) -> bool {
    maintainer.trim_end_matches('>').ends_with(".invalid")
}

fn signing(checks: &mut Checks, options: &dist::Options, dry_run: bool) {
    match &options.sign {
        Some(key) => drop(checks.check("key", || {
            ensure!(Path::new(key).is_file(), "there is no key {}: `minisign -G` makes one", key.display());
            Ok(())
        })),
        None if dry_run => checks.skip("signature", "a release needs --sign KEYFILE"),
        None => drop(checks.check::<()>("key", || bail!("checksums of a release are signed: give --sign KEYFILE"))),
    }
}

fn dependencies(checks: &mut Checks, advisories: bool) {
    let mut what = vec!["bans", "licenses", "sources"];
    if advisories {
        what.push("advisories");
    } else {
        checks.skip("advisories about dependencies", "--advisories looks for them, which needs the network");
    }
    checks.check("dependencies", || {
        setup::cargo_deny()?;
        // Warnings are of duplicates, which nobody reads here.
        shell::run(shell::cargo().args(["deny", "--log-level", "error", "check"]).args(what))
    });
}

fn run_tests(checks: &mut Checks) {
    checks.check("tests", || test::run(test::Options::default()));
    checks.check("slow tests", || test::run(test::Options::slow()));
}

/// Writes the version, and commits it.
fn commit(version: &str) -> Result<()> {
    let date = shell::capture(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?;
    places::write(paths::root(), version)?;
    Changelog::read()?.with_release(version, date.trim()).write()?;
    update_lock(&[])?;
    places::check(paths::root(), version)?;
    git(&["commit", "--all", "--quiet", "--message", &format!("Version {version}")]).map(drop)
}

/// Has cargo write the version of our crates in Cargo.lock, or check it.
fn update_lock(arguments: &[&str]) -> Result<()> {
    shell::run(shell::cargo().args(["update", "--workspace", "--offline", "--quiet"]).args(arguments))
}

fn git(arguments: &[&str]) -> Result<String> {
    shell::capture(Command::new("git").args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_exist_is_known() {
        assert!(is_placeholder("The developers <a@b.invalid>"));
        assert!(!is_placeholder("The developers <a@invalid.example>"));
    }
}
