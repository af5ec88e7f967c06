//! Lists the measures.

use std::{path::Path, str::FromStr};

use super::Way;
use crate::{dataset::error::DataSetError, model::counter::Counter};

/// What is measured of threads and divided among their call paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    #[default]
    Energy,
    /// Bytes on the Java heap.
    Allocated,
    /// Bytes through sockets and files.
    Moved(Way),
    /// Events of the processor and of the kernel.
    Counted(Counter),
}

/// What amounts of a measure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    MicroJoules,
    Bytes,
    Count,
}

impl Measure {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let moved = Way::ALL.into_iter().map(Self::Moved);
        [Self::Energy, Self::Allocated].into_iter().chain(moved).chain(Counter::ALL.into_iter().map(Self::Counted))
    }

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Energy => "energy",
            Self::Allocated => "allocated",
            Self::Moved(way) => way.name(),
            Self::Counted(counter) => counter.name(),
        }
    }

    /// What a table is of, for people.
    pub fn title(self) -> String {
        match self {
            Self::Energy => "Energy".to_owned(),
            Self::Allocated => "Allocated bytes".to_owned(),
            Self::Moved(way) => format!("Bytes {}", way.words()),
            Self::Counted(counter) => format!("Count of {}", counter.name()),
        }
    }

    /// The heading of a column for people, with the unit.
    pub fn heading(self) -> String {
        match self {
            Self::Energy => "J".to_owned(),
            Self::Allocated => "ALLOC MB".to_owned(),
            Self::Moved(way) => way.heading().to_owned(),
            Self::Counted(counter) => counter.name().to_uppercase(),
        }
    }

    pub const fn unit(self) -> Unit {
        match self {
            Self::Energy => Unit::MicroJoules,
            Self::Allocated | Self::Moved(_) => Unit::Bytes,
            Self::Counted(_) => Unit::Count,
        }
    }

    /// Why nothing of it can be shown.
    pub fn nothing(self, path: &Path) -> DataSetError {
        let path = path.to_owned();
        let flag = match self {
            Self::Energy => return DataSetError::NoEnergy { path },
            Self::Allocated => "--alloc".to_owned(),
            Self::Moved(_) => "--io".to_owned(),
            Self::Counted(counter) => format!("--counters {}", counter.name()),
        };
        DataSetError::NothingMeasured { path, measure: self.title().to_lowercase(), flag }
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        Self::all()
            .find(|measure| measure.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| format!("'{}' is not a measure: use one of {}", name.escape_debug(), names()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_is_of_one_measure() {
        let names: BTreeSet<&str> = Measure::all().map(Measure::name).collect();
        assert_eq!(names.len(), Measure::all().count());
        assert!(Measure::all().all(|measure| measure.name().parse() == Ok(measure)));
        assert!("joules".parse::<Measure>().unwrap_err().starts_with("'joules' is not a measure: use one of energy, "));
    }
}
