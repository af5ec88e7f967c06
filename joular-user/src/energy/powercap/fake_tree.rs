//! A powercap tree in a temporary directory, as flat as `/sys/class/powercap`.

use std::{fs, path::Path};

use tempfile::TempDir;

/// Range of a real register.
pub const RANGE: u64 = 262_143_328_850;

pub struct FakeTree {
    directory: TempDir,
}

impl Default for FakeTree {
    fn default() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }
}

impl FakeTree {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// A zone with the usual range.
    pub fn zone(self, entry: &str, name: &str, energy_uj: u64) -> Self {
        self.file(entry, "name", name).file(entry, "max_energy_range_uj", &RANGE.to_string()).file(
            entry,
            "energy_uj",
            &energy_uj.to_string(),
        )
    }

    pub fn file(self, entry: &str, file: &str, text: &str) -> Self {
        self.set(entry, file, text);
        self
    }

    /// Writes in place, as a counter advances.
    pub fn set(&self, entry: &str, file: &str, text: &str) {
        let directory = self.root().join(entry);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(file), format!("{text}\n")).unwrap();
    }

    pub fn remove(&self, entry: &str, file: &str) {
        // An open sysfs file fails once its zone is gone; an open plain file
        // lives on, so it is emptied first.
        let path = self.root().join(entry).join(file);
        fs::write(&path, "").unwrap();
        fs::remove_file(path).unwrap();
    }

    /// Reading a directory fails (EISDIR), as a broken counter does (EIO).
    pub fn break_file(&self, entry: &str, file: &str) {
        self.remove(entry, file);
        fs::create_dir(self.root().join(entry).join(file)).unwrap();
    }

    pub fn mend_file(&self, entry: &str, file: &str) {
        fs::remove_dir(self.root().join(entry).join(file)).unwrap();
    }
}
