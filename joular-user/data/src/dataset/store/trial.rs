//! Tries a place that hosts ship to: writes a file, writes it again, reads it, and removes it.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::Path,
};

use super::{Published, Store, directory::PARTIAL};
use crate::output::Result;

const CONTENT: &[u8] = b"Written by joular-bpf agent --check --deep. It can be removed.\n";

/// What a place allows. All of them can be written to.
///
/// Where files are not created but written after a look ([`crate::shipping::Options::looks_first`]), nothing is tried of what is
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Whether a file that is there stays as it is. Otherwise, what arrives twice may be there twice.
    pub keeps_what_is_there: bool,
    /// Why the file could not be read.
    pub unread: Option<String>,
    /// Why it could not be removed, and stays.
    pub unremoved: Option<String>,
}

/// Tries a place. `creates`: whether files are created there, which leaves alone what is there already.
///
/// # Errors
/// If no file can be written there.
pub fn try_place(place: &dyn Store, creates: bool) -> Result<Trial> {
    // Beside the tables, where files are that are not whole yet.
    let name = format!("check-{:016x}", RandomState::new().hash_one(PARTIAL));
    let (folder, file) = (Path::new(PARTIAL), Path::new(PARTIAL).join(&name));
    if creates {
        place.publish_new(folder, &name, CONTENT)?;
    } else {
        place.publish(folder, &name, CONTENT)?;
    }
    let keeps_what_is_there =
        creates && matches!(place.publish_new(folder, &name, CONTENT), Ok(Published::AlreadyThere));
    let read = place.open(&file).map_err(|error| error.to_string());
    let read = read.and_then(|object| object.read_all().map_err(|error| error.to_string()));
    let unread = match read {
        Ok(bytes) if bytes == CONTENT => None,
        Ok(_) => Some("it has other content than what was written".to_owned()),
        Err(error) => Some(error),
    };
    let unremoved = place.remove(&file).err().map(|error| error.to_string());
    Ok(Trial { keeps_what_is_there, unread, unremoved })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::store::LocalDirectory;

    #[test]
    fn a_directory_allows_all_and_nothing_of_the_trial_stays() {
        let root = tempfile::tempdir().unwrap();
        let trial = try_place(&LocalDirectory::new(root.path(), None), true).unwrap();
        assert_eq!(trial, Trial { keeps_what_is_there: true, unread: None, unremoved: None });
        assert_eq!(fs::read_dir(root.path().join(PARTIAL)).unwrap().count(), 0);
        let trial = try_place(&LocalDirectory::new(root.path(), None), false).unwrap();
        assert_eq!(trial, Trial { keeps_what_is_there: false, unread: None, unremoved: None });
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(PARTIAL), "").unwrap();
        let error = try_place(&LocalDirectory::new(root.path(), None), true).unwrap_err().to_string();
        assert!(error.contains(PARTIAL), "{error}");
    }
}
