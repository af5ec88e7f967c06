//! Resolves what takes samples.

use thiserror::Error;

/// The choice of `--sampler`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplerChoice {
    /// Timers where the machine allows them, else the event.
    #[default]
    Auto,
    /// Timers that the programs set, at random moments.
    Timer,
    /// The kernel's event cpu-clock, at a fixed rate.
    CpuClock,
}

/// A text that is not a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such sampler: use auto, timer or cpu-clock")]
pub struct UnknownSampler;

impl std::str::FromStr for SamplerChoice {
    type Err = UnknownSampler;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "timer" => Ok(Self::Timer),
            "cpu-clock" => Ok(Self::CpuClock),
            _ => Err(UnknownSampler),
        }
    }
}
