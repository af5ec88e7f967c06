//! What threads' weights are counted in: cycles, where it was asked for or the
//! hardware has them, else time.

use crate::{
    config::WeightChoice,
    energy::policy::WeightUnit,
    kernel::{CycleEvent, features},
};

/// What the kernel side is to count for a choice.
pub fn counted(choice: WeightChoice) -> Option<CycleEvent> {
    match choice {
        WeightChoice::Auto => features::has_cycles().then_some(CycleEvent::Cycles),
        WeightChoice::Time => None,
        WeightChoice::Cycles => Some(CycleEvent::Cycles),
        WeightChoice::Clock => Some(CycleEvent::Clock),
    }
}

/// The unit of weights when that is counted.
pub const fn unit(counted: Option<CycleEvent>) -> WeightUnit {
    if counted.is_some() { WeightUnit::Cycles } else { WeightUnit::Time }
}
