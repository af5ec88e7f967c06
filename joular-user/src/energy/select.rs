//! Chooses sources: those that the user names, or the best that work here.

use joular_data::model::domain::Role;
use thiserror::Error;

use super::{
    Adds, EnergyOptions, EnergySource, Opened, SOURCES, SourceKind, Unusable, UnusableKind,
    choice::EnergyChoice,
    combined::{CombinedSource, Overlap, Take},
};

/// Sources that read the same registers in different ways: `auto` checks the first against the
/// second.
const CROSS_CHECKS: &[(&str, &str)] = &[("perf", "powercap")];

/// What a run measures with.
pub struct Selected {
    pub source: Box<dyn EnergySource>,
    /// Which sources and why, in one sentence for people.
    pub reason: String,
    /// Each source that is part of it, and as what.
    pub uses: Vec<(&'static str, Use)>,
}

/// What a source is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Its figures are the run's.
    Chosen,
    /// It measures what the chosen source does not.
    Added,
    /// The chosen one is compared with it.
    CrossCheck,
}

/// Why there is no energy source.
#[derive(Debug, Error)]
pub enum EnergyError {
    #[error("energy source {name} cannot be used: {why}")]
    Chosen { name: &'static str, why: Unusable },
    #[error(
        "energy sources {earlier_source} and {name} cannot be used together: {domain} of {name} shares energy with \
         {earlier} of {earlier_source}, which would count twice: leave one of them out"
    )]
    Overlap { name: &'static str, domain: String, earlier: String, earlier_source: String },
    #[error("no energy source is usable: {0}")]
    None(String),
}

/// Opens the chosen sources. `auto` tries all in order; an explicit choice that
/// does not work is an error, never replaced by another source.
///
/// # Errors
/// Why a chosen source, or every source, cannot be used.
pub fn select(options: &EnergyOptions) -> Result<Selected, EnergyError> {
    select_from(SOURCES, options)
}

/// [`select`] among other kinds than [`SOURCES`].
pub fn select_from(kinds: &[SourceKind], options: &EnergyOptions) -> Result<Selected, EnergyError> {
    let mut selection = match &options.choice {
        EnergyChoice::Auto => automatic(kinds, options)?,
        EnergyChoice::These(names) => named(kinds, names, options)?,
    };
    selection.add_asked(kinds, options)?;
    Ok(selection.selected())
}

/// What is selected so far.
struct Selection {
    combined: CombinedSource,
    reasons: Vec<String>,
    uses: Vec<(&'static str, Use)>,
}

impl Selection {
    fn new(kind: &SourceKind, opened: Opened, why: &str) -> Self {
        Self {
            reasons: vec![format!("{}: {} ({why})", kind.name, opened.basis)],
            combined: CombinedSource::of(opened.source),
            uses: vec![(kind.name, Use::Chosen)],
        }
    }

    fn add(&mut self, kind: &SourceKind, opened: Opened, take: Take) -> Result<(), Overlap> {
        if self.combined.add(opened.source, take)? == 0 {
            return Ok(());
        }
        let (name, basis) = (kind.name, opened.basis);
        let (reason, as_what) = match take {
            Take::All => (format!("{name}: {basis} (chosen)"), Use::Chosen),
            Take::New => (format!("with {name}: {basis}"), Use::Added),
            Take::Checks => (format!("checked against {name}"), Use::CrossCheck),
        };
        self.reasons.push(reason);
        self.uses.push((name, as_what));
        Ok(())
    }

    /// Adds sources whose own flag is given.
    fn add_asked(&mut self, kinds: &[SourceKind], options: &EnergyOptions) -> Result<(), EnergyError> {
        for kind in kinds.iter().filter(|kind| kind.adds == Adds::IfAsked) {
            if self.uses.iter().any(|(name, _)| *name == kind.name) {
                continue;
            }
            match kind.open(options) {
                // Only taking all can overlap.
                Ok(opened) => self.add(kind, opened, Take::New).unwrap_or_default(),
                Err(why) if why.kind == UnusableKind::NotAsked => {}
                Err(why) => return Err(EnergyError::Chosen { name: kind.name, why }),
            }
        }
        Ok(())
    }

    fn reads_file(&self) -> bool {
        EnergyChoice::These(self.uses.iter().map(|(name, _)| *name).collect()).reads_file()
    }

    fn selected(self) -> Selected {
        Selected { source: self.combined.into_source(), reason: self.reasons.join("; "), uses: self.uses }
    }
}

fn named(kinds: &[SourceKind], names: &[&'static str], options: &EnergyOptions) -> Result<Selection, EnergyError> {
    let mut selection: Option<Selection> = None;
    for kind in names.iter().filter_map(|name| kinds.iter().find(|kind| kind.name == *name)) {
        let name = kind.name;
        let opened = kind.open(options).map_err(|why| EnergyError::Chosen { name, why })?;
        match &mut selection {
            None => selection = Some(Selection::new(kind, opened, "chosen")),
            Some(selection) => selection.add(kind, opened, Take::All).map_err(|overlap| {
                let Overlap { domain, earlier, earlier_source } = overlap;
                EnergyError::Overlap { name, domain, earlier, earlier_source }
            })?,
        }
    }
    selection.ok_or_else(|| EnergyError::None("none was named".to_owned()))
}

/// The first source that measures what threads draw, then what adds to it,
/// then what it can be checked against.
fn automatic(kinds: &[SourceKind], options: &EnergyOptions) -> Result<Selection, EnergyError> {
    let mut refused = Refused::default();
    let mut tried = kinds.iter().filter(|kind| kind.adds != Adds::IfAsked);
    let first = tried.find_map(|kind| match kind.open(options) {
        Ok(opened) if has_shared(&*opened.source) => Some((kind, opened)),
        // It may still be an addition.
        Ok(_) => None,
        Err(why) => {
            refused.note(kind.name, &why);
            None
        }
    });
    let Some((chosen, opened)) = first else { return Err(EnergyError::None(refused.every_reason())) };
    let mut selection = Selection::new(chosen, opened, &refused.in_short());
    let is_check = |kind: &SourceKind| CROSS_CHECKS.contains(&(chosen.name, kind.name));
    let others = || kinds.iter().filter(|kind| kind.name != chosen.name);
    let additions = others().filter(|kind| kind.adds == Adds::ToAuto).map(|kind| (kind, Take::New));
    for (kind, take) in additions.chain(others().filter(|kind| is_check(kind)).map(|kind| (kind, Take::Checks))) {
        match kind.open(options) {
            // Only taking all can overlap.
            Ok(opened) => selection.add(kind, opened, take).unwrap_or_default(),
            Err(why) if take == Take::New && matches!(why.kind, UnusableKind::Denied | UnusableKind::Broken) => {
                selection.reasons.push(format!("{} not added: {why}", kind.name));
            }
            Err(_) => {}
        }
    }
    if let Some(path) = options.file.as_ref().filter(|_| !selection.reads_file()) {
        selection.reasons.push(format!("{} is not used", path.display()));
    }
    Ok(selection)
}

/// Sources that `auto` passed over. Those that a machine does not have get no reason here:
/// `joular-bpf sources` has it, and most machines lack most of them.
#[derive(Default)]
struct Refused {
    absent: Vec<(&'static str, String)>,
    /// Present but not usable: something that the user may want to change.
    unusable: Vec<String>,
}

impl Refused {
    fn note(&mut self, name: &'static str, why: &Unusable) {
        match why.kind {
            // Not worth a word: nobody asked for a file.
            UnusableKind::NotAsked => {}
            UnusableKind::Absent => self.absent.push((name, why.to_string())),
            UnusableKind::Denied | UnusableKind::Broken => self.unusable.push(format!("{name} not usable: {why}")),
        }
    }

    fn in_short(&self) -> String {
        let names: Vec<&str> = self.absent.iter().map(|(name, _)| *name).collect();
        let absent = (!names.is_empty()).then(|| format!("this machine has no {}", names.join(", ")));
        let parts: Vec<String> = self.unusable.iter().cloned().chain(absent).collect();
        if parts.is_empty() { "first choice".to_owned() } else { parts.join("; ") }
    }

    fn every_reason(&self) -> String {
        let absent = self.absent.iter().map(|(name, why)| format!("{name} not usable: {why}"));
        self.unusable.iter().cloned().chain(absent).collect::<Vec<_>>().join("; ")
    }
}

fn has_shared(source: &dyn EnergySource) -> bool {
    source.domains().iter().any(|domain| domain.role == Role::Shared)
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
