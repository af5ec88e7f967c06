//! Defines garbage collections of JVMs.

use serde::{Deserialize, Serialize};

use crate::model::{
    target_text::TargetText,
    units::{MonotonicNs, Pid},
};

/// Collections that took place, or were under way, in the coming window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCollections {
    /// By process, start and collector.
    pub collections: Vec<Collection>,
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
