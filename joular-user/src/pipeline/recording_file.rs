//! Opens the file that a recording of events goes to.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown},
    path::Path,
};

use joular_data::events::recording::RecordingWriter;

use super::Failure;
use crate::privileges;

/// Creates the recording, or empties a file of the user's own. Root could easily be led to someone
/// else's file. So no link is followed, and only what is created here changes its owner.
pub(super) fn open(path: &Path) -> Result<RecordingWriter<Box<dyn Write>>, Failure> {
    let failed = |source| Failure::CreateRecording { path: path.into(), source };
    let mut options = OpenOptions::new();
    options.write(true).mode(0o640).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let user = privileges::invoking_user();
    let file = match options.clone().create_new(true).open(path) {
        Ok(file) => {
            if let Some((uid, gid)) = user {
                fchown(&file, Some(uid), Some(gid)).map_err(failed)?;
            }
            file
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options.open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_file() && user.is_some_and(|(uid, _)| uid != metadata.uid()) {
                return Err(failed(io::Error::other("it is another user's file")));
            }
            if metadata.is_file() {
                file.set_len(0).map_err(failed)?;
            }
            file
        }
        Err(error) => return Err(failed(error)),
    };
    Ok(RecordingWriter::new(Box::new(file) as Box<dyn Write>)?)
}
