//! Builds the eBPF programs into `OUT_DIR/joular`.
//!
//! The builder passes every line of the inner cargo on as a warning of this package. So
//! this program starts itself a second time to do the work, and passes the lines on only
//! if it fails: a good build says nothing.

use std::{
    env, fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, anyhow, ensure};
use aya_build::{Package, Toolchain};

/// Set for the second process.
const IS_BUILDER: &str = "JOULAR_BUILD_EBPF";

fn main() -> anyhow::Result<()> {
    if env::var_os("AYA_BUILD_SKIP").is_some() {
        // `cargo check` and clippy need the file, not what is in it.
        let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
        fs::write(out.join("joular"), [])?;
        println!("cargo:rerun-if-env-changed=AYA_BUILD_SKIP");
        return Ok(());
    }
    if env::var_os(IS_BUILDER).is_some() { build() } else { start_builder() }
}

fn start_builder() -> anyhow::Result<()> {
    let program = env::current_exe().context("finding this build script")?;
    let builder = Command::new(&program).env(IS_BUILDER, "1").stdout(Stdio::piped()).spawn();
    let output = builder.and_then(|builder| builder.wait_with_output()).context("building the eBPF programs")?;
    let is_wanted = |line: &&[u8]| !output.status.success() || !line.starts_with(b"cargo:warning=");
    let mut out = std::io::stdout().lock();
    for line in output.stdout.split_inclusive(|byte| *byte == b'\n').filter(is_wanted) {
        out.write_all(line)?;
    }
    ensure!(output.status.success(), "building the eBPF programs: {}: see the warnings above", output.status);
    Ok(())
}

fn build() -> anyhow::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is not set")?);
    let root = manifest.join("../joular-ebpf");
    let root_dir = root.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", root.display()))?;
    // One stable toolchain builds both sides; `-Z build-std=core` needs the
    // bootstrap switch on it, for the package's own build only.
    // SAFETY: a build script is single-threaded here.
    unsafe { env::set_var("RUSTC_BOOTSTRAP", "1") };
    let toolchain = env::var("RUSTUP_TOOLCHAIN").unwrap_or_else(|_| "1.95.0".to_owned());
    // The programs' line tables shall not name directories of this machine: builds are reproducible.
    for (name, value) in [("CARGO_UNSTABLE_TRIM_PATHS", "true"), ("CARGO_PROFILE_RELEASE_TRIM_PATHS", "all")] {
        // SAFETY: as above.
        unsafe { env::set_var(name, value) };
    }
    aya_build::build_ebpf(
        [Package { name: "joular-ebpf", root_dir, no_default_features: false, features: &[] }],
        Toolchain::Custom(&toolchain),
    )
}
