//! Says how narrow an experiment's intervals are, and whether that is what was asked for.
//!
//! An experiment may run until the 95 % interval of each variant's mean lies within so many percent of the mean. All
//! variants are looked at after each round, and the first look at which every interval is narrow enough is the last
//! one. Runs that happen to vary little end an experiment early, so that the interval which ended it holds the true
//! mean less often than in 95 % of experiments. `simulation.rs` counts how often. Nothing is corrected:
//! [`Precision::sentence`] says so.

use serde::Serialize;

use super::{Figure, Stats, Variant, ranked_figure};
use crate::{experiment::cells::text_name, model::target_text::TargetText};

/// How far the widest interval reaches to either side of its mean, and how far it was to reach at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// Of the mean.
    pub wanted_percent: f64,
    /// Of the mean; `None` if a variant has no interval, or needs nothing.
    pub percent: Option<f64>,
    /// The variant with the widest interval, or with none.
    pub widest: TargetText,
    pub is_reached: bool,
}

impl Precision {
    /// Of the figure that variants are ranked by.
    pub fn of(variants: &[Variant], wanted_percent: f64) -> Self {
        let figure = ranked_figure(variants);
        let percents = variants.iter().map(|variant| (variant, percent_of(variant, figure)));
        // Nothing is wider than what is not known.
        let width = |percent: Option<f64>| percent.unwrap_or(f64::INFINITY);
        let widest = percents.max_by(|a, b| width(a.1).total_cmp(&width(b.1)));
        let percent = widest.and_then(|(_, percent)| percent);
        Self {
            wanted_percent,
            percent,
            widest: widest.map(|(variant, _)| variant.name.as_str().into()).unwrap_or_default(),
            is_reached: percent.is_some_and(|percent| percent <= wanted_percent),
        }
    }

    /// For people, with names escaped.
    pub fn sentence(&self) -> String {
        let Self { wanted_percent, percent, widest, is_reached } = self;
        let name = text_name(widest);
        match percent {
            Some(percent) if *is_reached => format!(
                "interval: within ±{percent:.2} % of the mean for every variant, at most ±{wanted_percent} % were wanted: \
                 runs ended when it was narrow, so that it holds the true mean slightly less often than in 95 %"
            ),
            Some(percent) => format!(
                "warning: the interval of {name} is ±{percent:.2} % of its mean, at most ±{wanted_percent} % were wanted: \
                 allow more runs with --repeat, or let nothing else run on the machine"
            ),
            None => format!(
                "warning: the interval of {name} is not known in percent of its mean, at most ±{wanted_percent} % were \
                 wanted: check that its runs need energy"
            ),
        }
    }
}

/// How far the interval of a variant's mean reaches to either side, in percent of the mean.
fn percent_of(variant: &Variant, figure: Figure) -> Option<f64> {
    let stats = Stats::of(&figure.of_all(&variant.replicates)?);
    let (low, high) = stats.interval?;
    (stats.mean > 0.0).then(|| (high - low) / 2.0 / stats.mean * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{super::Replicate, *};

    fn variant(name: &str, joules: &[f64]) -> Variant {
        let run = |(order, joules): (u32, &f64)| Replicate { order, joules: *joules, ..Replicate::default() };
        Variant { name: name.into(), replicates: (0..).zip(joules).map(run).collect() }
    }

    #[test]
    fn the_widest_interval_decides() {
        // Student's 95 % quantile of 3 degrees of freedom is 3.182446, σ is 1, and √4 is 2: ± 1.591 of 100 and of 50.
        let spread = |mean: f64| [-1.0_f64, -1.0, 1.0, 1.0].map(|side| side.mul_add(0.75_f64.sqrt(), mean));
        let (calm, noisy) = (variant("calm", &spread(100.0)), variant("noisy", &spread(50.0)));
        let found = Precision::of(&[calm.clone(), noisy.clone()], 2.0);
        assert_eq!((found.widest.to_string().as_str(), found.is_reached), ("noisy", false));
        assert!((found.percent.unwrap() - 3.182_446).abs() < 1e-4, "{found:?}");
        assert!(found.sentence().starts_with("warning: the interval of noisy is ±3.18 %"), "{}", found.sentence());
        let found = Precision::of(std::slice::from_ref(&calm), 2.0);
        assert!(found.is_reached && found.sentence().contains("less often than in 95 %"), "{found:?}");
        assert!((found.percent.unwrap() - 1.591_223).abs() < 1e-4, "{found:?}");
        assert!(Precision::of(&[calm, noisy], 3.2).is_reached);
    }

    #[test]
    fn what_has_no_interval_never_has_a_narrow_one() {
        for variants in [
            vec![],
            vec![variant("a", &[])],
            vec![variant("a", &[1.0])],
            vec![variant("a", &[0.0, 0.0, 0.0])],
            vec![variant("b", &[1.0, 1.0]), variant("a", &[1.0])],
        ] {
            let found = Precision::of(&variants, 1e9);
            assert_eq!((found.percent, found.is_reached), (None, false), "{variants:?}");
            assert!(found.sentence().contains("not known"), "{}", found.sentence());
        }
        assert!(Precision::of(&[variant("a", &[2.0, 2.0])], 0.1).is_reached, "runs that do not vary");
    }

    #[test]
    fn energy_per_unit_decides_where_work_is_counted() {
        let mut counted = variant("a", &[10.0, 20.0, 30.0]);
        assert!(!Precision::of(std::slice::from_ref(&counted), 1.0).is_reached);
        for (run, work) in counted.replicates.iter_mut().zip([1.0, 2.0, 3.0]) {
            run.work = Some(work);
        }
        assert!(Precision::of(&[counted], 1.0).is_reached);
    }
}
