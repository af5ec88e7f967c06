//! Models the power of a whole single-board computer from CPU use. It is an estimate, and labelled
//! as one in every output.
//!
//! Boards such as the Raspberry Pi have no meter. Regression models of their power are published:
//! watts of the whole board by the use of all its CPUs, 0 to 1 (their method: hal-03912723). [`file`]
//! reads them, those of the Joular Project as well as a user's own, and [`recognise`] finds the one for
//! this machine.
//!
//! A model has a line and, often, a polynomial. The polynomial is used where it never falls as use
//! grows. Most of those that are published do, which no board does: for these the line is used. The
//! power at no use is the static share, and what is above it is divided by CPU time.
//!
//! docs/boards.md has the boards, their curves, and how to add one.

pub mod file;
pub mod recognise;

use std::path::Path;

use joular_data::model::domain::{Domain, Meter, Reading};

use self::{
    file::{BoardModel, Curve, ModelsError},
    recognise::BoardName,
};
use super::{Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind};
use crate::privileges::lent::as_the_user;

/// Name of this source in `--energy` and in data sets.
const NAME: &str = "board";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate of a whole board's power from CPU use and a published model of the board",
    permission: "none",
    adds: Adds::Never,
    open,
};

/// Bits of the system that this program runs on, as far as it can tell: its own.
const SYSTEM_BITS: u32 = usize::BITS;

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let broken = |error: ModelsError| Unusable::new(UnusableKind::Broken, error.to_string());
    let own = match &options.board_models {
        Some(path) => own_models(path).map_err(broken)?,
        None => Vec::new(),
    };
    let published = file::published().map_err(broken)?;
    let name = recognise::board_name(&options.proc_root).map_err(|cause| {
        let path = recognise::path(&options.proc_root);
        let text = format!("reading {}: {cause}: this machine does not say which board it is", path.display());
        Unusable::new(UnusableKind::Absent, text)
    })?;
    let find = |models: &[BoardModel]| recognise::find(models, &name, SYSTEM_BITS).cloned();
    let Some(model) = find(&own).or_else(|| find(&published)) else {
        let text =
            format!("looking for a model of the board \"{name}\": there is none: docs/boards.md says how to add one");
        return Err(Unusable::new(UnusableKind::Absent, text));
    };
    let curve = model.curve().map_err(|why| Unusable::new(UnusableKind::Broken, why.to_string()))?;
    let basis = basis(&name, &model, &curve);
    Ok(Opened::new(Board::new(&curve), basis, "computed per window"))
}

/// The file is the user's, who may not have the rights of this program.
fn own_models(path: &Path) -> Result<Vec<BoardModel>, ModelsError> {
    as_the_user(|| file::read(path)).unwrap_or_else(|cause| Err(ModelsError::unread(path, cause)))
}

/// What the estimate is based on, for people; data sets have it in `energy_reason`.
fn basis(name: &BoardName, model: &BoardModel, curve: &Curve) -> String {
    let [idle_mw, full_mw] = [0, 1].map(|busy| (curve.power.power_uw(busy, 1) + 500) / 1000);
    let form = match curve.replaced {
        None if model.polynomial.is_empty() => "a line".to_owned(),
        None => format!("a polynomial of degree {}", model.polynomial.len().saturating_sub(1)),
        Some(fall_uw) => format!(
            "the published line, because the published polynomial falls by {}.{:03} mW where use grows",
            fall_uw / 1000,
            fall_uw % 1000
        ),
    };
    let revision = model.revision.as_ref().filter(|measured| name.revision.as_ref() != Some(*measured));
    let bits = model.bits.filter(|bits| *bits != SYSTEM_BITS);
    let others =
        [revision.map(|revision| format!("revision {revision}")), bits.map(|bits| format!("a {bits}-bit system"))];
    let others: Vec<String> = others.into_iter().flatten().collect();
    let other = if others.is_empty() { String::new() } else { format!(", measured on {}", others.join(" and ")) };
    let fit = model.fit.as_ref().map(|fit| format!(", fitted to {} windows of a meter", fit.windows));
    format!(
        "estimated for the whole board \"{name}\" from CPU use, {idle_mw} to {full_mw} mW by model {} ({form}{other}{})",
        model.code,
        fit.unwrap_or_default()
    )
}

/// The model of this board: one domain.
#[derive(Debug)]
struct Board {
    domains: [Domain; 1],
}

impl Board {
    fn new(curve: &Curve) -> Self {
        Self { domains: [Domain::modelled("platform", None, NAME, Meter::Use(curve.power))] }
    }
}

impl EnergySource for Board {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![Reading::Modelled]
    }
}

#[cfg(test)]
mod tests;
