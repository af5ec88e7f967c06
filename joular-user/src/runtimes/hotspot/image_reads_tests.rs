//! Tests what a JVM's names are when its memory cannot be read, or is another process's.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::runtimes::hotspot::{answers::Level, reader::evicted};

/// Fails one read: when so many are left.
#[derive(Debug)]
struct FailingOnce {
    image: MemoryImage,
    left: Arc<AtomicU64>,
}

impl RemoteMemory for FailingOnce {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(Unreadable { address, length: buffer.len() });
        }
        self.image.read(address, buffer)
    }
}

/// Memory of a process that may have gone, and then another process is read.
#[derive(Debug)]
struct Replaced {
    image: MemoryImage,
    is_there: Arc<AtomicBool>,
}

impl RemoteMemory for Replaced {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.image.read(address, buffer)
    }

    fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }
}

#[test]
fn what_another_process_has_at_the_same_addresses_names_nothing() {
    for image in images() {
        let (build, mut whole) = (image.build().unwrap(), image.attach().unwrap());
        let words = compiled_words(image, &whole);
        let expected = whole.resolve_all(&words);
        let is_there = Arc::new(AtomicBool::new(true));
        let memory = Replaced { image: image.memory.clone(), is_there: Arc::clone(&is_there) };
        let mut jvm = Jvm::attach(Box::new(memory), build.into(), image.bias).unwrap();
        is_there.store(false, Ordering::Relaxed);
        let unread: Vec<Frame> = evicted().iter().map(Level::frame).collect();
        assert!(jvm.resolve_all(&words).iter().all(|frames| *frames == unread), "{}", image.jvm);
        assert!(words.iter().all(|word| !jvm.knows(*word)), "{}", image.jvm);
        is_there.store(true, Ordering::Relaxed);
        assert_eq!(jvm.resolve_all(&words), expected, "{}", image.jvm);
    }
}

/// A read of a process may fail once, whatever the reason. What it was for is read again later.
#[test]
fn one_failed_read_takes_no_name_for_good() {
    for image in images() {
        let (build, mut whole) = (image.build().unwrap(), image.attach().unwrap());
        let words = compiled_words(image, &whole);
        let expected = whole.resolve_all(&words);
        let left = Arc::new(AtomicU64::new(0));
        let attach = || {
            left.store(u64::MAX / 2, Ordering::Relaxed);
            let memory = FailingOnce { image: image.memory.clone(), left: Arc::clone(&left) };
            Jvm::attach(Box::new(memory), build.clone().into(), image.bias).unwrap()
        };
        let mut jvm = attach();
        let before = left.load(Ordering::Relaxed);
        assert_eq!(jvm.resolve_all(&words), expected);
        let reads = before - left.load(Ordering::Relaxed);
        let mut lost = 0;
        for failing in (1..=reads).step_by(usize::try_from(reads / 100).unwrap().max(1)) {
            let mut jvm = attach();
            left.store(failing, Ordering::Relaxed);
            lost += u32::from(jvm.resolve_all(&words) != expected);
            assert_eq!(jvm.resolve_all(&words), expected, "{}: read {failing} of {reads} failed", image.jvm);
        }
        assert!(lost > 10, "{}: {lost} of {reads} reads matter", image.jvm);
    }
}
