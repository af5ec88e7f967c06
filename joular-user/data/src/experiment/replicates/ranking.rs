//! Ranks variants by a figure of which less is better, and says which differences are more than chance.
//!
//! Each variant is compared with the best one: the ratio with Fieller's 95 % interval, the difference
//! by Welch's test, as in [`crate::report::diff::verdict`]. The best one is chosen by the same runs. It is the
//! luckiest of equals, so that a correction for the comparisons shown would err too often. So all
//! pairs of variants are tested, and their probabilities are corrected together (Holm, 1979): among equal
//! variants one is called worse in at most 5 % of experiments. `simulation.rs` counts how often.

use serde::Serialize;

use super::{Figure, Stats, VariantSummary};
use crate::{
    model::target_text::TargetText,
    report::diff::verdict::{Change, LEVEL, chance},
};

/// A ratio whose interval is so close to 1 is not a difference that matters: the margin of `diff`.
const MARGIN: f64 = 0.05;

/// Variants, the best one first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    pub figure: Figure,
    /// Variants that have the figure.
    pub rows: Vec<Ranked>,
}

/// How a variant compares with the best one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Index in [`super::Summary::variants`].
    pub variant: usize,
    pub name: TargetText,
    pub mean: f64,
    /// The mean as a multiple of the best one's; `None` if that is 0.
    pub ratio: Option<f64>,
    /// Its 95 % interval, not corrected for the number of variants; `None` for the best one, with fewer than 2 runs on a
    /// side, and where the best one may be 0.
    pub ratio_interval: Option<(f64, f64)>,
    /// Chance of such a difference without one, corrected for all pairs.
    pub p: Option<f64>,
    pub standing: Standing,
}

/// What a comparison with the best variant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Standing {
    #[serde(rename = "best")]
    Best,
    #[serde(rename = "more")]
    More,
    /// The interval of the ratio lies within ±5 %.
    #[serde(rename = "no change")]
    NoChange,
    /// The runs are too few, or too noisy, to say.
    #[serde(rename = "not certain")]
    NotCertain,
    /// One of both has fewer than 2 runs.
    #[serde(rename = "not enough runs")]
    NotEnoughRuns,
}

impl Standing {
    /// The words of `diff`, and `best`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::More => "more",
            Self::NoChange => "no change",
            Self::NotCertain => "not certain",
            Self::NotEnoughRuns => "not enough runs",
        }
    }
}

impl Ranking {
    /// Ranks the variants that have the figure.
    pub fn of(variants: &[VariantSummary], figure: Figure) -> Self {
        let mut sorted: Vec<(usize, Stats)> = variants
            .iter()
            .enumerate()
            .filter_map(|(at, variant)| variant.stats(figure).map(|stats| (at, *stats)))
            .collect();
        sorted.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        let chances = chances_against_first(&sorted.iter().map(|(_, stats)| *stats).collect::<Vec<_>>());
        let Some((_, best)) = sorted.first().copied() else { return Self { figure, rows: Vec::new() } };
        let name = |at: usize| variants.get(at).map(|variant| variant.name.clone()).unwrap_or_default();
        let rows = sorted.iter().zip(chances).enumerate().map(|(place, ((variant, stats), p))| Ranked {
            variant: *variant,
            name: name(*variant),
            ..if place == 0 { Ranked::best(stats) } else { Ranked::against(&best, stats, p) }
        });
        Self { figure, rows: rows.collect() }
    }
}

impl Ranked {
    fn best(stats: &Stats) -> Self {
        Self {
            variant: 0,
            name: TargetText::default(),
            mean: stats.mean,
            ratio: (stats.mean > 0.0).then_some(1.0),
            ratio_interval: None,
            p: None,
            standing: Standing::Best,
        }
    }

    fn against(best: &Stats, stats: &Stats, p: Option<f64>) -> Self {
        let change = Change::between(best.estimate(), stats.estimate());
        let is_small = change.relative.is_some_and(|(low, high)| -MARGIN < low && high < MARGIN);
        let standing = match p {
            None => Standing::NotEnoughRuns,
            Some(p) if p <= LEVEL => Standing::More,
            Some(_) if is_small => Standing::NoChange,
            Some(_) => Standing::NotCertain,
        };
        Self {
            ratio: change.ratio().map(|ratio| 1.0 + ratio),
            ratio_interval: change.relative.map(|(low, high)| (1.0 + low, 1.0 + high)),
            p,
            standing,
            ..Self::best(stats)
        }
    }
}

/// Chance of each one's difference to the first, corrected for all pairs; `None` if nothing is known.
fn chances_against_first(sorted: &[Stats]) -> Vec<Option<f64>> {
    let mut pairs = Vec::new();
    for (at, a) in sorted.iter().enumerate() {
        for (other, b) in sorted.iter().enumerate().skip(at + 1) {
            if a.n > 1 && b.n > 1 {
                pairs.push(((at, other), chance(a.estimate(), b.estimate(), 1.0)));
            }
        }
    }
    let corrected = holm(&pairs.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let mut chances = vec![None; sorted.len()];
    for (((first, other), _), p) in pairs.into_iter().zip(corrected) {
        if let Some(chance) = chances.get_mut(other).filter(|_| first == 0) {
            *chance = Some(p);
        }
    }
    chances
}

/// Probabilities corrected for their number, in their order: the smallest is multiplied by their number, the
/// next by one less, and none is smaller than one before it (Holm, 1979).
#[allow(clippy::cast_precision_loss, reason = "numbers of tests")]
pub(super) fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    let chance = |at: usize| chances.get(at).copied().unwrap_or(1.0);
    order.sort_by(|a, b| chance(*a).total_cmp(&chance(*b)));
    let mut corrected = vec![1.0; chances.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((chance(at) * (chances.len() - rank) as f64).min(1.0));
        if let Some(corrected) = corrected.get_mut(at) {
            *corrected = least;
        }
    }
    corrected
}
