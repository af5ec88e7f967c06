//! Compares a sweep with an earlier one, for gates.
//!
//! The total is judged by itself. Methods are judged together: of a hundred that did not change, some seem to. So a method's
//! change stands if on average at most 5 % of those that stand are none (Benjamini and Hochberg's false discovery rate).
//! Any other is a hint.

use super::{Curve, Sweep};
use crate::{
    experiment::growth::{ClassChange, ClassVerdict, Doubt, compare},
    report::diff::verdict::{LEVEL, discovery_rates},
};

/// How the growth of the total or a method compares with that before.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged<'a> {
    pub curve: &'a Curve,
    pub change: ClassChange,
    /// Whether the class changed although so many were compared.
    pub stands: bool,
}

impl Judged<'_> {
    /// Whether a gate refuses it: it grows faster, for certain, and needs clearly more.
    pub fn fails(&self) -> bool {
        self.stands && self.change.is_worse()
    }

    /// Whether it is worth a look: the class changed, or no class fits any more and it needs clearly more.
    pub fn is_striking(&self) -> bool {
        let is_lost = self.change.doubt == Some(Doubt::NoClass) && self.change.needs_more();
        self.change.verdict == ClassVerdict::Changed || is_lost
    }
}

impl Sweep {
    /// The total, then all methods that both sweeps have enough samples of.
    pub fn against(&self, before: &Self) -> Vec<Judged<'_>> {
        let mut judged: Vec<Judged<'_>> = change(&before.total, &self.total).into_iter().collect();
        let methods: Vec<(&Curve, ClassChange)> =
            self.methods.iter().filter_map(|curve| Some((curve, change(before.same(curve)?, curve)?.change))).collect();
        let stand = stand(&methods.iter().map(|(_, change)| change).collect::<Vec<_>>());
        judged.extend(methods.into_iter().zip(stand).map(|((curve, change), stands)| Judged { curve, change, stands }));
        judged
    }

    fn same(&self, curve: &Curve) -> Option<&Curve> {
        let key = |curve: &Curve| (curve.name.clone(), curve.signature.clone(), curve.module.clone());
        self.methods.iter().find(|old| key(old) == key(curve))
    }
}

/// A curve judged by itself; `None` if one of both was not fitted.
fn change<'a>(before: &Curve, after: &'a Curve) -> Option<Judged<'a>> {
    let change = compare(before.growth.as_ref()?, after.growth.as_ref()?);
    Some(Judged { curve: after, stands: change.verdict == ClassVerdict::Changed, change })
}

/// Which classes changed, of those that are judged together. A growth that cannot be compared is not tested.
pub(super) fn stand(changes: &[&ClassChange]) -> Vec<bool> {
    let is_tested = |change: &ClassChange| change.doubt.is_none_or(Doubt::is_of_shape);
    let chances: Vec<Option<f64>> = changes.iter().map(|change| is_tested(change).then_some(change.chance)).collect();
    let rates = discovery_rates(&chances).into_iter();
    let each = changes.iter().zip(rates);
    each.map(|(change, rate)| change.verdict == ClassVerdict::Changed && rate.is_some_and(|rate| rate <= LEVEL))
        .collect()
}
