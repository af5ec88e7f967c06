//! What can be measured: domains, and the readings of them.

use serde::{Deserialize, Serialize};

/// How a figure came about. Every output carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// A hardware counter.
    Measured,
    /// A power figure someone else measured, integrated over time.
    Reported,
    /// Computed from utilisation: an estimate.
    Modelled,
}

impl Label {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Reported => "reported",
            Self::Modelled => "modelled",
        }
    }
}

/// How readings of a domain become energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meter {
    /// A running total in µJ that restarts at 0 after `range_uj`: the modulus
    /// is `range_uj` plus one `unit_uj`; a `range_uj` of 0 means that it is not
    /// known. `max_watts` bounds what is plausible.
    Counter { range_uj: u64, unit_uj: u64, max_watts: u32 },
    /// Power in µW, averaged between two readings.
    Power,
    /// Power computed from CPU use: `idle_uw` per CPU always, up to `full_uw`
    /// in proportion to busy time.
    Model { idle_uw: u64, full_uw: u64 },
}

/// A part of the machine whose energy is known. Domains of a run are disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// `package`, `dram`, `platform`, `cpu`, …
    pub name: String,
    /// Physical package it belongs to; `None` for the whole machine.
    pub socket: Option<u32>,
    /// Source it is read from.
    pub source: String,
    pub label: Label,
    pub meter: Meter,
}

/// One domain's meter at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading {
    CounterUj(u64),
    PowerUw(u64),
    /// A model needs no reading.
    Modelled,
    /// The read failed; the text says why.
    Failed(String),
}
