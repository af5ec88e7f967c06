//! Says in plain words what a comparison with a wattmeter means, and what makes it doubtful.

use super::{Validation, fit::LEAST_INDEPENDENT, phases::Gains};
use crate::model::domain::Label;

/// Below this part of the meter's variation, the two do not go together.
const LEAST_PREDICTED: f64 = 0.5;

/// A gain known less well than to this part of itself is not known.
const WIDE: f64 = 0.2;

impl Validation {
    /// One or two sentences.
    pub(super) fn verdict(&self) -> String {
        let fit = &self.fit;
        let (offset, gain) = (fit.offset, fit.gain);
        let predicted = self.held_out.map_or(0.0, |held_out| held_out.predicted);
        if predicted < LEAST_PREDICTED {
            return format!(
                "The two do not go together: joular-bpf predicts only {:.0} % of the meter's variation. Most of what the meter \
                 sees is in none of these domains, or the clocks are apart by more than was searched.",
                100.0 * predicted.max(0.0)
            );
        }
        if self.gains.as_ref().is_some_and(Gains::are_unequal) {
            return format!(
                "The gain depends on the load: one gain ({:.3}) for all phases is wrong for each. Use a phase's own, for loads \
                 like it.",
                gain.value
            );
        }
        if gain.high - gain.low > 2.0 * WIDE * gain.value.abs() {
            return "The gain is not known well enough to judge: record longer, with load that rises and falls."
                .to_owned();
        }
        let left = format!("What is left differs by {:.2} W (standard deviation)", fit.residual);
        match (offset.contains(0.0), gain.contains(1.0)) {
            (true, true) => format!("joular-bpf and the meter agree as far as this run can tell. {left}."),
            (false, true) => format!(
                "A watt of joular-bpf is a watt of the meter, which shows {:.1} W {} throughout: hardware in none of these \
                 domains, if it is more. {left}.",
                offset.value.abs(),
                if offset.value > 0.0 { "more" } else { "less" }
            ),
            (_, false) => format!(
                "For each watt of joular-bpf the meter shows {:.3} W, and {:.1} W {} throughout: losses and hardware in none \
                 of these domains make a meter show more. Multiply and add to compare with this meter. {left}.",
                gain.value,
                offset.value.abs(),
                if offset.value >= 0.0 { "more" } else { "less" }
            ),
        }
    }

    /// What makes the figures doubtful.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if matches!(self.label, Some(Label::Modelled)) {
            warnings.push("the energy is modelled: this shows how well the model describes this machine".to_owned());
        }
        if self.label == Some(Label::Replayed) {
            warnings.push("the energy is of another run (replayed): it says nothing of this meter".to_owned());
        }
        if self.is_zone_assumed {
            warnings.push(
                "the log has times without a zone: they were taken as --utc-offset says, UTC without it".to_owned(),
            );
        }
        if !self.alignment.is_found {
            warnings.push(
                "no clock difference was found, as the two powers do not go together: none was assumed".to_owned(),
            );
        }
        if self.alignment.is_at_limit {
            warnings.push(format!(
                "the clock difference is at the limit of the search ({} s): give more with --max-shift",
                self.most_shift.as_secs_f64()
            ));
        }
        if self.fit.independent < LEAST_INDEPENDENT {
            warnings.push(format!(
                "neighbouring spans are so alike that they say as much as {:.0} independent ones: the intervals may be too \
                 narrow; record longer",
                self.fit.independent.max(1.0).floor()
            ));
        }
        warnings
    }
}
