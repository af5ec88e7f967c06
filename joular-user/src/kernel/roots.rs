//! Says where the kernel tells what it has, so that tests can put something else there.

use std::path::{Path, PathBuf};

/// Folders of the kernel's own files.
#[derive(Clone, Debug)]
pub struct KernelRoots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys/devices/system`
    pub system: PathBuf,
    /// `/sys/kernel`
    pub kernel: PathBuf,
}

impl KernelRoots {
    /// Folders `proc`, `system` and `kernel` of another one.
    pub fn below(root: &Path) -> Self {
        Self { proc: root.join("proc"), system: root.join("system"), kernel: root.join("kernel") }
    }
}

impl Default for KernelRoots {
    fn default() -> Self {
        Self { proc: "/proc".into(), system: "/sys/devices/system".into(), kernel: "/sys/kernel".into() }
    }
}
