//! Defines what a window ran under: how fast the processor ran, what the clocks did.

use serde::{Deserialize, Serialize};

/// What is known of a window beside its CPU time and energy. `None` is what cannot be read on the
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowContext {
    /// Mean frequency of CPUs while they were busy, kHz.
    pub mean_frequency_khz: Option<u64>,
    /// The frequency governor of all CPUs, or [`Self::MIXED`].
    pub governor: Option<String>,
    /// Time in which virtual CPUs wanted to run and the hypervisor ran something else, over all
    /// CPUs. It is counted in steps of 10 ms.
    pub steal_ns: Option<u64>,
    /// Of the hottest processor at the window's end, thousandths of a degree Celsius.
    pub temperature_millicelsius: Option<i64>,
    /// How long the machine was suspended between the readings that begin and end the window. The
    /// window's length does not contain it.
    pub suspended_ns: u64,
    /// How far the wall clock was set forward (or back, if negative) in the window; suspends do not
    /// count. 0 if it was not set.
    pub clock_step_us: i64,
    /// What the wall clock said at the window's start, minus [`super::Window::wall_start`]: 0, or
    /// negative once the clock was set back.
    pub clock_offset_us: i64,
}

impl WindowContext {
    /// Stands for several governors.
    pub const MIXED: &str = "mixed";
}
