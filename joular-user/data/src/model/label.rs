//! Defines how far a figure of energy can be trusted.

use serde::{Deserialize, Serialize};

/// How a figure came about. Every output carries it. Ordered from the strongest to the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// A hardware counter of measured energy.
    Measured,
    /// A power figure someone else measured, integrated over time.
    Reported,
    /// Computed from utilisation: an estimate.
    Modelled,
    /// Played back from another run's recording: not this machine's energy now.
    Replayed,
    /// A hardware counter that the processor itself fills from a model of its activity. Recordings
    /// have labels by their place, so it and what came later stand last.
    ModelledByProcessor,
    /// A hardware counter of measured energy that advances seldom compared with the windows, or that the
    /// processor filters: sums of long runs are as good as [`Self::Measured`], single windows are not.
    MeasuredCoarsely,
}

impl Label {
    pub const ALL: [Self; 6] = [
        Self::Measured,
        Self::MeasuredCoarsely,
        Self::Reported,
        Self::ModelledByProcessor,
        Self::Modelled,
        Self::Replayed,
    ];

    /// Place in [`Self::ALL`].
    const fn weakness(self) -> u8 {
        match self {
            Self::Measured => 0,
            Self::MeasuredCoarsely => 1,
            Self::Reported => 2,
            Self::ModelledByProcessor => 3,
            Self::Modelled => 4,
            Self::Replayed => 5,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Reported => "reported",
            Self::Modelled => "modelled",
            Self::Replayed => "replayed",
            Self::ModelledByProcessor => "modelled_by_processor",
            Self::MeasuredCoarsely => "measured_coarsely",
        }
    }

    /// Whether figures are good for a few digits only, because a model computes them.
    pub const fn is_estimate(self) -> bool {
        matches!(self, Self::Modelled | Self::ModelledByProcessor)
    }

    /// Whether a hardware counter of this machine measured the energy.
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::Measured | Self::MeasuredCoarsely)
    }

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ModelledByProcessor => "modelled by the processor",
            Self::MeasuredCoarsely => "measured coarsely",
            _ => self.name(),
        }
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.weakness().cmp(&other.weakness())
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_ordered_by_how_much_they_promise_and_named_alike_everywhere() {
        assert!(Label::ALL.is_sorted());
        for label in Label::ALL {
            assert_eq!(serde_json::to_string(&label).unwrap(), format!("\"{}\"", label.name()));
        }
        // Recordings have the place in the declaration, which never changes.
        let first = [Label::Measured, Label::Reported, Label::Modelled, Label::Replayed];
        let places = first.into_iter().chain([Label::ModelledByProcessor, Label::MeasuredCoarsely]);
        for (place, label) in (0_u8..).zip(places) {
            assert_eq!(postcard::to_stdvec(&label).unwrap(), [place]);
        }
    }
}
