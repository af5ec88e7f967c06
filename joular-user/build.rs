//! Builds the eBPF programs into `OUT_DIR/joular`.

use std::{env, fs, path::PathBuf};

use anyhow::{Context as _, anyhow};
use aya_build::{Package, Toolchain};

fn main() -> anyhow::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is not set")?);
    let root = manifest.join("../joular-ebpf");
    let root_dir = root.to_str().ok_or_else(|| anyhow!("{} is not UTF-8", root.display()))?;
    if env::var_os("AYA_BUILD_SKIP").is_some() {
        // `cargo check` and clippy need the file, not what is in it.
        let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
        fs::write(out.join("joular"), [])?;
        println!("cargo:rerun-if-env-changed=AYA_BUILD_SKIP");
        return Ok(());
    }
    // One stable toolchain builds both sides; `-Z build-std=core` needs the
    // bootstrap switch on it, for the package's own build only.
    // SAFETY: a build script is single-threaded here.
    unsafe { env::set_var("RUSTC_BOOTSTRAP", "1") };
    let toolchain = env::var("RUSTUP_TOOLCHAIN").unwrap_or_else(|_| "1.95.0".to_owned());
    aya_build::build_ebpf(
        [Package { name: "joular-ebpf", root_dir, no_default_features: false, features: &[] }],
        Toolchain::Custom(&toolchain),
    )
}
