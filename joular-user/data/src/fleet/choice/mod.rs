//! Chooses for a question about a place from which tier it is answered, if one can answer it exactly.
//!
//! A tier is taken if it lacks nothing that the question is about ([`mod@needs`]), the time is long enough for its windows
//! ([`mod@plan`]), and it was made of the runs that are there now ([`coverage`]). Hours that it lacks, and edges of the time, are
//! read from finer windows, in the end from the runs. So the answer is the one that all runs together give, to the
//! microjoule; where they have expired it has more. All else is read from the runs, and the reason is said.

mod coverage;
mod needs;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

pub use self::needs::View;
use self::{
    coverage::{Covered, Place},
    needs::{lacked_by, lacked_by_tiers},
    plan::{Asked, Stretch, coarsest, plan},
};
use super::tier::Tier;
use crate::{
    dataset::{
        error::{DataSetError, Result},
        store::{self, SHARE_MARK},
    },
    model::units::UnixMicros,
    report::profile::{Choice, Choose, Filter, Moment, Piece, ReadFrom, Sources},
};

/// What somebody wants to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// The tier that answers the question, or the runs.
    #[default]
    Auto,
    /// The runs.
    Raw,
    /// This tier alone, as if its folder were named.
    Tier(Tier),
}

impl Wish {
    pub const ALL: [Self; 4] = [Self::Auto, Self::Raw, Self::Tier(Tier::Minutes), Self::Tier(Tier::Hourly)];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Raw => ReadFrom::RAW,
            Self::Tier(tier) => tier.folder(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wish| wish.name() == name)
    }
}

/// Where a question is read that shows these views.
pub fn sources(wish: Wish, views: impl IntoIterator<Item = View>) -> Sources {
    Sources::by(Arc::new(Chooser { wish, views: views.into_iter().collect(), chosen: Mutex::default() }))
}

/// Chooses for one question.
#[derive(Debug)]
struct Chooser {
    wish: Wish,
    views: Vec<View>,
    /// By place. What was chosen once holds for all that the question reads.
    chosen: Mutex<BTreeMap<PathBuf, Option<Arc<Choice>>>>,
}

impl Choose for Chooser {
    fn choose(&self, root: &Path, filter: &Filter) -> Result<Option<Arc<Choice>>> {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = chosen.get(root) {
            return Ok(known.clone());
        }
        let choice = self.decided(root, filter)?.map(Arc::new);
        chosen.insert(root.to_owned(), choice.clone());
        Ok(choice)
    }
}

impl Chooser {
    fn decided(&self, root: &Path, filter: &Filter) -> Result<Option<Choice>> {
        // At a directory with the data set of one host this is all that is looked at.
        if !store::is_bucket(root)? && !root.join(SHARE_MARK).exists() {
            return match self.wish {
                Wish::Tier(tier) => Err(no_tier(root, tier, "hosts do not ship to it: leave --tier out")),
                Wish::Auto | Wish::Raw => Ok(None),
            };
        }
        match self.wish {
            Wish::Raw => Ok(Some(Choice::recorded(None, false))),
            Wish::Tier(tier) => of_tier(root, tier, filter).map(Some),
            Wish::Auto => self.automatic(root, filter),
        }
    }

    fn automatic(&self, root: &Path, filter: &Filter) -> Result<Option<Choice>> {
        let asked = asked(filter);
        let suitable = match self.suitable(filter, asked) {
            Ok(suitable) => suitable,
            Err(reason) => return Ok(Some(Choice::recorded(Some(reason), false))),
        };
        let Some(place) = Place::open(root)? else { return Ok(None) };
        let mut longest = suitable.into_iter().rfind(|tier| place.has(*tier));
        if longest.is_none() {
            return Ok(Some(Choice::recorded(Some("the tier that has it is not there".to_owned()), true)));
        }
        let erased = match place.erased() {
            Ok(erased) => erased,
            Err(error) => {
                return Ok(Some(Choice::recorded(Some(format!("what was erased is not known: {error}")), true)));
            }
        };
        while let Some(tier) = longest {
            let Covered { hours, has_tables } = place.covered(asked, tier, &erased)?;
            if has_tables {
                return Ok(Some(Choice::recorded(
                    Some("some of them are files of tables, which no tier has".to_owned()),
                    true,
                )));
            }
            // How long a time is that does not say both ends is known now.
            longest = coarsest(asked.length_us(&hours)).map(|longest| longest.min(tier));
            if longest == Some(tier) {
                return Ok(Some(planned(&plan(asked, tier, &hours), filter)));
            }
        }
        Ok(Some(Choice::recorded(Some(TOO_SHORT.to_owned()), false)))
    }

    /// The tiers that have all that is asked for, the longest windows last, as far as that is known without a look at the
    /// place; or why there are none.
    fn suitable(&self, filter: &Filter, asked: Asked) -> Result<Vec<Tier>, String> {
        let lacking = |what: &str| format!("tiers do not have {what}");
        if let Some(what) = lacked_by_tiers(filter) {
            return Err(lacking(what));
        }
        let is_long = |tier: &Tier| match (asked.since, asked.until) {
            (Some(since), Some(until)) => {
                coarsest(until.0.saturating_sub(since.0)).is_some_and(|longest| *tier <= longest)
            }
            _ => true,
        };
        let long: Vec<Tier> = Tier::ALL.into_iter().filter(is_long).collect();
        let Some(finest) = long.first() else { return Err(TOO_SHORT.to_owned()) };
        let lacked = |tier: &Tier| self.views.iter().find_map(|view| lacked_by(*tier, *view));
        if let Some(what) = lacked(finest) {
            return Err(lacking(what));
        }
        Ok(long.into_iter().filter(|tier| lacked(tier).is_none()).collect())
    }
}

const TOO_SHORT: &str = "the time is too short for sums";

/// The time of a filter. Times within runs are no time of a tier, and are refused before.
fn asked(filter: &Filter) -> Asked {
    let at = |moment: Option<Moment>| match moment {
        Some(Moment::At(at)) => Some(at),
        _ => None,
    };
    Asked { since: at(filter.since), until: at(filter.until) }
}

fn no_tier(root: &Path, tier: Tier, problem: &'static str) -> DataSetError {
    DataSetError::NoTier { path: root.to_owned(), tier: tier.folder(), problem }
}

/// A tier alone, whatever it lacks.
fn of_tier(root: &Path, tier: Tier, filter: &Filter) -> Result<Choice> {
    if filter.access.is_about_hosts() {
        // Its hosts are services, which rules about hosts do not mean.
        return Err(no_tier(
            root,
            tier,
            "what you may see is said by hosts, and tiers do not have hosts: leave tier out",
        ));
    }
    if !Place::open(root)?.is_some_and(|place| place.has(tier)) {
        return Err(no_tier(root, tier, "there are none that you may read: joular-bpf compact makes them"));
    }
    let read_from = of_sums(tier, false, filter);
    Ok(Choice { pieces: vec![Piece { folder: Some(tier.folder()), times: None }], read_from })
}

fn of_sums(tier: Tier, is_joined: bool, filter: &Filter) -> ReadFrom {
    ReadFrom {
        tier: tier.folder(),
        resolution: Some(tier.resolution()),
        is_joined,
        is_of_services: filter.part().services.is_some() || !filter.access.is_everything(),
        reason: None,
        is_unexpected: false,
    }
}

/// Stretches by where they are read, the longest windows first; or all runs, if no tier has any of them.
fn planned(stretches: &[Stretch], filter: &Filter) -> Choice {
    let mut times: BTreeMap<Option<Tier>, Vec<(UnixMicros, UnixMicros)>> = BTreeMap::new();
    for stretch in stretches {
        times.entry(stretch.tier).or_default().push((stretch.begin, stretch.end));
    }
    let Some(longest) = times.keys().next_back().copied().flatten() else {
        let reason = "no tier has any hour of this time, as it is now";
        return Choice::recorded(Some(reason.to_owned()), !stretches.is_empty());
    };
    let read_from = of_sums(longest, times.len() > 1, filter);
    let piece = |(tier, times): (Option<Tier>, Vec<_>)| Piece { folder: tier.map(Tier::folder), times: Some(times) };
    Choice { pieces: times.into_iter().rev().map(piece).collect(), read_from }
}
