//! Assigns ranges of an array in the kernel.
//!
//! It takes the first fit, and merges free neighbours. A range given back is handed out anew only
//! when two windows have passed: a program that found it just before may still be reading, and
//! would take the new contents for its file's rules.

use std::collections::BTreeMap;

/// Window ends between giving a range back and its next use: of the first of them
/// nobody knows how soon it comes.
const GRACE_WINDOWS: u64 = 2;

/// Elements `first .. first + count` of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub first: u32,
    pub count: u32,
}

impl Range {
    const fn end(self) -> u32 {
        self.first + self.count
    }
}

/// The ranges of one array.
#[derive(Debug)]
pub struct Ranges {
    /// First → count; never two that touch.
    free: BTreeMap<u32, u32>,
    /// Given back, and in which window, oldest first.
    resting: Vec<(u64, Range)>,
    window: u64,
}

impl Ranges {
    pub fn new(capacity: u32) -> Self {
        Self { free: BTreeMap::from([(0, capacity)]), resting: Vec::new(), window: 0 }
    }

    /// `None`: there is no such room. None is needed for nothing.
    pub fn take(&mut self, count: u32) -> Option<Range> {
        if count == 0 {
            return Some(Range::default());
        }
        let (&first, &free) = self.free.iter().find(|&(_, &free)| free >= count)?;
        self.free.remove(&first);
        if free > count {
            self.free.insert(first + count, free - count);
        }
        Some(Range { first, count })
    }

    /// Gives a range back that was taken.
    pub fn give_back(&mut self, range: Range) {
        if range.count > 0 {
            self.resting.push((self.window, range));
        }
    }

    /// A window has ended. Says whether there is more room now.
    pub fn pass_window(&mut self) -> bool {
        self.window += 1;
        let still = self.resting.partition_point(|(since, _)| since + GRACE_WINDOWS <= self.window);
        for (_, range) in self.resting.drain(..still).collect::<Vec<_>>() {
            self.free(range);
        }
        still > 0
    }

    fn free(&mut self, mut range: Range) {
        if let Some((&first, &count)) = self.free.range(..range.first).next_back()
            && first + count == range.first
        {
            self.free.remove(&first);
            range = Range { first, count: count + range.count };
        }
        if let Some(count) = self.free.remove(&range.end()) {
            range.count += count;
        }
        self.free.insert(range.first, range.count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_rests_before_it_is_used_again() {
        let mut ranges = Ranges::new(10);
        let first = ranges.take(6).unwrap();
        assert_eq!(first, Range { first: 0, count: 6 });
        assert_eq!(ranges.take(5), None);
        ranges.give_back(first);
        assert_eq!(ranges.take(6), None);
        assert!(!ranges.pass_window());
        assert_eq!(ranges.take(6), None, "given back at the very end of that window, perhaps");
        assert!(ranges.pass_window());
        assert_eq!(ranges.take(10), Some(Range { first: 0, count: 10 }), "one piece again");
        assert_eq!(ranges.take(0), Some(Range::default()), "nothing fits even now");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Take(u32),
        GiveBack(prop::sample::Index),
        PassWindow,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1_u32..40).prop_map(Step::Take),
            any::<prop::sample::Index>().prop_map(Step::GiveBack),
            Just(Step::PassWindow),
        ]
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_nothing_is_lost(steps in proptest::collection::vec(step(), 0..200)) {
            const CAPACITY: u32 = 100;
            let mut ranges = Ranges::new(CAPACITY);
            let mut held: Vec<Range> = Vec::new();
            // Those given back within the grace may still be read.
            let mut resting: Vec<(u64, Range)> = Vec::new();
            let mut window = 0;
            for step in steps {
                match step {
                    Step::Take(count) => {
                        if let Some(range) = ranges.take(count) {
                            prop_assert_eq!(range.count, count);
                            prop_assert!(range.end() <= CAPACITY);
                            let read = resting.iter().map(|(_, range)| range).chain(&held);
                            for other in read {
                                prop_assert!(range.end() <= other.first || other.end() <= range.first);
                            }
                            held.push(range);
                        }
                    }
                    Step::GiveBack(at) if !held.is_empty() => {
                        let range = held.swap_remove(at.index(held.len()));
                        ranges.give_back(range);
                        resting.push((window, range));
                    }
                    Step::GiveBack(_) => {}
                    Step::PassWindow => {
                        ranges.pass_window();
                        window += 1;
                        resting.retain(|(since, _)| since + GRACE_WINDOWS > window);
                    }
                }
            }
            held.drain(..).for_each(|range| ranges.give_back(range));
            for _ in 0..GRACE_WINDOWS {
                ranges.pass_window();
            }
            prop_assert_eq!(ranges.take(CAPACITY), Some(Range { first: 0, count: CAPACITY }));
        }
    }
}
