//! Resolves what measured energy of memory is divided by.

use std::str::FromStr;

use joular_data::model::domain::{DividedBy, Domain};
use thiserror::Error;

/// What it is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryBy {
    /// As all other energy.
    #[default]
    Time,
    /// Bytes allocated, which needs allocations.
    Allocation,
    /// Cache misses, which needs their counter.
    CacheMisses,
}

/// A text that names nothing of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("memory is not divided by that: use time, allocation or cache-misses")]
pub struct UnknownMemoryBy;

/// There is no energy of memory to divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("--dram-by changes nothing: no source here measures memory by itself")]
pub struct NoMemory;

impl FromStr for MemoryBy {
    type Err = UnknownMemoryBy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "time" => Self::Time,
            "allocation" => Self::Allocation,
            "cache-misses" => Self::CacheMisses,
            _ => return Err(UnknownMemoryBy),
        })
    }
}

impl MemoryBy {
    /// Divides domains of memory so. Says what was done, for people; `None` if nothing was asked.
    ///
    /// # Errors
    /// If no domain is of memory.
    pub fn apply(self, domains: &mut [Domain]) -> Result<Option<String>, NoMemory> {
        let (divided_by, words) = match self {
            Self::Time => return Ok(None),
            Self::Allocation => (DividedBy::Allocation, "bytes allocated"),
            Self::CacheMisses => (DividedBy::CacheMisses, "cache misses"),
        };
        let mut memory: Vec<&mut Domain> = domains.iter_mut().filter(|domain| domain.is_shared_memory()).collect();
        memory.iter_mut().for_each(|domain| domain.divided_by = divided_by.clone());
        if memory.is_empty() { Err(NoMemory) } else { Ok(Some(format!("memory (dram) is divided by {words}"))) }
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::{Label, Meter, Role};

    use super::*;

    #[test]
    fn memory_that_threads_share_is_divided_as_it_is_asked() {
        let domain =
            |name: &str, role| Domain { role, ..Domain::new(name, Some(0), "test", Label::Measured, Meter::Power) };
        let domains =
            [domain("package", Role::Shared), domain("dram", Role::Shared), domain("dram", Role::Check { of: 1 })];
        for (text, divided_by, part) in [
            ("time", DividedBy::CpuWeights, None),
            ("allocation", DividedBy::Allocation, Some("divided by bytes allocated")),
            ("cache-misses", DividedBy::CacheMisses, Some("divided by cache misses")),
        ] {
            let mut found = domains.clone();
            let said = text.parse::<MemoryBy>().unwrap().apply(&mut found).unwrap();
            assert_eq!(said.is_some(), part.is_some(), "{text}");
            assert!(part.is_none_or(|part| said.unwrap().ends_with(part)));
            let expected = [DividedBy::CpuWeights, divided_by, DividedBy::CpuWeights];
            assert_eq!(found.map(|domain| domain.divided_by), expected, "{text}");
        }
        assert_eq!(MemoryBy::Allocation.apply(&mut domains[..1].to_vec()), Err(NoMemory));
        assert_eq!("moonlight".parse::<MemoryBy>(), Err(UnknownMemoryBy));
    }
}
