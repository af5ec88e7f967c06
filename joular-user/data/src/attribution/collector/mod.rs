//! Charges the energy of garbage collectors back to the call paths that made them work.
//!
//! A collector's own rows stay what they are. Beside them, what a JVM's collector used in a window is divided among
//! paths that allocated, by bytes. Which bytes count follows from the collections of the window:
//!
//! - a collection of the young generation: what was allocated since the last collection;
//! - a collection of everything (a full one, or a cycle of a concurrent collector): since the last one of those;
//! - none of the whole heap, but threads mark it: the same;
//! - none, as where a collector works beside the program: what was allocated in the window.
//!
//! What survives makes a collector work more than what does not. Where collections show what has survived of sampled objects
//! ([`Fate`](crate::events::Fate)), a second division is by that. Where they do not, it is the same as the first.
//!
//! A collector's threads do different work, and their names tell it ([`threads`]): what threads used that mark, or that
//! collect one generation, is for collections of that kind; what refinement used is for no allocation, and stays with the
//! collector; the rest is divided among the window's collections, by how long each took of it. The bytes that count are
//! part of a window's work ([`ledger`]), and are kept in data sets, and so are threads. So the division ([`divide`]) can be
//! made again.

mod divide;
mod ledger;
mod threads;

use super::{
    paths::Paths,
    window_report::{Category, ProcessRef},
    work::ProcessKey,
};
use crate::{
    events::{Collection, Window, WindowCollections},
    model::{
        target_text::TargetText,
        units::{MicroJoules, Tid},
    },
    stacks::BranchIndex,
};

pub use self::threads::GcThread;
pub(super) use self::{divide::charge, ledger::Ledgers};

/// What a collection collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectionKind {
    /// The young generation, or with G1 that and some of the old one.
    Young,
    /// The whole heap.
    Old,
}

impl CollectionKind {
    pub const ALL: [Self; 2] = [Self::Young, Self::Old];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Young => "young",
            Self::Old => "old",
        }
    }

    /// By the name of the collector, as JDK 11 to 25 have them. One that is not known counts as collecting everything.
    pub fn of(collector: &str) -> Self {
        match collector {
            "Copy" | "PS Scavenge" | "ParNew" | "G1 Young Generation" | "ZGC Minor Cycles" | "ZGC Minor Pauses" => {
                Self::Young
            }
            _ => Self::Old,
        }
    }
}

/// A collection in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionRow {
    /// Index into the window's processes.
    pub process: usize,
    pub collector: TargetText,
    pub cause: Option<TargetText>,
    /// Its start since the window's; negative: it began in an earlier window.
    pub since_start_ns: i64,
    /// `None`: it was under way when the window ended.
    pub duration_ns: Option<u64>,
    /// Used bytes of the heap.
    pub before_bytes: u64,
    /// `None` while it is under way.
    pub after_bytes: Option<u64>,
    /// Bytes of objects by age, from age 1 on; empty where they are not kept.
    pub ages: Vec<u64>,
    /// Of the collector's energy in the window.
    pub energy: MicroJoules,
}

impl CollectionRow {
    fn new(process: usize, collection: &Collection, window: &Window) -> Self {
        let since_start_ns = collection.start.0.cast_signed().saturating_sub(window.start.0.cast_signed());
        Self {
            process,
            collector: collection.collector.clone(),
            cause: collection.cause.clone(),
            since_start_ns,
            duration_ns: collection.end.map(|end| end.since(collection.start)),
            before_bytes: collection.before_bytes,
            after_bytes: collection.end.map(|_| collection.after_bytes),
            ages: collection.ages.clone(),
            energy: MicroJoules(0),
        }
    }

    pub fn kind(&self) -> CollectionKind {
        CollectionKind::of(self.collector.raw())
    }

    /// Whether its time is that of threads that work beside the program, and not a pause.
    fn is_cycle(&self) -> bool {
        self.collector.raw().ends_with(" Cycles")
    }

    /// When it ended, since the window's start; `None`: it did not.
    fn end_ns(&self) -> Option<u64> {
        let end_ns = i128::from(self.since_start_ns) + i128::from(self.duration_ns?);
        Some(u64::try_from(end_ns.max(0)).unwrap_or(u64::MAX))
    }

    /// How long it took of a window. A collection in it took something.
    fn within_ns(&self, window_ns: u64) -> u64 {
        let start_ns = u64::try_from(self.since_start_ns).unwrap_or(0);
        self.end_ns().unwrap_or(window_ns).min(window_ns).saturating_sub(start_ns).max(1)
    }
}

/// A path of a thread that is charged for a part of its collector's energy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeRow {
    /// Index into the window's processes.
    pub process: usize,
    /// The thread may have ended, or not have run in the window.
    pub tid: Tid,
    pub start_boottime_ns: u64,
    pub name: TargetText,
    pub category: Category,
    pub branch: BranchIndex,
    /// Bytes that it allocated: since the last collection, in this window included; 0 unless there is a collection of the
    /// young generation in the window.
    pub since_young_bytes: u64,
    /// The same since the last collection of everything; 0 unless there is one in the window, or threads marked.
    pub since_old_bytes: u64,
    /// In the window; 0 if there is a collection in it, or threads marked.
    pub window_bytes: u64,
    /// About how much of what it allocated survived its first young collection: in this window.
    pub young_survived_bytes: u64,
    /// The same since the last collection of everything; 0 where `since_old_bytes` is.
    pub old_survived_bytes: u64,
    pub charged: MicroJoules,
    /// What it is charged if what survived counts, and not what was allocated.
    pub charged_by_survival: MicroJoules,
}

/// The rows of a window's collections. Those of processes that did not run in it are nobody's.
pub(super) fn rows(collected: &WindowCollections, window: &Window, processes: &[ProcessRef]) -> Vec<CollectionRow> {
    let row = |collection: &Collection| {
        let process = processes.iter().rposition(|process| process.pid == collection.pid)?;
        Some(CollectionRow::new(process, collection, window))
    };
    collected.collections.iter().filter_map(row).collect()
}
