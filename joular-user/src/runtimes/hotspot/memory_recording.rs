//! Notes what is read of a process, to make an image of it that has what was read and nothing else.
//! Neither the size of a whole process nor what it keeps to itself (arguments, environment) belongs
//! in a file.
//!
//! Pages are kept whole, as readers read them ahead; bytes that nobody asked for are zero.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Mutex, PoisonError},
};

use super::memory::{MemoryImage, PAGE, PAGE_BYTES, RemoteMemory, Unreadable};

/// Unit of marking: a page has as many as a mask has bits.
const GRANULE: u64 = PAGE_BYTES / 64;

#[derive(Debug)]
struct Page {
    /// As they were when they were first read.
    bytes: Vec<u8>,
    /// By granule, whether any of it was asked for.
    asked: u64,
}

/// Memory that keeps what was read of it.
#[derive(Debug)]
pub struct Recording<M> {
    memory: M,
    pages: Mutex<BTreeMap<u64, Page>>,
}

impl<M: RemoteMemory> Recording<M> {
    pub fn new(memory: M) -> Self {
        Self { memory, pages: Mutex::default() }
    }

    /// What was read so far.
    pub fn image(&self) -> MemoryImage {
        let mut image = MemoryImage::default();
        for (address, page) in self.pages.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut bytes = page.bytes.clone();
            for (index, granule) in bytes.chunks_mut(PAGE / 64).enumerate() {
                if page.asked >> index & 1 == 0 {
                    granule.fill(0);
                }
            }
            image.insert(*address, &bytes);
        }
        image
    }
}

impl<M: RemoteMemory> Recording<M> {
    /// Calls a function for each page of a range, as far as pages exist.
    fn each_page(&self, address: u64, length: usize, mut visit: impl FnMut(u64, &mut Page)) {
        let mut known = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let end = address.saturating_add(length as u64);
        for start in (address - address % PAGE_BYTES..end).step_by(PAGE) {
            let page = match known.entry(start) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let Ok(bytes) = self.memory.bytes(start, PAGE) else { return };
                    entry.insert(Page { bytes, asked: 0 })
                }
            };
            visit(start, page);
        }
    }
}

impl<M: RemoteMemory> RemoteMemory for Recording<M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.memory.read(address, buffer)?;
        self.asked(address, buffer.len());
        Ok(())
    }

    fn read_ahead(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.memory.read(address, buffer)?;
        self.each_page(address, buffer.len(), |_, _| {});
        Ok(())
    }

    fn asked(&self, address: u64, length: usize) {
        let end = address.saturating_add(length as u64);
        self.each_page(address, length, |start, page| {
            for granule in 0..64 {
                let from = start + granule * GRANULE;
                let is_asked = from < end && address < from + GRANULE;
                page.asked |= u64::from(is_asked) << granule;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::hotspot::memory::Pages;

    #[test]
    fn a_recording_is_an_image_of_what_was_asked_for() {
        let mut source = MemoryImage::default();
        (1..4).for_each(|page: u8| source.insert(u64::from(page) * PAGE_BYTES, &[page; PAGE]));
        let recording = Recording::new(source);
        recording.read(0x1ffe, &mut [0; 4]).unwrap();
        let copy = recording.image();
        assert_eq!((copy.u16(0x1ffe), copy.u16(0x2000)), (Ok(0x0101), Ok(0x0202)));
        assert_eq!((copy.u8(0x1000), copy.u8(0x2fff)), (Ok(0), Ok(0)), "of pages that were read");
        assert!(copy.u8(0x3000).is_err());
    }

    #[test]
    fn of_what_was_read_ahead_only_what_was_asked_for_is_kept() {
        let mut source = MemoryImage::default();
        source.insert(0x1000, &[7; PAGE]);
        let recording = Recording::new(source);
        let pages = Pages::new(&recording);
        pages.read(0x1100, &mut [0; 8]).unwrap();
        pages.read(0x1200, &mut [0; 8]).unwrap();
        assert!(pages.u8(0x2000).is_err());
        let copy = recording.image();
        assert_eq!([0x10ff, 0x1100, 0x1207, 0x1240].map(|at| copy.u8(at).unwrap()), [0, 7, 7, 0]);
        assert!(copy.u8(0x2000).is_err());
    }
}
