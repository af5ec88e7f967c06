//! Tells one state of a data set from another: by the names, sizes and times of its files. Of a bucket it is the part that a
//! question is about, by names, sizes and tags.

use std::{
    fs,
    hash::Hasher as _,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use joular_data::report::profile::Listed;
use twox_hash::XxHash64;

/// Deeper folders are no data set's.
const DEEPEST: usize = 8;

/// A state of a data set. A recording publishes whole files and changes none, so states that are equal hold the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    hash: [u64; 2],
}

impl Identity {
    #[cfg(test)]
    pub const fn of_test(hash: u64) -> Self {
        Self { hash: [hash, 0] }
    }

    /// That of the files that were listed.
    pub const fn of_listed(listed: &Listed) -> Self {
        Self { hash: listed.hash }
    }

    /// # Errors
    /// If the folder cannot be listed.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut found = Vec::new();
        let mut folders = vec![(root.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                // It went away meanwhile.
                Err(_) if depth > 0 => continue,
                entries => entries?,
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(about) = entry.metadata() else { continue };
                if about.is_dir() && depth < DEEPEST {
                    folders.push((path, depth + 1));
                } else if about.is_file() {
                    found.push((path, about.size(), about.mtime(), about.mtime_nsec(), about.ino()));
                }
            }
        }
        found.sort_unstable();
        Ok(Self { hash: hash(&found) })
    }
}

/// By two seeds: 128 bits, so that states are not mistaken for each other.
fn hash(found: &[(PathBuf, u64, i64, i64, u64)]) -> [u64; 2] {
    [0, 1].map(|seed| {
        let mut hasher = XxHash64::with_seed(seed);
        for (path, size, seconds, nanoseconds, node) in found {
            let path = path.as_os_str().as_encoded_bytes();
            hasher.write_usize(path.len());
            hasher.write(path);
            hasher.write_u64(*size);
            hasher.write_i64(*seconds);
            hasher.write_i64(*nanoseconds);
            hasher.write_u64(*node);
        }
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_grows_or_goes_is_another_state() {
        let root = tempfile::tempdir().unwrap();
        let state = || Identity::of(root.path()).unwrap();
        let folder = root.path().join("runs/date=2026-03-01");
        fs::create_dir_all(&folder).unwrap();
        let mut states = vec![state()];
        let file = folder.join("a.parquet");
        for text in ["a", "bc"] {
            fs::write(&file, text).unwrap();
            states.push(state());
        }
        fs::rename(&file, folder.join("b.parquet")).unwrap();
        states.push(state());
        assert!(state() == states[3]);
        for (index, one) in states.iter().enumerate() {
            assert!(states[..index].iter().all(|other| other != one), "{index}");
        }
        assert!(Identity::of(&root.path().join("no")).is_err());
    }
}
