//! Reads many files one after the other, while other threads decode what comes next.
//!
//! The caller gets the rows in the order of files, so the result does not depend on the number of
//! threads. At most [`FILES_AHEAD`] files wait, with [`BATCHES_AHEAD`] batches each: some 50 MB of
//! a table's rows.

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, channel, sync_channel},
    },
    thread,
};

use arrow_array::RecordBatch;

use super::{
    asked::Asked,
    columns::{Columns, TableFile},
    side_by_side,
    span::Span,
};
use crate::dataset::{error::Result, store::StoredFile};

/// Bundles, of a table of which the rows wait for each thread.
const RUNS_OF_A_THREAD: usize = 4;
/// Decoded batches of a file that nobody has taken yet.
const BATCHES_AHEAD: usize = 4;
/// Files that are worked on at a time; the next one starts when the first of them is taken.
const FILES_AHEAD: usize = 16;

/// Calls `take` once without rows, which says what is read of files, and then for every batch of rows of the files, but for rows that
/// are known to be of windows outside this span.
///
/// # Errors
/// The first that opening, reading or `take` has, in the order of files.
pub(crate) fn batches(
    files: &[StoredFile],
    span: &Span,
    mut take: impl FnMut(&Columns<'_>) -> Result<()>,
) -> Result<()> {
    take_all(files, span, &mut take)
}

/// The same for all callers: their code is not compiled into threads and channels of its own for each of them.
fn take_all(files: &[StoredFile], span: &Span, take: &mut dyn FnMut(&Columns<'_>) -> Result<()>) -> Result<()> {
    let asked = RefCell::default();
    take(&Columns::asking(&asked))?;
    let asked: Asked = asked.into_inner();
    let open = |file: &StoredFile| TableFile::open_asked(file, &asked, span);
    // All rows of a table in a bundle are one batch.
    if is_of_bundles(files) {
        return files.iter().try_for_each(|file| decoded(file, &asked, span)?.taken(&asked, take));
    }
    let threads = side_by_side::threads();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        files.iter().map(|file| (file, sync_channel(BATCHES_AHEAD))).map(ends).unzip();
    let (allow, allowed) = channel();
    let left = Mutex::new((allowed, senders.into_iter()));
    thread::scope(|scope| {
        // It goes before the threads are waited for, and with it whoever waits to be allowed a file.
        let allow = allow;
        let allow_one = || {
            let _ = allow.send(());
        };
        (0..FILES_AHEAD).for_each(|_| allow_one());
        for _ in 0..threads.min(files.len()) {
            scope.spawn(|| {
                let next = || {
                    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                    left.0.recv().ok()?;
                    left.1.next()
                };
                while let Some((file, sender)) = next() {
                    send(file, &open, &sender);
                }
            });
        }
        // On an error the receivers go, and with them whoever wants to send.
        receivers.into_iter().try_for_each(|(file, receiver): (&StoredFile, Batches)| {
            let path = file.path();
            receiver.into_iter().try_for_each(|batch| {
                let (version, batch) = batch?;
                take(&Columns::of(&path, version, &batch, Some(&asked)))
            })?;
            allow_one();
            Ok(())
        })
    })
}

/// The same with the files of each run, which have a span of their own. `take` also gets the place of the run.
///
/// # Errors
/// As [`batches`].
pub(crate) fn batches_of_runs(
    runs: &[(Vec<StoredFile>, Span)],
    mut take: impl FnMut(usize, &Columns<'_>) -> Result<()>,
) -> Result<()> {
    take_all_of_runs(runs, &mut take)
}

fn take_all_of_runs(
    runs: &[(Vec<StoredFile>, Span)],
    take: &mut dyn FnMut(usize, &Columns<'_>) -> Result<()>,
) -> Result<()> {
    let at_once = RUNS_OF_A_THREAD * side_by_side::threads();
    let mut asked = None;
    for (chunk, first) in runs.chunks(at_once).zip((0..).step_by(at_once)) {
        if !chunk.iter().all(|(files, _)| is_of_bundles(files)) {
            let mut numbered = chunk.iter().zip(first..);
            numbered.try_for_each(|((files, span), run)| take_all(files, span, &mut |columns| take(run, columns)))?;
            continue;
        }
        let asked = match &mut asked {
            Some(asked) => &*asked,
            none => {
                let asking = RefCell::default();
                take(first, &Columns::asking(&asking))?;
                &*none.insert(asking.into_inner())
            }
        };
        let of_run = |(files, span): &(Vec<StoredFile>, Span)| {
            files.iter().map(|file| decoded(file, asked, span)).collect::<Result<Vec<_>>>()
        };
        for (decoded, run) in side_by_side::in_order(chunk, of_run).into_iter().zip(first..) {
            decoded?.iter().try_for_each(|file| file.taken(asked, &mut |columns| take(run, columns)))?;
        }
    }
    Ok(())
}

fn is_of_bundles(files: &[StoredFile]) -> bool {
    files.iter().all(|file| file.table().is_some())
}

/// All rows of a table in a bundle.
struct Decoded {
    path: PathBuf,
    version: i64,
    batches: Vec<RecordBatch>,
}

fn decoded(file: &StoredFile, asked: &Asked, span: &Span) -> Result<Decoded> {
    let mut rows = TableFile::open_asked(file, asked, span)?;
    let batches = std::iter::from_fn(|| rows.next_batch()).collect::<Result<Vec<_>>>()?;
    Ok(Decoded { path: file.path(), version: rows.version(), batches })
}

impl Decoded {
    fn taken(&self, asked: &Asked, take: &mut dyn FnMut(&Columns<'_>) -> Result<()>) -> Result<()> {
        let columns = |batch| Columns::of(&self.path, self.version, batch, Some(asked));
        self.batches.iter().try_for_each(|batch| take(&columns(batch)))
    }
}

/// Each with the version of its file's schema.
type Batches = Receiver<Result<(i64, RecordBatch)>>;
type Sender = SyncSender<Result<(i64, RecordBatch)>>;

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
        if sender.send(batch.map(|batch| (file.version(), batch))).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{
        fixture,
        read::files,
        store,
        tables::{Branches, shared},
    };

    /// The same file, more often than files are worked on at a time.
    fn many(root: &std::path::Path) -> Vec<StoredFile> {
        fixture::write(root, crate::model::policy::Policy::default());
        let runs = files::find(&store::open(root).unwrap()).unwrap();
        let file = runs[0].parts.iter().find_map(|(_, part)| part.file::<Branches>()).unwrap();
        vec![file.clone(); 3 * FILES_AHEAD]
    }

    #[test]
    fn all_files_are_taken_in_their_order() {
        let root = tempfile::tempdir().unwrap();
        let files = many(root.path());
        let mut rows = Vec::new();
        batches(&files, &Span::default(), |columns| {
            let starts = columns.times(shared::WINDOW_START)?;
            assert!((0..columns.rows()).all(|row| starts.get(row).is_ok()));
            rows.push(columns.rows());
            Ok(())
        })
        .unwrap();
        assert_eq!(rows.remove(0), 0, "what is asked for");
        assert_eq!(rows.len() % files.len(), 0);
        let of_one = rows.len() / files.len();
        assert!(rows.chunks(of_one).all(|of_file| of_file == &rows[..of_one]), "{rows:?}");
    }

    #[test]
    fn an_error_ends_it_whoever_waits() {
        let root = tempfile::tempdir().unwrap();
        let mut files = many(root.path());
        let mut left = 2;
        let failed = batches(&files, &Span::default(), |columns| {
            columns.times(shared::WINDOW_START)?;
            left -= usize::from(columns.rows() > 0);
            if left == 0 { Err(columns.damaged("enough")) } else { Ok(()) }
        });
        assert!(failed.unwrap_err().to_string().contains("enough"));
        std::fs::remove_dir_all(root.path()).unwrap();
        files.truncate(1);
        assert!(batches(&files, &Span::default(), |_| Ok(())).is_err(), "it is gone");
    }
}
