//! Names the stubs: code that a JVM writes for itself, such as copies of arrays, digests and
//! trigonometry.
//!
//! Hundreds of stubs share a few blobs. A JVM keeps a list of their names and places for its own
//! error reports (`StubCodeDesc`). The list is in none of the exported tables, but libjvm's symbols
//! tell where it begins. Stubs that call virtual methods are made one by one, and are in a hash
//! table (`VtableStubs`).

use std::collections::HashMap;

use super::{
    libjvm::Libjvm,
    machine_code::CodeOf,
    memory::{RemoteMemory, Unreadable},
};

use crate::{
    arch::{Processor, with_arch},
    bounds::Bound,
};

/// JDK 25 has 250.
const MAX_STUBS: usize = 4096;
const MAX_NAME_BYTES: usize = 128;
/// All versions have fewer.
const MAX_C1_BLOBS: usize = 64;
/// A stub is shorter than the code cache's smallest heap.
const MAX_STUB_BYTES: u64 = 1 << 20;

/// `VtableStubs::N`, in all versions.
const VTABLE_BUCKETS: u64 = 256;
/// Stubs that call virtual methods and are visited: a JVM has some hundred.
const MAX_VTABLE_STUBS: usize = 4096;
/// `sizeof(VtableStub)`: the code begins behind it.
const VTABLE_STUB_HEADER: u64 = 16;
/// No stub that calls a virtual method is longer.
const MAX_VTABLE_STUB_BYTES: u64 = 1024;
/// Answers kept: a JVM has some hundred of these stubs, of some instructions each.
const MAX_VTABLE_ANSWERS: usize = 4096;

pub static STUBS: Bound = Bound::new(
    "stubs_not_read",
    MAX_STUBS as u64,
    "stubs of a JVM, and as many that call virtual methods",
    "the rest has the names of the blobs that it is in",
);

/// Fields of `StubCodeDesc`, in words: the same in JDK 11 to 25.
mod desc {
    pub const NEXT: usize = 0;
    pub const NAME: usize = 2;
    pub const BEGIN: usize = 3;
    pub const END: usize = 4;
    pub const WORDS: usize = 5;
}

/// Where a JVM describes its stubs, as addresses in the process; 0 if libjvm has no symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StubPlaces {
    processor: Processor,
    list: u64,
    vtable_stubs: u64,
    c1_blobs: u64,
}

impl StubPlaces {
    pub fn new(libjvm: &Libjvm, bias: u64) -> Self {
        let place = |address: Option<u64>| address.map_or(0, |address| bias.wrapping_add(address));
        Self {
            processor: libjvm.processor,
            list: place(libjvm.stub_list),
            vtable_stubs: place(libjvm.vtable_stubs),
            c1_blobs: place(libjvm.c1_blobs),
        }
    }
}

/// A stub of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    pub begin: u64,
    pub end: u64,
    pub name: Box<str>,
}

/// The stubs of one JVM. Their names are kept only if one was asked for: most JVMs idle.
#[derive(Debug, Default)]
pub struct Stubs {
    places: StubPlaces,
    /// The list's first entry when [`Self::news`] was asked, before which new ones are put; and how
    /// many C1 had made.
    told: (u64, usize),
    /// The list's first entry when it was read for names.
    head: u64,
    /// By address.
    stubs: Vec<Stub>,
    /// Of addresses in stubs that call virtual methods. Those are never freed.
    vtable_answers: HashMap<u64, &'static str>,
}

impl Stubs {
    pub fn new(places: StubPlaces) -> Self {
        Self { places, ..Self::default() }
    }

    /// The name of the stub at an address.
    pub fn name(&mut self, memory: &dyn RemoteMemory, pc: u64) -> Option<&str> {
        self.refresh(memory).ok()?;
        self.at(pc).map(|stub| &*stub.name)
    }

    /// All of them, by address, if there are more than when this was last asked.
    pub fn news(&mut self, memory: &dyn RemoteMemory) -> Option<Vec<Stub>> {
        let (head, of_c1) = (self.head(memory).ok()?, self.c1_blobs(memory).count());
        if (head, of_c1) == self.told {
            return None;
        }
        let (stubs, is_complete) = list(memory, head).ok()?;
        self.told = (if is_complete { head } else { 0 }, of_c1);
        Some(stubs)
    }

    /// Addresses of C1's stubs, as far as they are made; and whatever stands behind their table.
    pub fn c1_blobs(&self, memory: &dyn RemoteMemory) -> impl Iterator<Item = u64> {
        let place = Some(self.places.c1_blobs).filter(|place| *place != 0);
        let words = place.and_then(|place| words::<MAX_C1_BLOBS>(memory, place).ok());
        words.into_iter().flatten().filter(|blob| *blob != 0)
    }

    fn at(&self, pc: u64) -> Option<&Stub> {
        let behind = self.stubs.partition_point(|stub| stub.begin <= pc);
        self.stubs.get(behind.checked_sub(1)?).filter(|stub| pc < stub.end)
    }

    /// Reads the list again if it has become longer: compilers make some of their stubs when they
    /// start.
    fn refresh(&mut self, memory: &dyn RemoteMemory) -> Result<(), Unreadable> {
        let head = self.head(memory)?;
        if head != self.head {
            let (stubs, is_complete) = list(memory, head)?;
            self.stubs = stubs;
            self.head = if is_complete { head } else { 0 };
        }
        Ok(())
    }

    /// The list's first entry; 0 for none.
    fn head(&self, memory: &dyn RemoteMemory) -> Result<u64, Unreadable> {
        if self.places.list == 0 { Ok(0) } else { memory.u64(self.places.list) }
    }

    /// What a stub that calls a virtual method is for, as HotSpot names it.
    pub fn vtable_name(&mut self, memory: &dyn RemoteMemory, pc: u64) -> Option<&'static str> {
        if let Some(known) = self.vtable_answers.get(&pc) {
            return Some(known);
        }
        let begin = self.vtable_stub_before(memory, pc).ok()??;
        let length = usize::try_from(pc - begin + MAX_VTABLE_STUB_BYTES).ok()?;
        // The page behind the last stub need not be there.
        let code =
            memory.bytes(begin, length).or_else(|_| memory.bytes(begin, usize::try_from(pc - begin + 1).unwrap_or(0)));
        let name = self.vtable_stub_name(&code.ok()?, begin)?;
        if self.vtable_answers.len() < MAX_VTABLE_ANSWERS {
            self.vtable_answers.insert(pc, name);
        }
        Some(name)
    }

    /// A stub of a class's virtual methods takes its entry of the table. One of an interface's methods
    /// searches the class's interfaces, in a loop.
    fn vtable_stub_name(&self, code: &[u8], begin: u64) -> Option<&'static str> {
        let has_loop = with_arch!(self.places.processor, A => CodeOf::<A>::new(code, begin).has_loop_before_leaving())?;
        Some(if has_loop { "itable stub" } else { "vtable stub" })
    }

    /// Where the stub begins that is the last one before an address.
    fn vtable_stub_before(&self, memory: &dyn RemoteMemory, pc: u64) -> Result<Option<u64>, Unreadable> {
        if self.places.vtable_stubs == 0 {
            return Ok(None);
        }
        let mut last = None;
        let mut left = MAX_VTABLE_STUBS;
        for bucket in 0..VTABLE_BUCKETS {
            let mut stub = memory.u64(self.places.vtable_stubs.wrapping_add(bucket * 8))?;
            while stub != 0 && left > 0 {
                left -= 1;
                let begin = stub.wrapping_add(VTABLE_STUB_HEADER);
                if begin <= pc && pc - begin < MAX_VTABLE_STUB_BYTES {
                    last = last.max(Some(begin));
                }
                stub = memory.u64(stub)?;
            }
            STUBS.cut(u64::from(stub != 0));
        }
        Ok(last)
    }
}

/// The stubs of a list that begins there, by address, and whether all of them are made.
fn list(memory: &dyn RemoteMemory, head: u64) -> Result<(Vec<Stub>, bool), Unreadable> {
    let mut stubs = Vec::new();
    let mut is_complete = true;
    let mut entry = head;
    for _ in 0..MAX_STUBS {
        if entry == 0 {
            break;
        }
        let words = words::<{ desc::WORDS }>(memory, entry)?;
        let (begin, end) = (words[desc::BEGIN], words[desc::END]);
        // The one that is being made has no end yet.
        is_complete &= end != 0;
        if begin < end && end - begin <= MAX_STUB_BYTES {
            let name = memory.c_string(words[desc::NAME], MAX_NAME_BYTES)?;
            stubs.push(Stub { begin, end, name: String::from_utf8_lossy(&name).into() });
        }
        entry = words[desc::NEXT];
    }
    STUBS.cut(u64::from(entry != 0));
    stubs.sort_by_key(|stub| stub.begin);
    Ok((stubs, is_complete))
}

fn words<const N: usize>(memory: &dyn RemoteMemory, address: u64) -> Result<[u64; N], Unreadable> {
    let bytes = memory.bytes(address, N * 8)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::hotspot::memory::MemoryImage;

    const LIST: u64 = 0x1000;
    const ENTRIES: u64 = 0x2000;
    const NAMES: u64 = 0x3000;
    const TABLE: u64 = 0x4000;
    const CODE: u64 = 0x7000_0000;

    fn entry(number: u64) -> u64 {
        ENTRIES + number * 64
    }

    /// A list of stubs, the last one first: number, beginning and end.
    fn memory(stubs: &[(u64, u64, u64)]) -> MemoryImage {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut ranges = vec![(LIST, bytes(&[stubs.first().map_or(0, |stub| entry(stub.0))]))];
        for (index, &(number, begin, end)) in stubs.iter().enumerate() {
            let next = stubs.get(index + 1).map_or(0, |stub| entry(stub.0));
            ranges.push((entry(number), bytes(&[next, 0, NAMES + number * 64, begin, end])));
            ranges.push((NAMES + number * 64, format!("{:\0<64}", format!("stub {number}")).into_bytes()));
        }
        MemoryImage::from_ranges(ranges)
    }

    fn stubs() -> Stubs {
        Stubs::new(StubPlaces { list: LIST, ..StubPlaces::default() })
    }

    #[test]
    fn a_stub_has_its_name_from_its_first_to_its_last_byte() {
        let memory = memory(&[(2, 0x300, 0x400), (1, 0x100, 0x200)]);
        let mut stubs = stubs();
        for (pc, expected) in [
            (0xff, None),
            (0x100, Some("stub 1")),
            (0x1ff, Some("stub 1")),
            (0x200, None),
            (0x3ff, Some("stub 2")),
            (0x400, None),
        ] {
            assert_eq!(stubs.name(&memory, pc), expected, "{pc:#x}");
        }
        let mut without_symbols = Stubs::new(StubPlaces::new(&Libjvm::default(), 0x5000));
        assert_eq!(without_symbols.name(&memory, 0x100), None);
    }

    #[test]
    fn the_list_is_read_again_when_it_has_grown() {
        let mut stubs = stubs();
        assert_eq!(stubs.news(&memory(&[])), None);
        let one = memory(&[(1, 0x100, 0x200)]);
        assert_eq!(stubs.news(&one).map(|stubs| stubs.len()), Some(1));
        assert_eq!(stubs.news(&one), None);
        // The one being made has no end yet.
        let more = memory(&[(3, 0x500, 0), (2, 0x300, 0x400), (1, 0x100, 0x200)]);
        assert_eq!(stubs.news(&more).map(|stubs| stubs.len()), Some(2));
        assert_eq!((stubs.name(&one, 0x300).is_some(), stubs.name(&more, 0x500)), (false, None));
        let made = memory(&[(3, 0x500, 0x600), (2, 0x300, 0x400), (1, 0x100, 0x200)]);
        assert_eq!(stubs.name(&made, 0x500), Some("stub 3"));
        assert_eq!(stubs.news(&made).map(|stubs| stubs.len()), Some(3));
        assert_eq!(stubs.news(&made), None);
    }

    #[test]
    fn a_list_without_an_end_is_left() {
        let words = [ENTRIES, 0, NAMES, 0x100, 0x200].map(u64::to_le_bytes).concat();
        let ranges = [(LIST, ENTRIES.to_le_bytes().to_vec()), (ENTRIES, words), (NAMES, vec![0; 64])];
        let mut stubs = stubs();
        assert_eq!(stubs.news(&MemoryImage::from_ranges(ranges)).map(|stubs| stubs.len()), Some(MAX_STUBS));
    }

    #[test]
    fn stubs_for_virtual_methods_are_told_apart_by_their_code() {
        // mov rax, [rdi]; jmp rax; and with a loop: mov rax, [rdi]; test rax, rax; jne 0; jmp rax
        let (plain, search) =
            (&[0x48, 0x8b, 0x07, 0xff, 0xe0][..], &[0x48, 0x8b, 7, 0x48, 0x85, 0xc0, 0x75, 0xf8, 0xff, 0xe0][..]);
        let (first, second) = (CODE, CODE + 0x40);
        let mut buckets = vec![0; 256 * 8];
        buckets[80..88].copy_from_slice(&first.to_le_bytes());
        let mut code = vec![0x90; 0x2000];
        code[..8].copy_from_slice(&second.to_le_bytes());
        code[0x40..0x48].fill(0);
        code[0x10..0x10 + plain.len()].copy_from_slice(plain);
        code[0x50..0x50 + search.len()].copy_from_slice(search);
        let memory = MemoryImage::from_ranges([(TABLE, buckets), (CODE, code)]);
        let mut stubs = Stubs::new(StubPlaces { vtable_stubs: TABLE, ..StubPlaces::default() });
        for (pc, expected) in [
            (first + 0x10, Some("vtable stub")),
            (first + 0x13, Some("vtable stub")),
            (second + 0x10, Some("itable stub")),
            (second + 0x18, Some("itable stub")),
            (first + 0xf, None),
            (CODE + 0x1000, None),
        ] {
            assert_eq!(stubs.vtable_name(&memory, pc), expected, "{pc:#x}");
            assert_eq!(stubs.vtable_name(&memory, pc), expected, "{pc:#x} again");
        }
    }
}
