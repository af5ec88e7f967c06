//! Lists what Grafana can draw: energy and other figures of a data set, as types of profiles.

use std::collections::BTreeSet;

use joular_data::{
    report::{
        measure::{Measure, Way},
        profile::EnergyRow,
    },
    text::escape,
};

use super::messages;
use crate::query::Refusal;

/// A type of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileType {
    Energy,
    /// Energy by time: only over time, since stacks have none.
    Power,
    Cpu,
    Samples,
    Allocated,
    Moved(Way),
}

impl ProfileType {
    /// All there are, whether a data set has any of them or not.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Energy, Self::Power, Self::Cpu, Self::Samples, Self::Allocated]
            .into_iter()
            .chain(Way::APART.into_iter().map(Self::Moved))
    }

    /// The type of a request; `None` if it is well formed, but none of ours: then there is nothing of it.
    ///
    /// # Errors
    /// If it does not have five parts.
    pub fn parse(id: &str) -> Result<Option<Self>, Refusal> {
        if id.split(':').count() != 5 {
            let (found, all) = (escape(id), Self::all().map(Self::id).collect::<Vec<_>>().join(", "));
            return Err(Refusal::bad(format!("'{found}' is not a type of profiles: use one of {all}")));
        }
        Ok(Self::all().find(|one| one.id() == id))
    }

    /// Whether a data set with these measures of bytes has any of it.
    pub fn is_in(self, recorded: &BTreeSet<Measure>) -> bool {
        match self.measure() {
            Measure::Energy => true,
            measure => recorded.contains(&measure),
        }
    }

    pub const fn measure(self) -> Measure {
        match self {
            Self::Energy | Self::Power | Self::Cpu | Self::Samples => Measure::Energy,
            Self::Allocated => Measure::Allocated,
            Self::Moved(way) => Measure::Moved(way),
        }
    }

    /// What a row of energy has of it.
    pub const fn of_row(self, row: &EnergyRow) -> u64 {
        match self {
            Self::Energy | Self::Power => row.energy.0,
            Self::Cpu => row.cpu_ns,
            Self::Samples => row.samples,
            Self::Allocated | Self::Moved(_) => 0,
        }
    }

    pub const fn unit(self) -> &'static str {
        match self {
            Self::Energy => "microjoules",
            Self::Power => "watts",
            Self::Cpu => "nanoseconds",
            Self::Samples => "count",
            Self::Allocated | Self::Moved(_) => "bytes",
        }
    }

    fn name(self) -> String {
        match self {
            Self::Energy => "energy".to_owned(),
            Self::Power => "power".to_owned(),
            Self::Cpu => "cpu".to_owned(),
            Self::Samples => "samples".to_owned(),
            Self::Allocated => "alloc_space".to_owned(),
            Self::Moved(way) => way.name().replace('-', "_"),
        }
    }

    /// `NAME:SAMPLE_TYPE:SAMPLE_UNIT:PERIOD_TYPE:PERIOD_UNIT`.
    pub fn id(self) -> String {
        format!("{NAME}:{}:{}:{PERIOD_TYPE}:{PERIOD_UNIT}", self.name(), self.unit())
    }

    pub fn described(self) -> messages::ProfileType {
        messages::ProfileType {
            id: self.id(),
            name: NAME.to_owned(),
            sample_type: self.name(),
            sample_unit: self.unit().to_owned(),
            period_type: PERIOD_TYPE.to_owned(),
            period_unit: PERIOD_UNIT.to_owned(),
        }
    }
}

const NAME: &str = "joular";
const PERIOD_TYPE: &str = "cpu";
const PERIOD_UNIT: &str = "nanoseconds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_ids() {
        let ids: Vec<String> = ProfileType::all().map(ProfileType::id).collect();
        for id in [
            "joular:energy:microjoules:cpu:nanoseconds",
            "joular:power:watts:cpu:nanoseconds",
            "joular:cpu:nanoseconds:cpu:nanoseconds",
            "joular:samples:count:cpu:nanoseconds",
            "joular:alloc_space:bytes:cpu:nanoseconds",
            "joular:device_read:bytes:cpu:nanoseconds",
        ] {
            assert!(ids.iter().any(|known| known == id), "{id}: {ids:?}");
        }
        for one in ProfileType::all() {
            assert_eq!(ProfileType::parse(&one.id()), Ok(Some(one)));
        }
        assert_eq!(ProfileType::parse("process_cpu:cpu:nanoseconds:cpu:nanoseconds"), Ok(None));
        for id in ["", "energy", "joular:energy:microjoules:cpu", "joular:energy:microjoules:cpu:nanoseconds:"] {
            assert!(ProfileType::parse(id).unwrap_err().message.contains("is not a type of profiles"), "{id}");
        }
    }
}
