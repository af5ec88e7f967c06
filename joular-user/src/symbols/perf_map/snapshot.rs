//! Reads perf maps: the text `/tmp/perf-PID.map` in which runtimes say where their generated code
//! is, `START SIZE NAME` a line, hexadecimal with or without `0x`.
//!
//! A target writes it, so it may say anything and be of any length. It is read as a stream into a
//! compact table (16 bytes an entry beside the names, each name kept once), whose every bound is
//! fixed. Where entries overlap, the later line wins for the bytes that both cover: runtimes
//! append.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher as _, RandomState},
    io::{self, BufRead},
};

use joular_data::model::units::Address;

use crate::{
    bounds::Bound,
    runtimes::{MAX_NAME_BYTES, hotspot::java_text::java_text},
};

/// Entries kept: a large application server has some 50 000.
pub const MAX_ENTRIES: usize = 1 << 18;
/// Bytes kept of all names.
const MAX_NAMES_BYTES: usize = 24 << 20;
pub static ENTRIES: Bound = Bound::new(
    "perf_map_entries_not_kept",
    MAX_ENTRIES as u64,
    "entries of a perf map, and 24 MiB of their names",
    "code of the rest is `[unresolved]`",
);
pub static NAMES: Bound =
    Bound::new("perf_map_name_cut", MAX_NAME_BYTES as u64, "bytes of a name in a perf map", "it is cut");
/// Bytes looked at of one line; the rest of it is passed over.
const MAX_LINE_BYTES: usize = MAX_NAME_BYTES + 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedName {
    start: u64,
    length: u32,
    /// Where in `names` its name is.
    name: u32,
}

impl MappedName {
    const fn end(&self) -> u64 {
        self.start.saturating_add(self.length as u64)
    }
}

/// A snapshot of generated code.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// Sorted, without overlap.
    entries: Box<[MappedName]>,
    /// Names, each behind its length (two bytes).
    names: Box<[u8]>,
    /// Lines that are no entry.
    pub skipped_lines: u64,
    /// Entries left out because of a bound.
    pub dropped_entries: u64,
}

impl PerfMap {
    /// Reads to the end of `input`, which the caller bounds.
    pub fn read(mut input: impl BufRead) -> io::Result<Self> {
        let mut builder = Builder::default();
        let mut line = Vec::with_capacity(MAX_LINE_BYTES);
        while next_line(&mut input, &mut line)? {
            builder.line(&line);
        }
        Ok(builder.finish())
    }

    pub fn parse(text: &[u8]) -> Self {
        Self::read(text).unwrap_or_default()
    }

    /// Name of the code at an address.
    pub fn lookup(&self, address: Address) -> Option<&str> {
        let after = self.entries.partition_point(|entry| entry.start <= address.0);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        if address.0 < entry.end() { name_at(&self.names, entry.name) } else { None }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What it occupies.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + self.names.len()
    }
}

fn name_at(names: &[u8], at: u32) -> Option<&str> {
    let at = usize::try_from(at).ok()?;
    let length = names.get(at..at + 2)?;
    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
    std::str::from_utf8(names.get(at + 2..at + 2 + length)?).ok()
}

/// Puts the first [`MAX_LINE_BYTES`] of the next line into `line`; false at the end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let newline = available.iter().position(|&byte| byte == b'\n');
        let part = &available[..newline.unwrap_or(available.len())];
        line.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES - line.len())]);
        let consumed = part.len() + usize::from(newline.is_some());
        input.consume(consumed);
        if newline.is_some() {
            return Ok(true);
        }
    }
}

#[derive(Default)]
struct Builder {
    /// In the order of the lines.
    entries: Vec<MappedName>,
    names: Vec<u8>,
    /// Where a name of this hash is.
    known: HashMap<u64, u32>,
    hasher: RandomState,
    skipped_lines: u64,
    dropped_entries: u64,
}

impl Builder {
    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Some((start, length, name)) = parse_line(line) else {
            self.skipped_lines += 1;
            return;
        };
        if self.entries.len() >= MAX_ENTRIES {
            self.dropped_entries += 1;
            return;
        }
        match self.intern(&cut(&java_text(name))) {
            Some(name) => self.entries.push(MappedName { start, length, name }),
            None => self.dropped_entries += 1,
        }
    }

    fn intern(&mut self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        if let Some(&at) = self.known.get(&hash)
            && name_at(&self.names, at) == Some(name)
        {
            return Some(at);
        }
        if self.names.len() + name.len() + 2 > MAX_NAMES_BYTES {
            return None;
        }
        let at = u32::try_from(self.names.len()).ok()?;
        self.names.extend_from_slice(&u16::try_from(name.len()).ok()?.to_le_bytes());
        self.names.extend_from_slice(name.as_bytes());
        self.known.insert(hash, at);
        Some(at)
    }

    fn finish(self) -> PerfMap {
        let mut sorted = self.entries.clone();
        sorted.sort_by_key(|entry| entry.start);
        if sorted.windows(2).any(|pair| pair[0].end() > pair[1].start) {
            sorted = flatten(&self.entries);
        }
        ENTRIES.cut(self.dropped_entries);
        PerfMap {
            entries: sorted.into_boxed_slice(),
            names: self.names.into_boxed_slice(),
            skipped_lines: self.skipped_lines,
            dropped_entries: self.dropped_entries,
        }
    }
}

/// Cuts overlaps: what a later entry covers is taken from the earlier ones.
fn flatten(entries: &[MappedName]) -> Vec<MappedName> {
    let mut flat: BTreeMap<u64, MappedName> = BTreeMap::new();
    for entry in entries {
        let (start, end) = (entry.start, entry.end());
        if let Some((_, before)) = flat.range_mut(..start).next_back()
            && before.end() > start
        {
            let old = *before;
            before.length = length(old.start, start);
            if old.end() > end {
                flat.insert(end, MappedName { start: end, length: length(end, old.end()), ..old });
            }
        }
        while let Some((&at, &covered)) = flat.range(start..end).next() {
            flat.remove(&at);
            if covered.end() > end {
                flat.insert(end, MappedName { start: end, length: length(end, covered.end()), ..covered });
            }
        }
        flat.insert(start, *entry);
    }
    flat.into_values().collect()
}

/// Parts of an entry are no longer than it, so this never saturates.
fn length(start: u64, end: u64) -> u32 {
    u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX)
}

fn parse_line(line: &[u8]) -> Option<(u64, u32, &[u8])> {
    let line = line.trim_ascii();
    let (start, rest) = field(line)?;
    let (size, name) = field(rest)?;
    let (start, size) = (hex(start)?, hex(size)?);
    let size = u32::try_from(size).ok()?;
    start.checked_add(u64::from(size))?;
    (size > 0 && !name.is_empty()).then_some((start, size, name))
}

fn field(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(u8::is_ascii_whitespace)?;
    Some((&text[..end], text[end..].trim_ascii_start()))
}

fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if !digits.first()?.is_ascii_hexdigit() {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// At most [`MAX_NAME_BYTES`], cut between characters.
fn cut(name: &str) -> String {
    NAMES.cut(u64::from(name.len() > MAX_NAME_BYTES));
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, address: u64, expected: Option<&str>) {
        assert_eq!(PerfMap::parse(text.as_bytes()).lookup(Address(address)), expected, "{text:?} at {address:#x}");
    }

    #[test]
    fn an_entry_covers_its_bytes() {
        let text = "0x00007f7f08ec71c0 0x0000000000000270 int A.b(int, int)\n2000 10 LazyCompile:*foo file.js:1";
        check(text, 0x7f7f_08ec_71c0, Some("int A.b(int, int)"));
        check(text, 0x7f7f_08ec_742f, Some("int A.b(int, int)"));
        check(text, 0x7f7f_08ec_7430, None);
        check(text, 0x7f7f_08ec_71bf, None);
        check(text, 0x2008, Some("LazyCompile:*foo file.js:1"));
        check(text, 0, None);
    }

    #[test]
    fn the_later_line_wins_where_entries_overlap() {
        let text = "1000 100 a\n1040 20 b\n10f0 20 c\n1000 8 d\n";
        for (address, name) in
            [(0x1000, "d"), (0x1007, "d"), (0x1008, "a"), (0x1040, "b"), (0x1060, "a"), (0x10ef, "a"), (0x10f0, "c")]
        {
            check(text, address, Some(name));
        }
        check("1000 10 a\n1000 10 b\n", 0x1005, Some("b"));
        check("1040 20 b\n1000 100 a\n", 0x1045, Some("a"));
    }

    #[test]
    fn lines_that_are_no_entry_are_counted() {
        for (text, skipped) in [
            ("", 0),
            ("\n\n  \n", 0),
            ("hello\n", 1),
            ("zz 10 a\n1000 zz a\n1000 10\n1000 0 a\n", 4),
            ("+1000 10 a\n0x 10 a\n", 2),
            ("ffffffffffffffff 10 a\n1000 100000000 a\n", 2),
            ("10000000000000000 1 a\n", 1),
        ] {
            let map = PerfMap::parse(text.as_bytes());
            assert_eq!((map.skipped_lines, map.len()), (skipped, 0), "{text:?}");
        }
    }

    #[test]
    fn names_are_bounded_and_kept_once() {
        let long = "ä".repeat(2000);
        let map = PerfMap::parse(format!("1000 10 {long}\n2000 10 x\n3000 10 x\n").as_bytes());
        assert_eq!(map.lookup(Address(0x1000)).unwrap().len(), MAX_NAME_BYTES);
        assert_eq!(map.lookup(Address(0x3000)), Some("x"));
        assert_eq!(map.names.len(), 2 + MAX_NAME_BYTES + 2 + 1);
        assert_eq!(PerfMap::parse(b"1000 10 a\xff\xfe b\n").lookup(Address(0x1000)), Some("a\u{fffd}\u{fffd} b"));
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let text: Vec<u8> = (0..MAX_ENTRIES + 5).flat_map(|i| format!("{:x} 1 a\n", i * 16).into_bytes()).collect();
        let map = PerfMap::parse(&text);
        assert_eq!((map.len(), map.dropped_entries), (MAX_ENTRIES, 5));
    }

    /// What the entries mean, without any cleverness.
    fn naive(entries: &[(u8, u8, u8)], address: u64) -> Option<String> {
        let covers = |&&(start, size, _): &&(u8, u8, u8)| {
            size > 0 && u64::from(start) <= address && address < u64::from(start) + u64::from(size)
        };
        entries.iter().rev().find(covers).map(|entry| format!("n{}", entry.2))
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..400), address: u64) {
            let _ = PerfMap::parse(&text).lookup(Address(address));
        }

        #[test]
        fn overlaps_mean_what_the_lines_say(entries in proptest::collection::vec(any::<(u8, u8, u8)>(), 0..12)) {
            let text: String = entries.iter().map(|(start, size, name)| format!("{start:x} {size:x} n{name}\n")).collect();
            let map = PerfMap::parse(text.as_bytes());
            for address in 0..520 {
                let expected = naive(&entries, address);
                prop_assert_eq!(map.lookup(Address(address)), expected.as_deref());
            }
        }
    }
}
