//! Says how one method ran: how much of it is of each kind of code.
//!
//! A method is interpreted first and compiled later, or inlined here and called there. It is still
//! one node of a tree, and the mix says which part of the node was what.

use std::cmp::Reverse;

use crate::{
    model::frame::FrameKind,
    report::{measure::Measure, profile::Amounts},
};

/// The amounts of each kind of code that a method ran as: each kind once, in the order of kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Most nodes have one kind only: it is kept in the node, without memory of its own.
    first: Option<(FrameKind, Amounts)>,
    more: Vec<(FrameKind, Amounts)>,
}

impl Mix {
    pub fn add(&mut self, kind: FrameKind, amounts: &Amounts) {
        match &mut self.first {
            None => self.first = Some((kind, *amounts)),
            Some((known, sum)) if *known == kind => sum.plus(amounts),
            Some(first) if kind < first.0 => {
                let later = std::mem::replace(first, (kind, *amounts));
                self.more.insert(0, later);
            }
            Some(_) => match self.more.binary_search_by_key(&kind, |(known, _)| *known) {
                Ok(place) => self.more[place].1.plus(amounts),
                Err(place) => self.more.insert(place, (kind, *amounts)),
            },
        }
    }

    fn kinds(&self) -> impl DoubleEndedIterator<Item = &(FrameKind, Amounts)> {
        self.first.iter().chain(&self.more)
    }

    /// Kinds with what they have, the one with most first.
    pub fn by_size(&self) -> Vec<(FrameKind, Amounts)> {
        let mut sorted: Vec<_> = self.kinds().copied().collect();
        sorted.sort_by_key(|(_, amounts)| Reverse(size(amounts)));
        sorted
    }

    /// The kind that has most.
    pub fn main(&self) -> Option<FrameKind> {
        let kinds = self.kinds().rev();
        kinds.max_by_key(|(_, amounts)| size(amounts)).map(|(kind, _)| *kind)
    }

    /// `c2`, or `c2 83 %, interpreted 17 %`: parts by this measure, the largest first.
    pub fn text(&self, measure: Measure) -> String {
        let whole: u64 = self.kinds().map(|(_, amounts)| amounts.of(measure)).sum();
        let kinds = self.by_size();
        let parts = kinds.iter().map(|(kind, amounts)| (*kind, amounts.of(measure))).filter(|(_, part)| *part > 0);
        let parts: Vec<String> =
            parts.map(|(kind, part)| format!("{} {}", short(kind), percent(part, whole))).collect();
        match parts.len() {
            0 | 1 => self.main().map(|kind| short(kind).to_owned()).unwrap_or_default(),
            _ => parts.join(", "),
        }
    }
}

const fn size(amounts: &Amounts) -> (u64, u64, u64, u64) {
    (amounts.energy.0, amounts.cpu_ns, amounts.samples, amounts.beside)
}

/// The name for readers: `compiled-c2` is shown as c2.
pub fn short(kind: FrameKind) -> &'static str {
    let name = kind.name();
    name.strip_prefix("compiled-").unwrap_or(name)
}

/// A part that is not empty is never 0 %, and the part beside it never 100 %.
#[allow(clippy::cast_precision_loss, reason = "for people to read")]
fn percent(part: u64, whole: u64) -> String {
    match 100.0 * part as f64 / whole as f64 {
        share if share < 1.0 => "<1 %".to_owned(),
        share if share > 99.0 => ">99 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::MicroJoules;

    fn mix(parts: &[(FrameKind, u64)]) -> Mix {
        let mut mix = Mix::default();
        for (kind, energy) in parts {
            mix.add(*kind, &Amounts { energy: MicroJoules(*energy), ..Amounts::default() });
        }
        mix
    }

    #[test]
    fn a_mix_says_its_parts_the_largest_first() {
        use FrameKind::{CompiledC2, Inlined, Interpreted};
        for (parts, expected) in [
            (&[][..], ""),
            (&[(CompiledC2, 5)], "c2"),
            (&[(CompiledC2, 0)], "c2"),
            (&[(Interpreted, 17), (CompiledC2, 80), (CompiledC2, 3)], "c2 83 %, interpreted 17 %"),
            (&[(Interpreted, 1), (CompiledC2, 999)], "c2 >99 %, interpreted <1 %"),
            (&[(Interpreted, 0), (CompiledC2, 9)], "c2"),
            (&[(Interpreted, 1), (CompiledC2, 1), (Inlined, 2)], "inlined 50 %, interpreted 25 %, c2 25 %"),
        ] {
            assert_eq!(mix(parts).text(Measure::Energy), expected, "{parts:?}");
        }
        // Of equal ones the first in the order of kinds.
        assert_eq!(mix(&[(CompiledC2, 1), (Interpreted, 1)]).main(), Some(Interpreted));
    }
}
