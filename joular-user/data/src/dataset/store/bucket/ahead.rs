//! Fetches small files of a bucket before they are asked for, many at once, in the order in which they will be.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Client, IN_FLIGHT,
    file::{Named, SMALL_BYTES, get},
};

/// Bytes that are held at most, of files that nobody has asked for yet.
const MOST_BYTES: usize = 32 << 20;
/// Room is counted in these.
const UNIT_BYTES: u64 = 1 << 10;

/// What is being fetched.
#[derive(Default)]
pub(super) struct Ahead {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Of what is fetched now: whoever fetches for an earlier one stops.
    round: u64,
    room: Option<Arc<Semaphore>>,
    files: HashMap<PathBuf, Slot>,
}

enum Slot {
    /// Its turn has not come.
    Waits,
    /// The request is under way.
    Asked,
    /// With the room that it takes.
    Here(Bytes, OwnedSemaphorePermit),
    Failed,
}

impl Ahead {
    /// Fetches these files, and forgets those of an earlier call.
    pub(super) fn begin(self: &Arc<Self>, client: &Arc<Client>, files: Vec<(PathBuf, Named)>) {
        let files: Vec<_> =
            files.into_iter().filter(|(_, named)| (1..=SMALL_BYTES).contains(&named.size_bytes)).collect();
        let room = Arc::new(Semaphore::new(MOST_BYTES / usize::try_from(UNIT_BYTES).unwrap_or(1)));
        let round = {
            let mut state = self.forget();
            state.files = files.iter().map(|(path, _)| (path.clone(), Slot::Waits)).collect();
            state.room = Some(Arc::clone(&room));
            state.round
        };
        // One file is fetched as soon by whoever asks for it.
        if files.len() < 2 {
            return self.end();
        }
        let (ahead, client) = (Arc::clone(self), Arc::clone(client));
        let fetch_all = move || {
            let _end = End { ahead: &ahead, round };
            let fetch = |(path, named): (PathBuf, Named)| {
                let (ahead, client, room) = (&ahead, &client, Arc::clone(&room));
                async move {
                    let units = u32::try_from(named.size_bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
                    let Ok(permit) = room.acquire_many_owned(units).await else { return };
                    if ahead.asks(&path, round) {
                        let bytes = get(client, &named, 0..named.size_bytes).await;
                        ahead.has(&path, round, bytes.ok().map(|bytes| (bytes, permit)));
                    }
                }
            };
            let all = stream::iter(files).map(fetch).buffer_unordered(IN_FLIGHT).for_each(|()| async {});
            // Whoever asks for a file that was not fetched is told why.
            let _ = client.wait(async {
                all.await;
                Ok(())
            });
        };
        if thread::Builder::new().name("fetch ahead".to_owned()).spawn(fetch_all).is_err() {
            self.end();
        }
    }

    /// A file that was fetched; waits for one that is on its way. `None`: it is not.
    pub(super) fn take(&self, path: &Path) -> Option<Bytes> {
        let mut state = self.lock();
        while matches!(state.files.get(path), Some(Slot::Asked)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.files.remove(path)? {
            Slot::Here(bytes, _room) => Some(bytes),
            Slot::Waits | Slot::Asked | Slot::Failed => None,
        }
    }

    /// Stops what is being fetched.
    pub(super) fn end(&self) {
        drop(self.forget());
    }

    fn forget(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.round += 1;
        state.files.clear();
        if let Some(room) = state.room.take() {
            room.close();
        }
        self.changed.notify_all();
        state
    }

    /// Whether somebody still wants it.
    fn asks(&self, path: &Path, round: u64) -> bool {
        let mut state = self.lock();
        let is_wanted = state.round == round && matches!(state.files.get(path), Some(Slot::Waits));
        if is_wanted {
            state.files.insert(path.to_owned(), Slot::Asked);
        }
        is_wanted
    }

    fn has(&self, path: &Path, round: u64, fetched: Option<(Bytes, OwnedSemaphorePermit)>) {
        let mut state = self.lock();
        if state.round == round {
            let slot = fetched.map_or(Slot::Failed, |(bytes, room)| Slot::Here(bytes, room));
            state.files.insert(path.to_owned(), slot);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However the fetching ends, nobody waits for a file that does not come.
struct End<'a> {
    ahead: &'a Ahead,
    round: u64,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.ahead.lock();
        if state.round == self.round {
            state.files.retain(|_, slot| matches!(slot, Slot::Here(..)));
            self.ahead.changed.notify_all();
        }
    }
}
