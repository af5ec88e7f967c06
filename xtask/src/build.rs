//! Builds joular-bpf, and runs what was built as root. cargo itself never runs as another user, so
//! that nothing in `target` changes its owner.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use joular_tests::paths;

use crate::{
    setup, shell,
    target::{Library, Target},
};

/// How the profiler is built: see `[profile]` in Cargo.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build: for tests and the demo.
    Dev,
    /// For benchmarks, and for those who install from source.
    Release,
    /// For archives that are handed out.
    Archive,
}

impl From<bool> for Profile {
    /// Whether a release is wanted.
    fn from(is_release: bool) -> Self {
        if is_release { Self::Release } else { Self::Dev }
    }
}

impl Profile {
    /// As cargo calls it, and its folder below `target`.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Dev => ("dev", "debug"),
            Self::Release => ("release", "release"),
            Self::Archive => ("archive", "archive"),
        }
    }
}

/// Builds the profiler; returns where it is.
pub fn build(profile: Profile) -> Result<PathBuf> {
    setup::toolchain()?;
    let (name, folder) = profile.names();
    shell::step(&format!("building joular-bpf ({name})"));
    // Of the whole workspace, as tests are: for a part of it dependencies may have fewer
    // features, and would be built again.
    let mut cargo = if profile == Profile::Dev { shell::linting_cargo() } else { shell::cargo() };
    cargo.args(["build", "--workspace", "--bin", "joular-bpf", "--profile", name]);
    shell::run(&mut cargo)?;
    Ok(paths::target().join(folder).join("joular-bpf"))
}

#[derive(clap::Args)]
pub struct Options {
    #[arg(long)]
    release: bool,
    /// For a processor and a C library, as Rust calls them: `aarch64-unknown-linux-musl`
    #[arg(long)]
    target: Option<Target>,
}

/// What `cargo xtask build` makes: a program for this machine, or for another.
pub fn for_target(Options { release, target }: Options) -> Result<()> {
    let profile = release.into();
    let program = match target {
        Some(target) => build_portable(profile, target)?,
        None => build(profile)?,
    };
    println!("{}", program.display());
    Ok(())
}

/// Programs that emulated machines run.
pub struct Emulated {
    pub program: PathBuf,
    /// What holds a JVM for its image.
    pub jvm_image: PathBuf,
}

impl Emulated {
    /// Builds them at once. For a part of them crates may have fewer features, and would be built again.
    pub fn build(target: Target) -> Result<Self> {
        let directory = portable(Profile::Dev, target, &["joular-tests", "joular-user"], &["--example", "jvm_image"])?;
        Ok(Self { program: directory.join("joular-bpf"), jvm_image: directory.join("examples/jvm_image") })
    }
}

/// Builds the profiler to be handed out: no path of this machine is in it.
pub fn build_portable(profile: Profile, target: Target) -> Result<PathBuf> {
    Ok(portable(profile, target, &["joular-user"], &[])?.join("joular-bpf"))
}

/// The same with more of what these packages have; the directory where all of it is.
fn portable(profile: Profile, target: Target, packages: &[&str], more: &[&str]) -> Result<PathBuf> {
    setup::toolchain()?;
    setup::target(target)?;
    let triple = target.to_string();
    let (name, folder) = profile.names();
    shell::step(&format!("building joular-bpf ({name}) for {triple}"));
    let paths_elsewhere = paths_elsewhere()?;
    let flags = |option: &'static str| paths_elsewhere.iter().map(move |(from, to)| format!("{option}{from}={to}"));
    let mut cargo = shell::cargo();
    cargo.args(["build", "--bin", "joular-bpf", "--profile", name, "--target", &triple]).args(more);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    // Of Rust, and of the C that some libraries contain.
    let of_rust: Vec<String> = flags("--remap-path-prefix=").chain(linking(target)).collect();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", of_rust.join("\u{1f}"));
    let of_c: Vec<String> = flags("-ffile-prefix-map=").collect();
    let suffix = triple.replace('-', "_");
    cargo.env(format!("CFLAGS_{suffix}"), of_c.join(" "));
    if !target.processor.is_here() {
        for (variable, tool) in [("CC", "gcc"), ("AR", "ar")] {
            cargo.env(format!("{variable}_{suffix}"), target.processor.tool(tool));
        }
    }
    shell::run(&mut cargo)?;
    Ok(paths::target().join(triple).join(folder))
}

/// How a program for another processor is linked: for musl with what Rust brings along.
fn linking(Target { processor, library }: Target) -> Vec<String> {
    match library {
        _ if processor.is_here() => Vec::new(),
        Library::Gnu => vec![format!("-Clinker={}", processor.tool("gcc"))],
        Library::Musl => vec!["-Clinker=rust-lld".to_owned(), "-Clink-self-contained=yes".to_owned()],
    }
}

/// Directories of this machine that a program would name, and what it is to name instead.
fn paths_elsewhere() -> Result<Vec<(String, &'static str)>> {
    let sysroot = shell::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || env::home_dir().map(|home| home.join(".cargo"));
    let cargo_home = cargo_home.or_else(home).context("neither CARGO_HOME nor HOME is set")?;
    // The last that fits counts.
    let paths = [
        (paths::root().to_owned(), "/joular-bpf"),
        (paths::target(), "/target"),
        (cargo_home, "/cargo"),
        (Path::new(sysroot.trim()).to_owned(), "/rust"),
    ];
    Ok(paths.into_iter().map(|(path, name)| (path.display().to_string(), name)).collect())
}

/// Builds and runs with these arguments; its exit code becomes ours.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = build(Profile::Dev)?;
    let status = shell::as_root(&program, &[]).args(arguments).status()?;
    match status.code() {
        Some(0) => Ok(()),
        code => std::process::exit(code.unwrap_or(1)),
    }
}

/// A command of the profiler as root, in the developer's directory.
pub fn profiler(program: &PathBuf) -> Command {
    shell::as_root(program, &[])
}
