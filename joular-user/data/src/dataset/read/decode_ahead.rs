//! Reads many files one after the other, while other threads decode what comes next.
//!
//! The caller gets the rows in the order of files, so the result does not depend on the number of
//! threads. At most [`FILES_AHEAD`] files wait, with [`BATCHES_AHEAD`] batches each: some 50 MB of
//! a table's rows.

use std::{
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use arrow_array::RecordBatch;

use super::columns::{Columns, TableFile};
use crate::dataset::{error::Result, store::StoredFile};

/// More threads do not help, because one thread takes all rows.
const MAX_THREADS: usize = 8;
/// Decoded batches of a file that nobody has taken yet.
const BATCHES_AHEAD: usize = 4;
/// Files that are worked on at a time; the next ones start when all of them are taken.
const FILES_AHEAD: usize = 16;

/// Calls `take` for every batch of rows of files that `open` opens.
///
/// # Errors
/// The first that opening, reading or `take` has, in the order of files.
pub(crate) fn batches(
    files: &[StoredFile],
    open: impl Fn(&StoredFile) -> Result<TableFile> + Sync,
    mut take: impl FnMut(&Columns<'_>) -> Result<()>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    for files in files.chunks(FILES_AHEAD) {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            files.iter().map(|file| (file, sync_channel(BATCHES_AHEAD))).map(ends).unzip();
        let left = Mutex::new(senders.into_iter());
        thread::scope(|scope| {
            for _ in 0..threads.min(files.len()) {
                scope.spawn(|| {
                    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
                    while let Some((file, sender)) = next() {
                        send(file, &open, &sender);
                    }
                });
            }
            // On an error the receivers go, and with them whoever wants to send.
            receivers.into_iter().try_for_each(|(file, receiver): (&StoredFile, Batches)| {
                let path = file.path();
                receiver.into_iter().try_for_each(|batch| take(&Columns::of(&path, &batch?)))
            })
        })?;
    }
    Ok(())
}

type Batches = Receiver<Result<RecordBatch>>;
type Sender = SyncSender<Result<RecordBatch>>;

fn ends(
    (file, (sender, receiver)): (&StoredFile, (Sender, Batches)),
) -> ((&StoredFile, Sender), (&StoredFile, Batches)) {
    ((file, sender), (file, receiver))
}

/// Sends batches until the file ends, something fails, or nobody wants any more.
fn send(file: &StoredFile, open: &impl Fn(&StoredFile) -> Result<TableFile>, sender: &Sender) {
    let mut file = match open(file) {
        Ok(file) => file,
        Err(error) => {
            let _ = sender.send(Err(error));
            return;
        }
    };
    while let Some(batch) = file.next_batch() {
        let is_last = batch.is_err();
        if sender.send(batch).is_err() || is_last {
            return;
        }
    }
}
