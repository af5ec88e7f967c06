//! Computes emissions and cost of a selection: E · I + M.
//!
//! E is the selection's energy, times the PUE. I is what a kilowatt-hour emits: one figure, or a file of
//! them by time ([`factors`]). M is the part of the hardware's own emissions that falls to the selection by
//! time and by its share of CPU time. [`of_profile`] computes them for each entry of a
//! profile, so that they add up like its energy. [`statement`] says what the figures are made of: without
//! that nobody can compare them.
//!
//! That is what the selection's work adds. The Software Carbon Intensity (SCI) 1.1 of the Green Software Foundation,
//! (E · I + M) per R, where R is a count of work, has more in it: the idle power and the hardware of all that is
//! reserved for the selection ([`Reserved`]).
//!
//! It is a view when a report is made. Nothing of it is stored.

pub mod factors;
pub mod of_profile;
pub mod statement;

use thiserror::Error;

use self::factors::Factors;
pub use self::factors::MOST_G_PER_KWH;
pub use self::of_profile::{Account, Footprints, Reserved, read};
use crate::{
    dataset::error::{DataSetError, OfDataSet},
    text::{count, escape},
};

/// As SCI counts years: 8 760 hours.
pub const YEAR_NS: f64 = 365.0 * 24.0 * 3_600e9;

const MICROJOULES_PER_KWH: f64 = 3.6e12;

/// What a kilowatt-hour emits.
#[derive(Clone, Debug, PartialEq)]
pub enum Intensity {
    GramsPerKwh(f64),
    ByTime(Factors),
}

/// Whether factors are of all power plants, or of those that a little more load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Average,
    Marginal,
}

impl Method {
    pub const ALL: [Self; 2] = [Self::Average, Self::Marginal];

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Marginal => "marginal",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Carbon {
    pub intensity: Intensity,
    /// Who says so, where the factors do not name it themselves.
    pub source: Option<String>,
    /// `None`: nobody said.
    pub method: Option<Method>,
}

/// Emissions of making, moving and disposing of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embodied {
    pub host_g: f64,
    pub lifetime_years: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub per_kwh: f64,
    /// The currency's name; may be empty.
    pub currency: String,
}

/// What is to be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub carbon: Option<Carbon>,
    /// Energy of the building per energy of its machines, at least 1. Carbon and cost are of the product.
    pub pue: f64,
    pub embodied: Option<Embodied>,
    /// CPUs of each host that the selection has for itself, used or not.
    pub reserved_cpus: Option<f64>,
    pub price: Option<Price>,
    /// Units of work that the selection did: of all runs, or one count for each; none: not counted.
    pub work: Vec<f64>,
}

impl Default for Choices {
    fn default() -> Self {
        Self { carbon: None, pue: 1.0, embodied: None, reserved_cpus: None, price: None, work: Vec::new() }
    }
}

/// Emissions and cost of an entry of a profile, or of a sum of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Of the energy.
    pub operational_g: f64,
    /// Of the hardware.
    pub embodied_g: f64,
    pub cost: f64,
}

impl Footprint {
    pub fn plus(&mut self, other: &Self) {
        self.operational_g += other.operational_g;
        self.embodied_g += other.embodied_g;
        self.cost += other.cost;
    }

    /// All emissions.
    pub fn grams(&self) -> f64 {
        self.operational_g + self.embodied_g
    }
}

/// Why emissions and cost cannot be computed.
#[derive(Debug, Error)]
pub enum FootprintError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(
        "computing emissions: the window at {window} is not within the emission factors, which are from {from} to \
         {until}: add factors of that time, or choose a part of the data set with --since and --until"
    )]
    Outside { window: String, from: String, until: String },
    #[error(
        "--work has {}, and the data set has {} of this selection: give one count for each run, or one for all",
        count(*counts, "count"),
        count(*runs, "run")
    )]
    Work { counts: usize, runs: usize },
    #[error("--reserved {reserved}: a host of the selection has {cpus} CPUs: give at most so many")]
    Reserved { reserved: f64, cpus: f64 },
}

impl OfDataSet for FootprintError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Data(error) => Some(error),
            _ => None,
        }
    }
}

impl Carbon {
    /// Of a figure that nobody is named for.
    pub const fn plain(g_per_kwh: f64) -> Self {
        Self { intensity: Intensity::GramsPerKwh(g_per_kwh), source: None, method: None }
    }
}

impl Price {
    /// `0.3 EUR`.
    pub fn amount(&self, amount: &str) -> String {
        if self.currency.is_empty() { amount.to_owned() } else { format!("{amount} {}", escape(&self.currency)) }
    }
}
