//! Makes up trees like `/sys` and `/proc`.

use std::{fs, path::PathBuf};

use super::Roots;

pub(super) struct FakeTree {
    root: tempfile::TempDir,
    cpu: PathBuf,
    sys: PathBuf,
    proc: PathBuf,
}

impl FakeTree {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let [cpu, sys, proc] = ["cpu", "sys", "proc"].map(|name| root.path().join(name));
        Self { root, cpu, sys, proc }
    }

    pub(super) fn roots(&self) -> Roots<'_> {
        Roots { cpu: &self.cpu, sys: &self.sys, proc: &self.proc }
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn remove(&self, path: &str) {
        fs::remove_dir_all(self.root.path().join(path)).unwrap();
    }
}
