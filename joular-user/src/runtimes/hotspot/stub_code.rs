//! Finds the code of stubs, whose frames nothing describes, so that rows can be made from it.
//!
//! JVMs of one build that run with the same flags on the same processor write the same stubs. They
//! differ in nothing but addresses. So where all stubs begin and end tells whether they are the same.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

use joular_data::model::units::Address;

use super::{
    code_cache::{Blob, CodeCache, blob_name},
    layout::Layout,
    memory::RemoteMemory,
    stubs::Stub,
};
use crate::{
    bounds::Bound,
    runtimes::{CodeId, OwnCode, OwnRange},
};

/// In all blobs.
const MAX_BYTES: u64 = 1 << 20;
/// A JVM has six blobs of stubs.
const MAX_BLOBS: usize = 64;
pub static BYTES: Bound = Bound::new(
    "stub_code_not_read",
    MAX_BYTES,
    "bytes of a JVM's stubs that have no frame size, and 64 blobs of them",
    "stacks that end in the rest are cut there",
);
/// Stubs that are not entered by a call: returns and jumps lead there.
const NOT_CALLED: [&str; 2] = ["catch_exception", "forward exception"];

/// Stubs of C1 that have no frame size and call others, or move the stack pointer; and how many words their callers push.
const OF_C1: [(&str, i8); 2] = [
    // The search among a class's supertypes. One of the words becomes the answer.
    ("slow_subtype_check", 2),
    // Where a method goes that does not handle an exception, without its frame.
    ("unwind_exception", 0),
];

/// Stubs of one blob.
#[derive(Debug, PartialEq, Eq)]
struct StubBlob {
    range: OwnRange,
    called: Vec<Range<u32>>,
    pushed_words: i8,
}

/// The code of one JVM's stubs.
#[derive(Debug, Default)]
pub struct StubCode {
    blobs: Vec<StubBlob>,
    ranges: Vec<OwnRange>,
    pub version: u64,
}

impl StubCode {
    /// Takes in the stubs that have frames of the usual kind, by address, and those of C1.
    pub fn update(
        &mut self,
        memory: &dyn RemoteMemory,
        layout: &Layout,
        cache: &CodeCache,
        build: u64,
        stubs: &[Stub],
        c1_blobs: impl IntoIterator<Item = u64>,
    ) {
        let mut blobs: Vec<(Blob, Vec<&Stub>)> = Vec::new();
        let mut left = MAX_BYTES;
        for stub in stubs {
            if let Some((_, stubs)) = blobs.last_mut().filter(|(blob, _)| blob.contains(stub.begin)) {
                stubs.push(stub);
                continue;
            }
            if blobs.len() >= MAX_BLOBS {
                BYTES.cut(1);
                break;
            }
            let found = cache.find_blob(memory, layout, stub.begin).ok().flatten();
            // With a frame size, it is walked by that.
            let found = found.filter(|blob| blob.frame_size == 0);
            BYTES.cut(found.filter(|blob| blob.size > left).map_or(0, |blob| blob.size));
            let found = found.filter(|blob| blob.size <= left);
            left -= found.map_or(0, |blob| blob.size);
            blobs.extend(found.map(|blob| (blob, vec![stub])));
        }
        let mut blobs: Vec<StubBlob> = blobs.iter().map(|(blob, stubs)| StubBlob::new(blob, stubs, build)).collect();
        let of_c1 = c1_blobs.into_iter().filter_map(|address| {
            let blob = cache.find_blob(memory, layout, address).ok().flatten()?;
            let name = blob_name(memory, &blob)?;
            let (_, pushed_words) = OF_C1.into_iter().find(|(part, _)| name.contains(part))?;
            Some(StubBlob::of_c1(&blob, build, pushed_words))
        });
        blobs.extend(of_c1);
        blobs.sort_by_key(|blob| blob.range.start);
        // What stands behind the table of C1's may be anything.
        blobs.dedup_by_key(|blob| blob.range.start);
        if blobs != self.blobs {
            self.ranges = blobs.iter().map(|blob| blob.range).collect();
            self.blobs = blobs;
            self.version += 1;
        }
    }

    /// By address.
    pub fn ranges(&self) -> &[OwnRange] {
        &self.ranges
    }

    pub fn read(&self, memory: &dyn RemoteMemory, id: CodeId) -> Option<OwnCode> {
        let StubBlob { range, called, pushed_words } = self.blobs.iter().find(|blob| blob.range.id == id)?;
        let bytes = usize::try_from(range.end.0 - range.start.0).ok()?;
        let bytes = memory.bytes(range.start.0, bytes).ok()?;
        Some(OwnCode { bytes, called: called.clone(), pushed_words: *pushed_words })
    }
}

impl StubBlob {
    fn new(blob: &Blob, stubs: &[&Stub], build: u64) -> Self {
        let (start, end) = (blob.code_begin, blob.start.saturating_add(blob.size));
        let place = |address: u64| u32::try_from(address.checked_sub(start)?).ok();
        let called = stubs.iter().filter(|stub| stub.end <= end && !NOT_CALLED.contains(&&*stub.name));
        let called: Vec<_> = called.filter_map(|stub| Some(place(stub.begin)?..place(stub.end)?)).collect();
        let mut hasher = DefaultHasher::new();
        (build, end.saturating_sub(start), &called).hash(&mut hasher);
        let id = CodeId(hasher.finish());
        Self { range: OwnRange { start: Address(start), end: Address(end), id }, called, pushed_words: 0 }
    }

    /// The blob is one stub, which is called.
    fn of_c1(blob: &Blob, build: u64, pushed_words: i8) -> Self {
        let (begin, end) = (blob.code_begin, blob.start.saturating_add(blob.size));
        let whole = Stub { begin, end, name: Box::default() };
        Self { pushed_words, ..Self::new(blob, &[&whole], build) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOB: Blob = Blob { start: 0x1000, size: 0x1000, code_begin: 0x1040, name: 0, frame_size: 0 };

    fn stub(begin: u64, end: u64, name: &str) -> Stub {
        Stub { begin, end, name: name.into() }
    }

    #[test]
    fn code_counts_from_the_blobs_first_instruction() {
        let stubs = [stub(0x1040, 0x1100, "a"), stub(0x1100, 0x1200, "catch_exception"), stub(0x1200, 0x1300, "b")];
        let blob = StubBlob::new(&BLOB, &stubs.each_ref(), 7);
        assert_eq!((blob.range.start, blob.range.end), (Address(0x1040), Address(0x2000)));
        assert_eq!(blob.called, [0..0xc0, 0x1c0..0x2c0], "returns lead to the one between");
    }

    #[test]
    fn the_same_stubs_elsewhere_are_the_same_code() {
        let moved = Blob { start: 0x9000, code_begin: 0x9040, ..BLOB };
        let id = |blob: &Blob, end: u64, build| {
            StubBlob::new(blob, &[&stub(blob.code_begin, blob.code_begin + end, "a")], build).range.id
        };
        assert_eq!(id(&BLOB, 0x100, 7), id(&moved, 0x100, 7));
        assert_ne!(id(&BLOB, 0x100, 7), id(&moved, 0x110, 7));
        assert_ne!(id(&BLOB, 0x100, 7), id(&moved, 0x100, 8), "another user's file may be another");
    }

    #[test]
    fn of_c1s_stubs_those_are_read_that_have_no_frame_size_and_need_rows() {
        for (name, pushed_words) in [
            ("slow_subtype_check Runtime1 stub", Some(2)),
            ("C1 Runtime unwind_exception_blob", Some(0)),
            ("unwind_exception Runtime1 stub", Some(0)),
            ("handle_exception Runtime1 stub", None),
        ] {
            let found = OF_C1.into_iter().find(|(part, _)| name.contains(part));
            assert_eq!(found.map(|(_, words)| words), pushed_words, "{name}");
        }
        let blob = StubBlob::of_c1(&BLOB, 7, 2);
        assert_eq!((blob.called.first(), blob.pushed_words), (Some(&(0..0xfc0)), 2));
    }
}
