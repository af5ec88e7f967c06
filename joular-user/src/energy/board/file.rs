//! Reads and writes files of board models, in TOML.
//!
//! `models/boards.toml` is the Joular Project's database, which is built in. It is under a licence of
//! its own, which `models/NOTICE` names. A user's file has the same form.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use joular_data::{
    model::use_curve::{MOST_FACTORS, UseCurve},
    text::escape,
};
use serde::Deserialize;
use thiserror::Error;

use super::recognise::BEFORE_REVISION;
use crate::energy::sysfs::read_start;

/// The models that are built in.
const PUBLISHED: &str = include_str!("models/boards.toml");

/// Room for some thousand boards.
const MOST_BYTES: u64 = 1024 * 1024;

/// No board draws more, W.
const MOST_WATTS: f64 = 1000.0;
const MOST_UW: u64 = 1_000_000_000;

/// A name, a code or a revision has at most so many bytes.
const MOST_NAME_BYTES: usize = 128;

/// A polynomial that falls by no more than this does not fall: powers are rounded to 1 µW.
const ROUNDING_UW: u64 = 1;

/// The model of a board.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardModel {
    /// Its name among models.
    pub code: String,
    /// What boards name themselves, without a revision.
    pub names: Vec<String>,
    /// The revision that was measured.
    #[serde(default)]
    pub revision: Option<String>,
    /// The system that was measured, 32 or 64 bits.
    #[serde(default)]
    pub bits: Option<u32>,
    /// Whether revisions that were not measured use this one rather than another.
    #[serde(default)]
    pub preferred: bool,
    /// Watts at no use, and watts more at full use.
    pub linear: [f64; 2],
    /// Watts: factors of use to the power of 0, 1, 2, …; empty: there is only the line.
    #[serde(default)]
    pub polynomial: Vec<f64>,
    /// What the line was fitted to.
    #[serde(default)]
    pub fit: Option<FitNotes>,
}

/// What a model was fitted to, and how well.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FitNotes {
    pub windows: u64,
    /// Least and most use in them, 0 to 1.
    pub use_from: f64,
    pub use_to: f64,
    /// Standard deviation of what the fit leaves, W.
    pub residual_watts: f64,
    /// 95 % intervals of the two figures of the line, W.
    pub idle_interval: [f64; 2],
    pub more_interval: [f64; 2],
}

/// The curve that is used of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    pub power: UseCurve,
    /// How far the polynomial falls, µW, which the line replaces; `None`: it is not replaced.
    pub replaced: Option<u64>,
}

/// Why models cannot be used.
#[derive(Debug, Error)]
pub enum ModelsError {
    #[error("reading {}: {cause}: check --board-models", path.display())]
    Unread { path: PathBuf, cause: io::Error },
    #[error("reading {place}, line {line}: {message}: docs/boards.md describes the file")]
    Syntax { place: String, line: usize, message: String },
    #[error("reading {place}: board {code}: {why}")]
    Wrong { place: String, code: String, why: WrongModel },
}

impl ModelsError {
    pub fn unread(path: &Path, cause: io::Error) -> Self {
        Self::Unread { path: path.to_owned(), cause }
    }
}

/// What is wrong with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WrongModel {
    #[error("code, names and revision must be printable, and have 1 to {MOST_NAME_BYTES} bytes")]
    Name,
    #[error("names must not have a revision: it has a place of its own, revision")]
    Revision,
    #[error("bits must be 32 or 64")]
    Bits,
    #[error("linear must be two numbers, watts at no use and watts more at full use, from 0 to {MOST_WATTS} together")]
    Line,
    #[error("polynomial must be at most {MOST_FACTORS} numbers")]
    Polynomial,
    #[error("the polynomial leads to power of 0 W or less, or of more than {MOST_WATTS} W")]
    Power,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    board: Vec<BoardModel>,
}

/// The models that are built in.
///
/// # Errors
/// None: tests read them.
pub fn published() -> Result<Vec<BoardModel>, ModelsError> {
    parse(PUBLISHED, "the models that are built in")
}

/// The models of a user's file.
///
/// # Errors
/// If it cannot be read, or a model in it makes no sense.
pub fn read(path: &Path) -> Result<Vec<BoardModel>, ModelsError> {
    let text = read_start(path, MOST_BYTES).map_err(|cause| ModelsError::unread(path, cause))?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &str, place: &str) -> Result<Vec<BoardModel>, ModelsError> {
    let Models { board: models } = toml::from_str(text).map_err(|cause| {
        let start = cause.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        ModelsError::Syntax { place: place.to_owned(), line, message: escape(cause.message().trim()) }
    })?;
    for model in &models {
        model.check().map_err(|why| {
            let code = model.code.chars().take(MOST_NAME_BYTES).flat_map(char::escape_debug).collect();
            ModelsError::Wrong { place: place.to_owned(), code, why }
        })?;
    }
    Ok(models)
}

impl BoardModel {
    /// # Errors
    /// If something in it makes no sense.
    pub fn check(&self) -> Result<(), WrongModel> {
        let mut texts = self.names.iter().chain(&self.revision).chain([&self.code]);
        let is_name = |text: &String| {
            (1..=MOST_NAME_BYTES).contains(&text.len()) && text.trim() == text && !text.chars().any(char::is_control)
        };
        if self.names.is_empty() || !texts.all(is_name) {
            return Err(WrongModel::Name);
        }
        if self.names.iter().any(|name| name.contains(BEFORE_REVISION)) {
            return Err(WrongModel::Revision);
        }
        if !matches!(self.bits, None | Some(32 | 64)) {
            return Err(WrongModel::Bits);
        }
        self.curve().map(|_| ())
    }

    /// The polynomial if it never falls as use grows, and the line otherwise.
    ///
    /// # Errors
    /// If its figures are not those of a board.
    pub fn curve(&self) -> Result<Curve, WrongModel> {
        let line = UseCurve::of_watts(&self.linear).ok_or(WrongModel::Line)?;
        let [idle, more] = self.linear;
        if !(idle > 0.0 && more >= 0.0 && idle + more <= MOST_WATTS) {
            return Err(WrongModel::Line);
        }
        if self.polynomial.is_empty() {
            return Ok(Curve { power: line, replaced: None });
        }
        let polynomial = UseCurve::of_watts(&self.polynomial).ok_or(WrongModel::Polynomial)?;
        if !polynomial.is_positive() || polynomial.largest_uw() > MOST_UW {
            return Err(WrongModel::Power);
        }
        Ok(match polynomial.largest_fall_uw() {
            0..=ROUNDING_UW => Curve { power: polynomial, replaced: None },
            fall_uw => Curve { power: line, replaced: Some(fall_uw) },
        })
    }

    /// As [`read`] reads it, alone in a file.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let numbers = |of: &[f64]| of.iter().map(|number| format!("{number:?}")).collect::<Vec<_>>().join(", ");
        let mut text = format!("[[board]]\ncode = {}\n", quoted(&self.code));
        let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "names = [{}]", names.join(", "));
        if let Some(revision) = &self.revision {
            let _ = writeln!(text, "revision = {}", quoted(revision));
        }
        if let Some(bits) = self.bits {
            let _ = writeln!(text, "bits = {bits}");
        }
        if self.preferred {
            let _ = writeln!(text, "preferred = true");
        }
        let _ = writeln!(text, "linear = [{}]", numbers(&self.linear));
        if !self.polynomial.is_empty() {
            let _ = writeln!(text, "polynomial = [{}]", numbers(&self.polynomial));
        }
        if let Some(fit) = &self.fit {
            let _ = write!(
                text,
                "\n[board.fit]\nwindows = {}\nuse-from = {:?}\nuse-to = {:?}\nresidual-watts = {:?}\n\
                 idle-interval = [{}]\nmore-interval = [{}]\n",
                fit.windows,
                fit.use_from,
                fit.use_to,
                fit.residual_watts,
                numbers(&fit.idle_interval),
                numbers(&fit.more_interval)
            );
        }
        text
    }
}
