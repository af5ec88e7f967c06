//! Estimates how often a method was called, as far as samples can tell.
//!
//! Sampling does not see calls. It sees, window by window, whether a thread's samples had a method
//! on their paths. If one had it, a later one had not, and one after that had it again, the method
//! was called at least twice. [`Activations`] counts, for each thread, the smallest number of calls
//! that explains all of its samples: a lower bound of the real number. Energy divided by it is an
//! upper bound of the mean energy of a call.
//!
//! The order of samples within a window is not known, so all orders are allowed and the one with
//! the fewest calls counts. A sample whose path has a marker may have missed the method, so it does
//! not show that the method was absent.

use std::collections::{HashMap, HashSet};

use super::{by::By, groups::Groups};
use crate::{
    model::{frame::FrameKind, units::UnixMicros},
    report::profile::{App, Catalog, EnergyRow, PathIndex, ThreadIndex},
};

/// Counts the activations of a table's rows while a data set is read.
#[derive(Debug)]
pub struct Activations {
    by: By,
    app: Option<App>,
    paths: Option<KnownPaths>,
    threads: HashMap<ThreadIndex, OfThread>,
}

/// What paths show.
#[derive(Debug)]
struct KnownPaths {
    /// Groups on each path, each once.
    groups: Vec<Box<[u32]>>,
    /// Whether what is not on it was not there.
    are_whole: Vec<bool>,
    /// Of all paths.
    count: usize,
}

/// The fewest calls that explain a thread's samples so far, by whether the method
/// is on the stack behind the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fewest {
    on: u64,
    off: u64,
    /// Windows of the thread that it has gone through.
    windows: u64,
}

const IMPOSSIBLE: u64 = u64::MAX;

impl Fewest {
    const NEVER: Self = Self { on: IMPOSSIBLE, off: 0, windows: 0 };

    /// A window whose samples all had it.
    fn present(&mut self) {
        *self = Self { on: self.on.min(self.off.saturating_add(1)), off: IMPOSSIBLE, ..*self };
    }

    /// A sample without it.
    fn absent(&mut self) {
        *self = Self { on: IMPOSSIBLE, off: self.on.min(self.off), ..*self };
    }

    /// A window with samples of both sorts, in any order.
    fn mixed(&mut self) {
        let next = |calls: u64| calls.saturating_add(1);
        *self = Self { on: next(self.on.min(self.off)), off: self.on.min(next(self.off)), ..*self };
    }

    fn calls(self) -> u64 {
        self.on.min(self.off)
    }
}

/// A thread's window as it is read, and what came before.
#[derive(Debug, Default)]
struct OfThread {
    window: Option<UnixMicros>,
    /// Paths with samples in it that show absence.
    whole_paths: u64,
    /// Groups in it, with how many of those paths they were on.
    present: HashMap<u32, u64>,
    /// Windows that are done, and the last of them that showed absence.
    windows: u64,
    last_whole: u64,
    fewest: HashMap<u32, Fewest>,
}

impl OfThread {
    fn end_window(&mut self) {
        self.windows += 1;
        for (group, on_whole) in self.present.drain() {
            let fewest = self.fewest.entry(group).or_insert(Fewest::NEVER);
            // Windows between that it was not in; one that shows so is as good as several.
            if self.last_whole > fewest.windows {
                fewest.absent();
            }
            if on_whole < self.whole_paths {
                fewest.mixed()
            } else {
                fewest.present()
            }
            fewest.windows = self.windows;
        }
        if self.whole_paths > 0 {
            self.last_whole = self.windows;
        }
        self.whole_paths = 0;
    }
}

impl Activations {
    /// `None` where rows are nothing that is called.
    pub fn of(by: By, app: Option<&App>) -> Option<Self> {
        by.is_called().then(|| Self { by, app: app.cloned(), paths: None, threads: HashMap::new() })
    }

    /// Takes a row. A thread's rows come in order of time.
    pub fn see(&mut self, catalog: &Catalog, row: &EnergyRow) {
        if row.samples == 0 {
            return;
        }
        let paths = self.paths.get_or_insert_with(|| KnownPaths::of(self.by, self.app.as_ref(), catalog));
        let thread = self.threads.entry(row.thread).or_default();
        if thread.window != Some(row.window_start) {
            if thread.window.is_some() {
                thread.end_window();
            }
            thread.window = Some(row.window_start);
        }
        let (groups, is_whole) = paths.get(row.path);
        thread.whole_paths += u64::from(is_whole);
        for group in groups {
            *thread.present.entry(*group).or_default() += u64::from(is_whole);
        }
    }

    /// The fewest calls of each group, all threads together.
    pub fn counts(mut self) -> Vec<u64> {
        let mut counts = vec![0_u64; self.paths.as_ref().map_or(0, |paths| paths.count)];
        for thread in self.threads.values_mut() {
            thread.end_window();
            for (group, fewest) in &thread.fewest {
                if let Some(count) = usize::try_from(*group).ok().and_then(|group| counts.get_mut(group)) {
                    *count = count.saturating_add(fewest.calls());
                }
            }
        }
        counts
    }
}

impl KnownPaths {
    fn of(by: By, app: Option<&App>, catalog: &Catalog) -> Self {
        let of_app = app.map(|app| Catalog { paths: catalog.paths.of_app(app), ..Catalog::default() });
        let seen = of_app.as_ref().unwrap_or(catalog);
        let groups = Groups::of_catalog(by, seen);
        let of_frames = groups.of_frames().unwrap_or_default();
        let distinct = |path| {
            let mut once = HashSet::new();
            let all = seen.paths.path(path).iter().filter_map(|frame| of_frames.get(frame.index()));
            let all = all.filter_map(|group| u32::try_from(*group).ok());
            all.filter(|group| once.insert(*group)).collect()
        };
        let is_whole = |path| catalog.paths.frames_of(path).all(|frame| frame.kind != FrameKind::Marker);
        Self {
            groups: seen.paths.indices().map(distinct).collect(),
            are_whole: catalog.paths.indices().map(is_whole).collect(),
            count: groups.len(),
        }
    }

    fn get(&self, path: PathIndex) -> (&[u32], bool) {
        let groups = self.groups.get(path.index()).map_or(&[][..], |groups| groups);
        (groups, self.are_whole.get(path.index()).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Windows of a thread: samples with the method, samples without.
    fn fewest(windows: &[(u64, u64)]) -> u64 {
        let mut thread = OfThread::default();
        for (with, without) in windows {
            thread.whole_paths = with + without;
            if *with > 0 {
                thread.present.insert(0, *with);
            }
            thread.end_window();
        }
        thread.fewest.get(&0).map_or(0, |fewest| fewest.calls())
    }

    #[test]
    fn calls_are_those_that_samples_cannot_be_explained_without() {
        for (windows, expected, why) in [
            (&[][..], 0, "nothing was seen"),
            (&[(0, 9)], 0, "never on the stack"),
            (&[(9, 0), (9, 0), (9, 0)], 1, "one long call"),
            (&[(9, 0), (0, 9), (9, 0)], 2, "it was gone between"),
            (&[(9, 0), (0, 9), (0, 9), (9, 0)], 2, "one return between is enough"),
            (&[(1, 1)], 1, "called or returned within"),
            (&[(9, 0), (1, 1), (9, 0)], 2, "gone at one moment of the middle"),
            (&[(9, 0), (1, 1), (0, 9)], 1, "returned in the middle"),
            (&[(1, 1), (1, 1)], 1, "called in the one, returned in the other"),
            (&[(1, 1), (1, 1), (1, 1)], 2, "and again"),
            (&[(9, 0), (0, 0), (9, 0)], 1, "a window without samples shows nothing"),
        ] {
            assert_eq!(fewest(windows), expected, "{why}: {windows:?}");
        }
    }

    #[test]
    fn a_path_with_a_marker_does_not_show_that_a_method_is_absent() {
        let mut thread = OfThread::default();
        for (present, whole_paths) in [(true, 1), (false, 0), (true, 1)] {
            thread.whole_paths = whole_paths;
            if present {
                thread.present.insert(0, 1);
            }
            thread.end_window();
        }
        assert_eq!(thread.fewest[&0].calls(), 1);
    }

    proptest! {
        /// What happened is one explanation: the fewest calls are never more.
        #[test]
        fn there_were_never_fewer_calls_than_are_counted(moments in prop::collection::vec(any::<bool>(), 1..200), length in 1usize..20) {
            let windows: Vec<(u64, u64)> = moments
                .chunks(length)
                .map(|window| {
                    let with = window.iter().filter(|on| **on).count() as u64;
                    (with, window.len() as u64 - with)
                })
                .collect();
            let calls = u64::from(moments[0]) + moments.windows(2).filter(|pair| !pair[0] && pair[1]).count() as u64;
            let counted = fewest(&windows);
            prop_assert!(counted <= calls);
            prop_assert_eq!(counted == 0, calls == 0);
            if length == 1 {
                prop_assert_eq!(counted, calls, "where the order is known nothing is missed");
            }
        }
    }
}
