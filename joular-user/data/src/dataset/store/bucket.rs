//! Keeps a data set in a bucket: object storage of Amazon, Google or Microsoft, or what speaks their protocols.
//!
//! The client waits for its answers on the thread that asks: whoever reads a data set has threads for it already
//! (`read/decode_ahead.rs`), and shipping has its own. Credentials and all options come from the environment, by the
//! names that the clouds' own tools use.

mod ahead;
mod client;
mod errors;
mod file;
mod listing;

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path as Key,
};
use tokio::runtime::{Builder, Runtime};

use self::{
    ahead::Ahead,
    file::{BucketFile, Named, SMALL_BYTES, get},
};
use super::{Claim, ClaimKind, Near, Object, Part, Published, Stamp, Store, near::Spill, place::BucketUrl};
use crate::{
    dataset::{
        bundle::{BUNDLES, place_of},
        error::{DataSetError, Result as ReadResult},
    },
    output::{OutputError, Result},
};

/// Requests at once.
const IN_FLIGHT: usize = 64;

/// A bucket, or what has a prefix in it.
pub(super) struct Bucket {
    /// For messages.
    url: PathBuf,
    prefix: String,
    client: Arc<Client>,
    /// Size and tag of files that were listed.
    listed: Mutex<HashMap<PathBuf, (u64, Option<String>)>>,
    ahead: Arc<Ahead>,
    spill: Arc<Spill>,
    /// Bundles, each by what the bucket calls this content of it.
    near: Mutex<HashMap<PathBuf, Tagged>>,
}

/// A bundle, and what the bucket calls this content of it.
type Tagged = (Option<String>, Arc<Near>);

/// What talks to a bucket.
struct Client {
    store: Box<dyn ObjectStore>,
    /// Made by whoever asks first. A recording that fails before drops the client within an event loop of its own,
    /// where another one must not be dropped.
    runtime: OnceLock<Runtime>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bucket").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Client {
    /// Waits for an answer.
    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let runtime = match self.runtime.get() {
            Some(runtime) => runtime,
            None => {
                let made = Builder::new_current_thread().enable_all().build();
                let made = made.map_err(|source| Error::Generic { store: "the event loop", source: source.into() })?;
                self.runtime.get_or_init(|| made)
            }
        };
        runtime.block_on(answer)
    }
}

impl Bucket {
    /// Nothing is asked yet.
    pub(super) fn new(url: &Path, place: &BucketUrl) -> io::Result<Self> {
        // Another part of the program may have chosen already, the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = client::of(place).map_err(|error| errors::told(&error))?;
        Ok(Self::of_client(url, &place.prefix, store))
    }

    fn of_client(url: &Path, prefix: &str, store: Box<dyn ObjectStore>) -> Self {
        let client = Arc::new(Client { store, runtime: OnceLock::new() });
        let (url, prefix) = (url.to_owned(), prefix.to_owned());
        let (listed, ahead) = (Mutex::default(), Arc::default());
        Self { url, prefix, client, listed, ahead, spill: Arc::default(), near: Mutex::default() }
    }

    fn key(&self, within: &Path) -> Result<Key, Error> {
        let within = within.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        let key = if self.prefix.is_empty() { within } else { format!("{}/{within}", self.prefix) };
        Ok(Key::parse(key)?)
    }

    /// A key's path within the data set; `None` if it is neither the key of a table's file nor of a bundle.
    fn within(&self, key: &Key) -> Option<PathBuf> {
        let text = key.as_ref();
        let within =
            if self.prefix.is_empty() { text } else { text.strip_prefix(self.prefix.as_str())?.strip_prefix('/')? };
        let parts: Vec<&str> = within.split('/').collect();
        let is_file =
            parts.len() == 4 && within.ends_with(".parquet") && !parts.iter().any(|part| part.starts_with('.'));
        (is_file || place_of(Path::new(within)).is_some()).then(|| within.into())
    }

    fn put(&self, path: &Path, bytes: &[u8], mode: PutMode) -> Result<Published, Error> {
        let put = self.key(path).and_then(|key| {
            let payload = PutPayload::from(bytes.to_vec());
            let options = PutOptions::from(mode);
            self.client.wait(async { self.client.store.put_opts(&key, payload, options).await })
        });
        match put {
            Ok(_) => Ok(Published::Created),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Published::AlreadyThere),
            Err(error) => Err(error),
        }
    }

    fn unwritten(&self, path: &Path) -> impl Fn(Error) -> OutputError {
        move |error| self.failed("writing", path, &error)
    }

    fn failed(&self, action: &'static str, within: &Path, error: &Error) -> OutputError {
        OutputError::Bucket { action, path: self.url.join(within), source: errors::told(error) }
    }

    fn unread(&self, within: &Path, error: &Error) -> DataSetError {
        DataSetError::Bucket { path: self.url.join(within), cause: errors::told(error) }
    }

    /// What is known of a file by its listing.
    fn listed(&self, file: &Path) -> Option<Named> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let (size_bytes, tag) = known.get(file)?.clone();
        drop(known);
        Some(Named { key: self.key(file).ok()?, size_bytes, tag })
    }

    /// The same, or what the bucket says if it was not listed.
    fn named(&self, file: &Path) -> Result<Named, Error> {
        if let Some(named) = self.listed(file) {
            return Ok(named);
        }
        let key = self.key(file)?;
        let size_bytes = self.client.wait(self.size_of(&key))?;
        Ok(Named { key, size_bytes, tag: None })
    }

    /// The prefix of all that is here; `None`: the bucket.
    fn root(&self) -> Result<Option<Key>, Error> {
        if self.prefix.is_empty() { Ok(None) } else { Ok(Some(Key::parse(&self.prefix)?)) }
    }

    /// The files among the objects that `list` calls its argument with, until that says that they are too many.
    fn found(
        &self,
        what: &Path,
        most: usize,
        list: impl FnOnce(&mut dyn FnMut(&ObjectMeta) -> bool) -> Result<bool, Error>,
    ) -> ReadResult<Vec<PathBuf>> {
        let (mut found, mut known) = (Vec::new(), HashMap::new());
        let mut is_too_many = |object: &ObjectMeta| {
            if let Some(within) = self.within(&object.location) {
                known.insert(within.clone(), (object.size, object.e_tag.clone()));
                found.push(within);
            }
            found.len() > most
        };
        let is_all = list(&mut is_too_many).map_err(|error| self.unread(what, &error))?;
        if !is_all {
            return Err(DataSetError::TooManyFiles { path: self.url.join(what), most });
        }
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).extend(known);
        Ok(found)
    }

    async fn size_of(&self, key: &Key) -> Result<u64, Error> {
        Ok(self.client.store.head(key).await?.size)
    }

    /// As the bucket has it now, whatever was listed.
    fn stamp_now(&self, file: &Path) -> Result<Stamp, Error> {
        let key = self.key(file)?;
        let found = self.client.wait(async { self.client.store.head(&key).await })?;
        Ok(Stamp { size_bytes: found.size, tag: found.e_tag })
    }
}

impl Store for Bucket {
    fn path(&self) -> &Path {
        &self.url
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.list_part(&[table], &Part::default(), most)
    }

    fn list_part(&self, tables: &[&str], part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        let first = Path::new(tables.first().copied().unwrap_or_default());
        let keys = tables.iter().map(|table| self.key(Path::new(table))).collect::<Result<Vec<_>, _>>();
        self.found(first, most, |is_too_many| {
            let (store, keys) = (&*self.client.store, keys?);
            self.client.wait(async {
                // One request says which tables are there: a place of bundles has none.
                let there = match keys.len() {
                    0 | 1 => keys,
                    _ => listing::there(store, self.root()?.as_ref(), keys).await?,
                };
                listing::each(store, there, part, is_too_many).await
            })
        })
    }

    fn list_bundles(&self, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        let bundles = Path::new(BUNDLES);
        self.found(bundles, most, |is_too_many| {
            let key = self.key(bundles)?;
            self.client.wait(listing::bundles(&*self.client.store, key, part, is_too_many))
        })
    }

    fn expect(&self, files: &mut dyn Iterator<Item = &Path>) {
        let mut seen = HashSet::new();
        let wanted = files.filter(|file| seen.insert(file.to_owned()));
        let listed = wanted.filter_map(|file| Some((file.to_owned(), self.listed(file)?)));
        self.ahead.begin(&self.client, listed.collect());
    }

    fn near(&self, bundle: &Path) -> Option<Arc<Near>> {
        let tag = self.listed(bundle)?.tag;
        let new = || (tag.clone(), Arc::new(Near::within(&self.spill)));
        let mut near = self.near.lock().unwrap_or_else(PoisonError::into_inner);
        let known = near.entry(bundle.to_owned()).or_insert_with(new);
        if known.0 != tag {
            *known = new();
        }
        Some(Arc::clone(&known.1))
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        let of_bytes = |bytes: Bytes| {
            let size_bytes = bytes.len() as u64;
            Ok(Object::new(bytes, size_bytes))
        };
        if let Some(bytes) = self.ahead.take(file) {
            return of_bytes(bytes);
        }
        let unread = |error: Error| self.unread(file, &error);
        let named = self.named(file).map_err(unread)?;
        if file.starts_with(BUNDLES) && (1..=SMALL_BYTES).contains(&named.size_bytes) {
            return of_bytes(self.client.wait(get(&self.client, &named, 0..named.size_bytes)).map_err(unread)?);
        }
        let size_bytes = named.size_bytes;
        Ok(Object::new(BucketFile::new(Arc::clone(&self.client), named), size_bytes))
    }

    fn stamp(&self, file: &Path) -> ReadResult<Stamp> {
        if let Some(Named { size_bytes, tag, .. }) = self.listed(file) {
            return Ok(Stamp { size_bytes, tag });
        }
        self.stamp_now(file).map_err(|error| self.unread(file, &error))
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        let path = folder.join(name);
        self.put(&path, bytes, PutMode::Overwrite).map(drop).map_err(self.unwritten(&path))
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published> {
        let path = folder.join(name);
        self.put(&path, bytes, PutMode::Create).map_err(self.unwritten(&path))
    }

    fn publish_over(&self, folder: &Path, name: &str, bytes: &[u8], before: Option<&Stamp>) -> ReadResult<Published> {
        let Some(before) = before else { return Ok(self.publish_new(folder, name, bytes)?) };
        let path = folder.join(name);
        let version = UpdateVersion { e_tag: before.tag.clone(), version: None };
        let put = match self.put(&path, bytes, PutMode::Update(version)) {
            Err(error) if errors::knows_no_condition(&error) => match self.stamp_now(&path) {
                Ok(now) if now == *before => self.put(&path, bytes, PutMode::Overwrite),
                Ok(_) | Err(Error::NotFound { .. }) => Ok(Published::AlreadyThere),
                Err(error) => Err(error),
            },
            put => put,
        };
        Ok(put.map_err(self.unwritten(&path))?)
    }

    fn remove(&self, file: &Path) -> Result<()> {
        let removed = self.key(file).and_then(|key| self.client.wait(async { self.client.store.delete(&key).await }));
        match removed {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("removing", file, &error)),
        }
    }

    /// A thousand with one request, where the bucket can do that.
    fn remove_all(&self, files: &[PathBuf]) -> Result<()> {
        let Some(first) = files.first() else { return Ok(()) };
        let keys = files.iter().map(|file| self.key(file)).collect::<Result<Vec<_>, _>>();
        let removed = keys.and_then(|keys| {
            let mut removed = self.client.store.delete_stream(stream::iter(keys).map(Ok).boxed());
            self.client.wait(async {
                while let Some(removed) = removed.next().await {
                    match removed {
                        Ok(_) | Err(Error::NotFound { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            })
        });
        removed.map_err(|error| self.failed("removing", first, &error))
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let path = folder.join(name);
        match self.key(&path).and_then(|key| self.client.wait(self.size_of(&key))) {
            Ok(_) => Ok(Some(self.url.join(path))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("looking for", &path, &error)),
        }
    }

    /// Files of a bucket are whole and never change, so nobody has to be kept away.
    fn claim(&self, _kind: ClaimKind) -> Result<Claim> {
        Ok(Claim::new(None::<()>))
    }
}

impl Drop for Bucket {
    /// What is still being fetched is nobody's.
    fn drop(&mut self) {
        self.ahead.end();
    }
}

#[cfg(test)]
mod bundles_tests;
#[cfg(test)]
mod requests_tests;
#[cfg(test)]
mod tests;
