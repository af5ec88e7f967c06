//! Lists what is measured beside CPU time: energy, bytes and counts.

use std::str::FromStr;

use super::{counter::Counter, way::Way};

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

    /// Whether amounts of `part` are amounts of this measure: bytes sent to other hosts are bytes sent.
    pub fn includes(self, part: Self) -> bool {
        match (self, part) {
            (Self::Moved(way), Self::Moved(part)) => part.kinds().iter().all(|kind| way.kinds().contains(kind)),
            _ => self == part,
        }
    }

    /// What makes a recording have it; `None`: all have.
    pub fn flag(self) -> Option<String> {
        match self {
            Self::Energy => None,
            Self::Allocated => Some("--alloc".to_owned()),
            Self::Moved(_) => Some("--io".to_owned()),
            Self::Counted(counter) => Some(format!("--counters {}", counter.name())),
        }
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
        let of_sent = Measure::all().filter(|part| Measure::Moved(Way::Sent).includes(*part)).map(Measure::name);
        assert_eq!(of_sent.collect::<BTreeSet<_>>(), BTreeSet::from(["sent", "remote-sent", "local-sent"]));
        assert!("joules".parse::<Measure>().unwrap_err().starts_with("'joules' is not a measure: use one of energy, "));
    }
}
