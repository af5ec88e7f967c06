//! Decides what threads' weights are counted in: cycles, where that was asked for or every CPU has
//! a counter of them, else time.

use std::path::Path;

use joular_data::model::policy::WeightUnit;

use crate::{
    config::WeightChoice,
    kernel::{CycleEvent, cpus, cycles},
};

/// What the kernel side counts for a choice, on the CPUs of `cpu_root`.
pub fn counted(choice: WeightChoice, cpu_root: &Path) -> Option<CycleEvent> {
    match choice {
        WeightChoice::Auto => cycles::can_count(&cpus::online(cpu_root)).then_some(CycleEvent::Cycles),
        WeightChoice::Time => None,
        WeightChoice::Cycles => Some(CycleEvent::Cycles),
        WeightChoice::Clock => Some(CycleEvent::Clock),
    }
}

/// The unit of weights when that is counted.
pub const fn unit(counted: Option<CycleEvent>) -> WeightUnit {
    if counted.is_some() { WeightUnit::Cycles } else { WeightUnit::Time }
}
