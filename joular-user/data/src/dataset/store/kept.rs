//! Keeps a place for a server, which reads it again and again: what was listed is known for a bounded time, and small
//! files that were read are kept as long as they have their tag.
//!
//! Whoever opens the place meanwhile gets it as it is kept. So a server and all that it asks share one listing, and nobody
//! between them has to know.

mod small;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;

use self::small::{SMALL_BYTES, SmallFiles};
use super::{Claim, ClaimKind, Near, Object, Part, Published, Room, Stamp, Store, place::Place};
use crate::{
    dataset::{
        bundle::{BUNDLES, FLEET},
        error::{DataSetError, Result as ReadResult},
    },
    output::Result,
};

/// What is known is forgotten, and connections are made anew, after so many times of a listing.
const LISTINGS: u32 = 20;
/// Parts whose listings are known at a time.
const MOST_LISTINGS: usize = 64;
/// Names in all of these together: some 200 MB.
const MOST_NAMES: usize = 1_000_000;

/// Places that are kept.
static KEEPERS: Mutex<Vec<Weak<Keeper>>> = Mutex::new(Vec::new());

/// Keeps a bucket until it is dropped, which must not happen within an event loop.
#[derive(Debug)]
pub struct Keeper {
    root: PathBuf,
    known_for: Duration,
    small: Arc<SmallFiles>,
    now: Mutex<Option<(Instant, Arc<Kept>)>>,
}

/// A store, and what is known of it.
struct Kept {
    inner: Arc<dyn Store>,
    known_for: Duration,
    small: Arc<SmallFiles>,
    listings: Mutex<Vec<Arc<Listing>>>,
    /// What says in which groups hosts are, and when it was read; `None`: there is nothing.
    fleet: Mutex<Option<(Instant, Option<Bytes>)>>,
}

/// Files of a part of the data set, and when they were listed.
struct Listing {
    tables: Vec<String>,
    part: Part,
    most: usize,
    /// Who lists it holds this, so that others who want the same wait for it.
    found: Mutex<Option<(Instant, Vec<PathBuf>)>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("inner", &self.inner).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a bucket, whose listings are known for so long, and `small_bytes` of its small files. `None` for a directory, at
/// which looking costs nothing.
///
/// # Errors
/// If `root` is not a place.
pub fn keep(root: &Path, known_for: Duration, small_bytes: u64) -> ReadResult<Option<Arc<Keeper>>> {
    if matches!(Place::of(root)?, Place::Directory(_)) {
        return Ok(None);
    }
    let small = Arc::new(SmallFiles::new(small_bytes));
    let keeper = Arc::new(Keeper { root: root.to_owned(), known_for, small, now: Mutex::default() });
    let mut keepers = lock(&KEEPERS);
    keepers.retain(|keeper| keeper.strong_count() > 0);
    keepers.push(Arc::downgrade(&keeper));
    Ok(Some(keeper))
}

/// A place as it is kept, if it is.
pub(super) fn kept(root: &Path, open: impl FnOnce() -> ReadResult<Arc<dyn Store>>) -> ReadResult<Arc<dyn Store>> {
    let found = lock(&KEEPERS).iter().filter_map(Weak::upgrade).find(|keeper| keeper.root == root);
    match found {
        Some(keeper) => keeper.store(open),
        None => open(),
    }
}

impl Keeper {
    fn store(&self, open: impl FnOnce() -> ReadResult<Arc<dyn Store>>) -> ReadResult<Arc<dyn Store>> {
        let mut now = lock(&self.now);
        if let Some((since, kept)) = &*now
            && since.elapsed() < self.known_for.saturating_mul(LISTINGS)
        {
            return Ok(Arc::clone(kept) as Arc<dyn Store>);
        }
        let kept = Arc::new(Kept::new(open()?, self.known_for, Arc::clone(&self.small)));
        let before = now.replace((Instant::now(), Arc::clone(&kept)));
        drop(now);
        // Those who read by it keep it until they are done.
        drop(before);
        Ok(kept)
    }

    /// Forgets what was listed, because it turned out to be wrong.
    pub fn forget(&self) {
        if let Some((_, kept)) = &*lock(&self.now) {
            lock(&kept.listings).clear();
            *lock(&kept.fleet) = None;
        }
    }
}

impl Kept {
    fn new(inner: Arc<dyn Store>, known_for: Duration, small: Arc<SmallFiles>) -> Self {
        Self { inner, known_for, small, listings: Mutex::default(), fleet: Mutex::default() }
    }

    /// The file [`FLEET`], which has no tag because no listing has it: it is asked for with every listing of a host.
    fn fleet(&self) -> ReadResult<Object> {
        let path = || self.path().join(FLEET);
        let mut fleet = lock(&self.fleet);
        if fleet.as_ref().is_none_or(|(at, _)| at.elapsed() >= self.known_for) {
            let read = match self.inner.open(Path::new(FLEET)) {
                Err(error) if error.is_gone() => None,
                Ok(object) if object.size_bytes() <= SMALL_BYTES => {
                    let bytes = object.read_all();
                    Some(Bytes::from(bytes.map_err(|cause| DataSetError::Bucket { path: path(), cause })?))
                }
                // Whoever reads it says what is wrong.
                other => return other,
            };
            *fleet = Some((Instant::now(), read));
        }
        let known = fleet.as_ref().and_then(|(_, read)| read.clone());
        drop(fleet);
        let Some(bytes) = known else {
            return Err(DataSetError::Bucket { path: path(), cause: io::ErrorKind::NotFound.into() });
        };
        let size_bytes = bytes.len() as u64;
        Ok(Object::new(bytes, size_bytes))
    }

    /// Where the listing of a part is, or will be.
    fn listing(&self, tables: &[&str], part: &Part, most: usize) -> Arc<Listing> {
        let mut listings = lock(&self.listings);
        let is_it = |one: &&Arc<Listing>| one.most == most && one.tables == tables && one.part == *part;
        if let Some(known) = listings.iter().find(is_it) {
            return Arc::clone(known);
        }
        if listings.len() >= MOST_LISTINGS {
            listings.remove(0);
        }
        let tables = tables.iter().map(|table| (*table).to_owned()).collect();
        let new = Arc::new(Listing { tables, part: part.clone(), most, found: Mutex::default() });
        listings.push(Arc::clone(&new));
        new
    }

    /// What `list` gives, or what it gave not long ago.
    fn known(
        &self,
        tables: &[&str],
        part: &Part,
        most: usize,
        list: impl FnOnce() -> ReadResult<Vec<PathBuf>>,
    ) -> ReadResult<Vec<PathBuf>> {
        let listing = self.listing(tables, part, most);
        let mut found = lock(&listing.found);
        if let Some((at, files)) = &*found
            && at.elapsed() < self.known_for
        {
            return Ok(files.clone());
        }
        // What cannot be listed is asked for again.
        let files = list()?;
        *found = Some((Instant::now(), files.clone()));
        drop(found);
        self.trim();
        Ok(files)
    }

    /// Forgets listings whose time is over, and the oldest ones if all together have too many names.
    fn trim(&self) {
        let mut names = 0_usize;
        let mut is_kept = |listing: &Arc<Listing>| match listing.found.try_lock() {
            Ok(found) => found.as_ref().is_none_or(|(at, files)| {
                names = names.saturating_add(files.len());
                at.elapsed() < self.known_for && names <= MOST_NAMES
            }),
            // Somebody lists it.
            Err(_) => true,
        };
        let mut listings = lock(&self.listings);
        let newest_first: Vec<_> = listings.drain(..).rev().filter(&mut is_kept).collect();
        listings.extend(newest_first.into_iter().rev());
    }
}

/// What is far away is asked as seldom as may be; all else is passed on.
impl Store for Kept {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.list_part(&[table], &Part::default(), most)
    }

    fn list_part(&self, tables: &[&str], part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.known(tables, part, most, || self.inner.list_part(tables, part, most))
    }

    fn list_bundles(&self, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        // No table is called so.
        self.known(&[BUNDLES], part, most, || self.inner.list_bundles(part, most))
    }

    fn expect(&self, files: &mut dyn Iterator<Item = &Path>) {
        self.inner.expect(&mut files.filter(|file| !self.small.has(file, self.inner.stamp(file).ok().as_ref())));
    }

    fn near(&self, bundle: &Path) -> Option<Arc<Near>> {
        self.inner.near(bundle)
    }

    fn data_set_of<'a>(&self, file: &'a Path) -> (Option<&'a Path>, &'a Path) {
        self.inner.data_set_of(file)
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        if file == Path::new(FLEET) {
            return self.fleet();
        }
        let stamp = match self.inner.stamp(file) {
            Ok(stamp) if self.small.takes(&stamp) => stamp,
            _ => return self.inner.open(file),
        };
        if let Some(bytes) = self.small.get(file, &stamp) {
            return Ok(Object::new(bytes, stamp.size_bytes));
        }
        let read = self.inner.open(file)?.read_all();
        let bytes = read.map_err(|cause| DataSetError::Bucket { path: self.path().join(file), cause })?;
        let size_bytes = bytes.len() as u64;
        Ok(Object::new(self.small.put(file, &stamp, bytes), size_bytes))
    }

    fn stamp(&self, file: &Path) -> ReadResult<Stamp> {
        self.inner.stamp(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        self.inner.publish(folder, name, bytes)
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published> {
        self.inner.publish_new(folder, name, bytes)
    }

    fn remove(&self, file: &Path) -> Result<()> {
        self.inner.remove(file)
    }

    fn remove_all(&self, files: &[PathBuf]) -> Result<()> {
        self.inner.remove_all(files)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        self.inner.find(folder, name)
    }

    fn room(&self) -> Option<Room> {
        self.inner.room()
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim> {
        self.inner.claim(kind)
    }
}

#[cfg(test)]
mod tests;
