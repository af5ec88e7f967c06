//! Says how much a question has to read, and whether that changed: by the names, sizes and tags of files alone.

use std::{collections::HashSet, hash::Hasher as _, path::Path};

use twox_hash::XxHash64;

use super::filter::Filter;
use crate::dataset::{
    error::{DataSetError, Result},
    read::files,
    store::{self, StoredFile},
};

/// The files of a part of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Of names, sizes and tags: equal files have equal ones, and others do not.
    pub hash: [u64; 2],
    pub files: u64,
    /// The sizes of all files of the runs. Some of these are not read, or only in part.
    pub bytes: u64,
}

/// Whether there is any run: a bucket is asked for the first names only.
///
/// # Errors
/// If the store cannot be listed.
pub fn has_run(root: &Path) -> Result<bool> {
    files::has_run(&store::open(root)?)
}

impl Listed {
    /// What reading with each of these filters needs, one after the other. Nothing is selected where there is no run.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn of<'a>(root: &Path, filters: impl IntoIterator<Item = &'a Filter>) -> Result<Self> {
        let mut sums = Sums::default();
        for filter in filters {
            let found = match filter.sources.choice(root, filter)? {
                Some(choice) => choice.found(root, filter),
                None => files::find_all(&store::open(root)?, &filter.part()),
            };
            let found = match found {
                Err(DataSetError::NoRun { .. }) => continue,
                found => found?,
            };
            let runs = found.runs.iter().chain(&found.without_row).filter(|run| filter.may_allow(run));
            // Parts that differ may have the same files.
            sums.begin();
            for run in runs {
                // A file may have several tables.
                let mut seen = HashSet::new();
                run.all().filter(|file| seen.insert(file.path())).try_for_each(|file| sums.add(file))?;
            }
        }
        Ok(sums.listed())
    }

    /// What a list of all runs needs.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn of_rows(root: &Path) -> Result<Self> {
        let store = store::open(root)?;
        let mut sums = Sums::default();
        sums.begin();
        for row in files::rows_alone(&store)? {
            sums.add(&row.row)?;
        }
        Ok(sums.listed())
    }
}

/// A listing being summed.
#[derive(Default)]
struct Sums {
    hashers: Option<[XxHash64; 2]>,
    files: u64,
    bytes: u64,
}

impl Sums {
    fn write(&mut self, bytes: &[u8]) {
        // By two seeds: 128 bits, so that states are not mistaken for each other.
        let hashers = self.hashers.get_or_insert_with(|| [0, 1].map(XxHash64::with_seed));
        for hasher in hashers {
            hasher.write_usize(bytes.len());
            hasher.write(bytes);
        }
    }

    fn begin(&mut self) {
        self.write(b"part");
    }

    fn add(&mut self, file: &StoredFile) -> Result<()> {
        let stamp = match file.stamp() {
            // It was removed meanwhile: the next listing has not got it.
            Err(error) if error.is_gone() => return Ok(()),
            stamp => stamp?,
        };
        self.write(file.path().as_os_str().as_encoded_bytes());
        self.write(&stamp.size_bytes.to_le_bytes());
        self.write(stamp.tag.unwrap_or_default().as_bytes());
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(stamp.size_bytes);
        Ok(())
    }

    fn listed(self) -> Listed {
        let hash = self.hashers.map(|hashers| hashers.map(|hasher| hasher.finish())).unwrap_or_default();
        Listed { hash, files: self.files, bytes: self.bytes }
    }
}
