//! Defines the steps of the validation protocol (docs/validation.md): which programs run, alone and side by side, and how
//! busy they keep the machine.
//!
//! A step is a phase of the recording. Its name says what ran, so a data set has all that the report needs. Each round has every step once, in a random order.

use serde::{Serialize, Serializer};

/// What a program of the protocol does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// Arithmetic with integers, in registers.
    Compute,
    /// Reads and writes more memory than caches hold.
    Memory,
    /// Arithmetic with vectors of numbers that the first cache holds.
    Vector,
    /// Reads a file, past the cache of files where the file system allows it.
    Io,
}

impl Program {
    pub const ALL: [Self; 4] = [Self::Compute, Self::Memory, Self::Vector, Self::Io];

    /// Name of its process, and its part of a step's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Vector => "vector",
            Self::Io => "io",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What runs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing.
    Idle,
    /// A program on all CPUs, in so many percent of the time.
    Load(Program, u8),
    /// A program all the time, with one thread for every second CPU.
    Alone(Program),
    /// Two programs, each as if it was alone.
    Pair(Program, Program),
}

/// Percent of the time in which a program works.
const LOADS: [u8; 4] = [25, 50, 75, 100];

/// Programs that run side by side: two that differ in what they use, two that differ in what a cycle costs, and one that
/// waits.
pub const PAIRS: [(Program, Program); 3] =
    [(Program::Compute, Program::Memory), (Program::Compute, Program::Vector), (Program::Memory, Program::Io)];

const IDLE: &str = "idle";
const ALONE: &str = "alone";

impl Step {
    /// All of a round.
    pub fn all() -> Vec<Self> {
        let loads = Program::ALL.into_iter().flat_map(|program| LOADS.map(|percent| Self::Load(program, percent)));
        let alone = Program::ALL.map(Self::Alone);
        let pairs = PAIRS.map(|(a, b)| Self::Pair(a, b));
        [Self::Idle].into_iter().chain(loads).chain(alone).chain(pairs).collect()
    }

    /// Of its phase.
    pub fn name(self) -> String {
        match self {
            Self::Idle => IDLE.to_owned(),
            Self::Load(program, percent) => format!("{}-{percent}", program.name()),
            Self::Alone(program) => format!("{}-{ALONE}", program.name()),
            Self::Pair(a, b) => format!("{}+{}", a.name(), b.name()),
        }
    }

    /// `None`: it is not the name of a step.
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|step| step.name() == name)
    }

    /// Programs that run, with the percent of the time in which each works.
    pub fn programs(self) -> Vec<(Program, u8)> {
        match self {
            Self::Idle => Vec::new(),
            Self::Load(program, percent) => vec![(program, percent)],
            Self::Alone(program) => vec![(program, 100)],
            Self::Pair(a, b) => vec![(a, 100), (b, 100)],
        }
    }

    /// Threads of each of its programs on a machine with so many CPUs.
    pub fn threads(self, cpus: usize) -> usize {
        match self {
            Self::Idle | Self::Load(..) => cpus,
            Self::Alone(_) | Self::Pair(..) => (cpus / 2).max(1),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_step_is_known_by_its_name() {
        let steps = Step::all();
        let names: BTreeSet<String> = steps.iter().map(|step| step.name()).collect();
        assert_eq!((steps.len(), names.len()), (24, 24));
        for step in steps {
            assert_eq!(Step::parse(&step.name()), Some(step));
        }
        for name in ["", "idle-50", "compute", "compute-30", "memory+compute", "compute/idle"] {
            assert_eq!(Step::parse(name), None, "{name}");
        }
    }

    #[test]
    fn what_runs_side_by_side_also_runs_alone_with_as_many_threads() {
        for (a, b) in PAIRS {
            for cpus in [1, 2, 7, 64] {
                let threads = Step::Pair(a, b).threads(cpus);
                assert_eq!([a, b].map(|program| Step::Alone(program).threads(cpus)), [threads; 2]);
                assert!(threads >= 1 && (cpus == 1 || 2 * threads <= cpus));
            }
        }
    }
}
