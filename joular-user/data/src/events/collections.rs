//! Defines garbage collections of JVMs.

use serde::{Deserialize, Serialize};

use crate::model::{
    target_text::TargetText,
    units::{MonotonicNs, Pid, Tid},
};

/// Collections that took place, or were under way, in the coming window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCollections {
    /// By process, start and collector.
    pub collections: Vec<Collection>,
    /// What they showed of objects that had been sampled, by process, thread key and stack.
    pub fates: Vec<Fate>,
}

/// What young collections showed of sampled objects of one class that one thread had allocated on one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    pub tid: Tid,
    pub pid: Pid,
    /// As in an [`AllocationSample`](super::AllocationSample), and the stack too.
    pub thread_key: u64,
    pub stack: u64,
    /// What the samples stand for, and how much of that was there after the first collection.
    pub judged_bytes: u64,
    pub survived_bytes: u64,
}

/// One collection. One that is under way when its window ends comes again in the next window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    pub pid: Pid,
    /// As Java's `GarbageCollectorMXBean` is called: `G1 Young Generation`, `PS MarkSweep`, `ZGC Cycles`.
    pub collector: TargetText,
    /// As the JVM says: `G1 Evacuation Pause`, `Allocation Failure`. `None`: it keeps no such counter.
    pub cause: Option<TargetText>,
    pub start: MonotonicNs,
    /// `None`: it was under way when the window ended.
    pub end: Option<MonotonicNs>,
    /// Used bytes of the heap.
    pub before_bytes: u64,
    /// The same at the end. 0 while it is under way.
    pub after_bytes: u64,
    /// Bytes of objects in the young generation by age, from age 1 on. Empty where the collector keeps none, and while
    /// the collection is under way.
    pub ages: Vec<u64>,
}
