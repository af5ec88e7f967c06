//! Keeps what is known of the library files of run-time systems.
//!
//! What a file says holds for all of its copies. What a process shows of it is used only for processes of
//! the same user that have the same file, and not for copies of it in other containers: it could show anything.

use std::{collections::HashMap, sync::Arc};

use super::files::{FileKey, FileUse};
use crate::runtimes::Build;

/// Files known at the same time: the copies in containers are many, and small.
const MAX_FILES: usize = 1024;
const MAX_CONTENTS: usize = 64;

/// A library file of a process, and the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    pub file: FileUse,
    pub user: u32,
}

/// What is known of a library before a process with it is opened.
#[derive(Clone, Debug)]
pub enum Known {
    /// All of it.
    Build(Arc<dyn Build>),
    /// What its copy says, or the same file of another user.
    Copy(Arc<dyn Build>),
    Nothing,
}

#[derive(Debug, Default)]
pub struct Builds {
    of_files: HashMap<(FileKey, u32), Arc<dyn Build>>,
    /// Any one of each contents.
    of_contents: HashMap<FileKey, Arc<dyn Build>>,
}

impl Builds {
    pub fn of(&self, library: Library) -> Known {
        if let Some(build) = self.of_files.get(&(library.file.own, library.user)) {
            return Known::Build(Arc::clone(build));
        }
        let copy = self.of_contents.get(&library.file.key);
        copy.map_or(Known::Nothing, |copy| Known::Copy(Arc::clone(copy)))
    }

    /// Keeps a build that has served. One that has not may have been read half relocated.
    pub fn insert(&mut self, library: Library, build: Arc<dyn Build>) {
        if self.of_files.len() >= MAX_FILES {
            self.of_files.clear();
        }
        if self.of_contents.len() >= MAX_CONTENTS {
            self.of_contents.clear();
        }
        self.of_contents.entry(library.file.key).or_insert_with(|| Arc::clone(&build));
        self.of_files.insert((library.file.own, library.user), build);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::{Instance, LoadedLibrary, OpenError};

    struct Named(&'static str);

    impl std::fmt::Debug for Named {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Build for Named {
        fn open(self: Arc<Self>, _library: &LoadedLibrary<'_>) -> Result<Box<dyn Instance>, OpenError> {
            Err(OpenError::Starting)
        }

        fn of_copy(&self, _library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
            Err(OpenError::Starting)
        }
    }

    fn library(contents: u64, own: u64, user: u32) -> Library {
        Library { file: FileUse { key: FileKey::of_test(contents), own: FileKey::of_test(own) }, user }
    }

    #[test]
    fn a_process_shows_only_its_own_user_what_a_file_is_and_the_file_shows_all() {
        let mut builds = Builds::default();
        builds.insert(library(1, 1, 0), Arc::new(Named("first")));
        builds.insert(library(1, 2, 0), Arc::new(Named("of a container")));
        for (asked, expected) in [
            (library(1, 1, 0), "Build(first)"),
            (library(1, 2, 0), "Build(of a container)"),
            (library(1, 1, 7), "Copy(first)"),
            (library(1, 3, 0), "Copy(first)"),
            (library(4, 4, 0), "Nothing"),
        ] {
            assert_eq!(format!("{:?}", builds.of(asked)), expected, "{asked:?}");
        }
    }

    #[test]
    fn builds_are_bounded() {
        let mut builds = Builds::default();
        for number in 0..2 * MAX_FILES as u64 {
            builds.insert(library(number, number, 0), Arc::new(Named("any")));
            assert!(builds.of_files.len() <= MAX_FILES && builds.of_contents.len() <= MAX_CONTENTS);
            assert!(matches!(builds.of(library(number, number, 0)), Known::Build(_)), "the newest is there");
        }
    }
}
