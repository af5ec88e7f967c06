//! Keeps the names of a file's code by offset, in few large blocks of memory: a small block that stays keeps its
//! whole page from being given back, and a file like libjvm has thousands of functions and many times more return
//! addresses.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    num::NonZeroU32,
};

use hashbrown::HashTable;

/// Answers kept of one file before it starts over: what a table of 2^15 slots holds.
const MAX_ANSWERS: usize = 7 << 12;

/// What is known of offsets in a file.
#[derive(Debug, Default)]
pub struct Answers {
    /// By the halves of an offset, a key that needs no padding: the number of its name, from 1 on; `None` if no symbol
    /// covers the offset.
    names_at: HashMap<[u32; 2], Option<NonZeroU32>>,
    names: Names,
}

/// Names without repetition, numbered as they came.
#[derive(Debug, Default)]
struct Names {
    text: String,
    /// Where in `text` each name ends; it starts where the one before ends.
    ends: Vec<usize>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Answers {
    /// Which of these offsets are not known, in order. If they would be too many, everything is forgotten, and it is all.
    pub fn make_room(&mut self, offsets: &[u64]) -> Vec<u64> {
        let mut missing: Vec<u64> = offsets.iter().copied().filter(|at| !self.has(*at)).collect();
        if !missing.is_empty() && self.names_at.len() + missing.len() > MAX_ANSWERS {
            *self = Self::default();
            missing = offsets.to_vec();
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn has(&self, offset: u64) -> bool {
        self.names_at.contains_key(&halves(offset))
    }

    /// `None`: the offset was not asked for; `Some(None)`: it has no name.
    pub fn get(&self, offset: u64) -> Option<Option<&str>> {
        let number = *self.names_at.get(&halves(offset))?;
        Some(number.and_then(|number| self.names.get(number.get() - 1)))
    }

    pub fn insert(&mut self, offset: u64, name: Option<&str>) {
        let number = name.and_then(|name| NonZeroU32::new(self.names.number(name)?.checked_add(1)?));
        self.names_at.insert(halves(offset), number);
    }
}

#[allow(clippy::cast_possible_truncation, reason = "its halves")]
const fn halves(offset: u64) -> [u32; 2] {
    [(offset >> 32) as u32, offset as u32]
}

impl Names {
    fn get(&self, number: u32) -> Option<&str> {
        name(&self.text, &self.ends, number)
    }

    /// The number of a name, which it gets now if it is new.
    fn number(&mut self, new: &str) -> Option<u32> {
        let Self { text, ends, numbers, hasher } = self;
        let hash = hasher.hash_one(new);
        if let Some(known) = numbers.find(hash, |known| name(text, ends, *known) == Some(new)) {
            return Some(*known);
        }
        let number = u32::try_from(ends.len()).ok()?;
        text.push_str(new);
        ends.push(text.len());
        numbers.insert_unique(hash, number, |known| hasher.hash_one(name(text, ends, *known).unwrap_or_default()));
        Some(number)
    }
}

fn name<'a>(text: &'a str, ends: &[usize], number: u32) -> Option<&'a str> {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
    text.get(start..*ends.get(number)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_offset_has_its_name_and_each_name_is_kept_once() {
        let mut answers = Answers::default();
        let far = 0x10 | 1 << 32;
        for (offset, name) in [(0x10, Some("f")), (0x14, Some("f")), (0x20, None), (far, Some("g")), (0x30, Some(""))] {
            answers.insert(offset, name);
        }
        let got = [0x10, 0x14, 0x20, far, 0x30, 0x18].map(|offset| answers.get(offset));
        assert_eq!(got, [Some(Some("f")), Some(Some("f")), Some(None), Some(Some("g")), Some(Some("")), None]);
        assert_eq!((answers.names.text.as_str(), answers.names.ends.len()), ("fg", 3));
        assert!(answers.has(0x20) && !answers.has(0x18));
    }

    #[test]
    fn thousands_of_names_are_found_again() {
        let mut answers = Answers::default();
        let name = |at: u64| format!("function_{}", at / 4);
        (0..10_000).for_each(|at| answers.insert(at, Some(&name(at))));
        assert!((0..10_000).all(|at| answers.get(at) == Some(Some(&*name(at)))));
        assert_eq!(answers.names.ends.len(), 2_500);
    }

    #[test]
    fn answers_start_over_before_there_are_too_many() {
        let mut answers = Answers::default();
        (0..MAX_ANSWERS as u64).for_each(|at| answers.insert(at, Some("f")));
        assert!(answers.make_room(&[0, 1]).is_empty() && answers.has(0), "nothing is missing");
        let new = MAX_ANSWERS as u64;
        assert_eq!(answers.make_room(&[new, 0, new]), [0, new]);
        assert!(!answers.has(0) && answers.names.text.is_empty());
    }
}
