//! Finds where things are in the source tree and below `target`.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The workspace's root.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The profiler under test: `JOULAR_BPF`, or the release build.
pub fn joular_bpf() -> PathBuf {
    env::var_os("JOULAR_BPF").map_or_else(|| target().join("release/joular-bpf"), PathBuf::from)
}

/// The environment variable that names the profiler for aarch64, where it was built.
pub const AARCH64: &str = "JOULAR_BPF_AARCH64";

/// The profiler for aarch64, if it was built.
pub fn joular_bpf_for_aarch64() -> Option<PathBuf> {
    env::var_os(AARCH64).map(PathBuf::from)
}

/// The environment variable that names what holds a JVM on aarch64 for its image, where it was built.
pub const IMAGE_OF_AARCH64: &str = "JVM_IMAGE_AARCH64";

/// What holds a JVM on aarch64 for its image, if it was built.
pub fn jvm_image_for_aarch64() -> Option<PathBuf> {
    env::var_os(IMAGE_OF_AARCH64).map(PathBuf::from)
}

pub fn fixtures() -> PathBuf {
    root().join("tests/fixtures")
}
