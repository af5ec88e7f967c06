//! Resolves what weights are counted in.

use thiserror::Error;

/// The choice of `--weights`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightChoice {
    /// Cycles where the hardware counts them, else time.
    #[default]
    Auto,
    Time,
    Cycles,
    /// Treats nanoseconds as cycles: for tests on machines without hardware counters. Not in the
    /// help.
    Clock,
}

/// A text that is not a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such weights: use auto, time or cycles")]
pub struct UnknownWeights;

impl std::str::FromStr for WeightChoice {
    type Err = UnknownWeights;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "time" => Ok(Self::Time),
            "cycles" => Ok(Self::Cycles),
            "clock" => Ok(Self::Clock),
            _ => Err(UnknownWeights),
        }
    }
}
