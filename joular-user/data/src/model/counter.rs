//! Names what can be counted beside CPU time: events of the processor and of the kernel.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a counter counts, by the names that perf gives them. Recordings have them by number: a new one goes to the
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    Cycles,
    Instructions,
    CacheReferences,
    CacheMisses,
    Branches,
    BranchMisses,
    RefCycles,
    L1DataLoadMisses,
    LastLevelLoadMisses,
    DataTlbLoadMisses,
    PageFaults,
    MinorFaults,
    MajorFaults,
    ContextSwitches,
    CpuMigrations,
}

/// A text that names no counter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no such counter: use {}", Counter::names())]
pub struct UnknownCounter;

impl Counter {
    pub const ALL: [Self; 15] = [
        Self::Cycles,
        Self::Instructions,
        Self::CacheReferences,
        Self::CacheMisses,
        Self::Branches,
        Self::BranchMisses,
        Self::RefCycles,
        Self::L1DataLoadMisses,
        Self::LastLevelLoadMisses,
        Self::DataTlbLoadMisses,
        Self::PageFaults,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::ContextSwitches,
        Self::CpuMigrations,
    ];

    /// As on the command line and in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::CacheReferences => "cache-references",
            Self::CacheMisses => "cache-misses",
            Self::Branches => "branches",
            Self::BranchMisses => "branch-misses",
            Self::RefCycles => "ref-cycles",
            Self::L1DataLoadMisses => "L1-dcache-load-misses",
            Self::LastLevelLoadMisses => "LLC-load-misses",
            Self::DataTlbLoadMisses => "dTLB-load-misses",
            Self::PageFaults => "page-faults",
            Self::MinorFaults => "minor-faults",
            Self::MajorFaults => "major-faults",
            Self::ContextSwitches => "context-switches",
            Self::CpuMigrations => "cpu-migrations",
        }
    }

    /// Whether the processor counts it, so that a machine may lack it. The kernel counts the others everywhere.
    pub fn is_of_hardware(self) -> bool {
        self < Self::PageFaults
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl FromStr for Counter {
    type Err = UnknownCounter;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|counter| counter.name() == text).ok_or(UnknownCounter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name_and_recorded_by_its_number() {
        for (number, counter) in (0_u8..).zip(Counter::ALL) {
            assert_eq!(counter.name().parse(), Ok(counter));
            assert_eq!(postcard::to_stdvec(&counter), Ok(vec![number]));
        }
        let error = "joules".parse::<Counter>().unwrap_err().to_string();
        assert!(error.starts_with("no such counter: use cycles, instructions, "), "{error}");
    }
}
