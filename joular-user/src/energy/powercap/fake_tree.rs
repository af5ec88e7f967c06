//! Fakes a powercap tree in a temporary directory, as flat as `/sys/class/powercap`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

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

    /// Nobody may read it: on hardware, only root may.
    pub fn deny(&self, entry: &str, file: &str) {
        fs::set_permissions(self.root().join(entry).join(file), fs::Permissions::from_mode(0o000)).unwrap();
    }

    pub fn mend_file(&self, entry: &str, file: &str) {
        fs::remove_dir(self.root().join(entry).join(file)).unwrap();
    }
}

/// Runs it as a user without privileges, whoever runs the tests; such a user may
/// look into these directories.
pub fn unprivileged<T: Send>(directories: &[&Path], run: impl FnOnce() -> T + Send) -> T {
    /// Any but root.
    const NOBODY: u32 = 65_534;
    for directory in directories {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let as_nobody = || {
        // SAFETY: it changes as whom this thread, which ends here, opens files. With
        // root's id go the capabilities to read what the modes do not allow.
        unsafe { libc::setfsuid(NOBODY) };
        run()
    };
    std::thread::scope(|scope| scope.spawn(as_nobody).join().unwrap())
}
