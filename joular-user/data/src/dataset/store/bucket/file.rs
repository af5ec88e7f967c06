//! Reads a file of a bucket in few requests: a small one whole, of a large one its end and what is asked for, with
//! what follows it.

use std::{
    io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use object_store::{Error, GetOptions, path::Path as Key};

use super::{Client, errors};
use crate::dataset::store::ReadAt;

/// A request costs as much as this many bytes take, roughly.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// Where a Parquet file says what is where.
const END_BYTES: u64 = 64 << 10;
/// What is taken with a part of a large file.
const AHEAD_BYTES: u64 = 256 << 10;

/// What is known of an object before any of it is read.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) key: Key,
    pub(super) size_bytes: u64,
    /// What the bucket calls this content of it: another one is not read by mistake.
    pub(super) tag: Option<String>,
}

/// A range of an object, if it still is what it was when it was listed.
pub(super) async fn get(client: &Client, named: &Named, range: Range<u64>) -> Result<Bytes, Error> {
    let options = GetOptions { range: Some(range.into()), if_match: named.tag.clone(), ..GetOptions::default() };
    client.store.get_opts(&named.key, options).await?.bytes().await
}

pub(super) struct BucketFile {
    client: Arc<Client>,
    named: Named,
    held: Mutex<Held>,
}

/// Parts that were read, each from an offset on.
#[derive(Default)]
struct Held {
    end: Option<(u64, Bytes)>,
    part: Option<(u64, Bytes)>,
}

impl BucketFile {
    pub(super) fn new(client: Arc<Client>, named: Named) -> Self {
        Self { client, named, held: Mutex::default() }
    }
}

impl ReadAt for BucketFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let size_bytes = self.named.size_bytes;
        if buffer.is_empty() || offset >= size_bytes {
            return Ok(0);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for (start, bytes) in [&held.end, &held.part].into_iter().flatten() {
            if let Some(offset) = offset.checked_sub(*start).filter(|offset| *offset < bytes.len() as u64) {
                return ReadAt::read_at(bytes, buffer, offset);
            }
        }
        let range = wanted(size_bytes, offset, buffer.len() as u64);
        let asked = get(&self.client, &self.named, range.clone());
        let bytes = self.client.wait(asked).map_err(|error| errors::told(&error))?;
        let count = ReadAt::read_at(&bytes, buffer, offset - range.start)?;
        let place = if range.end == size_bytes { &mut held.end } else { &mut held.part };
        *place = Some((range.start, bytes));
        Ok(count)
    }
}

/// What to read of a file for so many bytes at an offset within it.
fn wanted(size_bytes: u64, offset: u64, bytes: u64) -> Range<u64> {
    let end = size_bytes.saturating_sub(END_BYTES);
    if size_bytes <= SMALL_BYTES {
        0..size_bytes
    } else if offset >= end {
        end..size_bytes
    } else {
        offset..offset.saturating_add(bytes.max(AHEAD_BYTES)).min(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_is_read_whole_and_of_a_large_one_its_end_and_what_is_asked_for() {
        assert_eq!(wanted(1000, 996, 4), 0..1000);
        let large = 10 << 20;
        let end = large - END_BYTES..large;
        assert_eq!(wanted(large, large - 8, 8), end);
        assert_eq!(wanted(large, 4, 100), 4..4 + AHEAD_BYTES);
        assert_eq!(wanted(large, 4, 2 << 20), 4..4 + (2 << 20));
        assert_eq!(wanted(large, large - END_BYTES - 1, 100), large - END_BYTES - 1..large);
        assert_eq!(wanted(large, 0, u64::MAX), 0..large);
    }
}
