//! Draws figures of experiments for papers: one drawing, written as SVG or as PDF.
//!
//! Who has something to show makes a [`Drawing`] of lines, areas, dots and texts ([`axis`] places figures on it). SVG
//! leaves letters to the fonts of who looks at it, so it shows every name as it is. PDF brings its own font along, because
//! publishers refuse a file without: a name's characters that this font lacks are spelled out, as `\u{65e5}`, and
//! [`Plot::remark`] says so.
//!
//! Equal drawings are equal bytes: nothing tells when a file was made.

pub(in crate::experiment) mod axis;
mod drawing;
mod font;
mod pdf;
pub(in crate::experiment) mod svg;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use thiserror::Error;

pub use self::drawing::Drawing;
pub(in crate::experiment) use self::drawing::{Anchor, Ink, Panel, Place, Shape, Text};
use crate::{report::artifact::STDOUT, text::escape};

/// Characters that a remark names.
const NAMED: usize = 5;

/// Why there is no plot.
#[derive(Debug, Error)]
pub enum PlotError {
    #[error("{0} ends in neither .svg nor .pdf: name a file such as plot.svg or plot.pdf")]
    Ending(String),
    #[error("reading the font of PDF: {0}: write SVG instead")]
    Font(#[from] ttf_parser::FaceParsingError),
}

/// What a plot is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    Svg,
    Pdf,
}

impl PlotFormat {
    /// By how the file's name ends; what goes to standard output is SVG.
    ///
    /// # Errors
    /// If it ends in anything else.
    pub fn of(path: &Path) -> Result<Self, PlotError> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            _ if path == Path::new(STDOUT) => Ok(Self::Svg),
            _ => Err(PlotError::Ending(escape(&path.display().to_string()))),
        }
    }
}

/// A drawing as the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    pub bytes: Vec<u8>,
    /// Characters that the file's font lacks.
    pub spelled_out: BTreeSet<char>,
}

impl Plot {
    /// What its reader has to know, if anything.
    pub fn remark(&self) -> Option<String> {
        let named: Vec<String> =
            self.spelled_out.iter().take(NAMED).map(|c| format!("{c} as {}", spelled(*c))).collect();
        let more = self.spelled_out.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        (!named.is_empty()).then(|| {
            format!(
                "the font of PDF lacks characters, which are spelled out ({}{more}): SVG has them",
                named.join(", ")
            )
        })
    }
}

impl Drawing {
    /// Writes it as a file.
    ///
    /// # Errors
    /// If the program's own font is damaged.
    pub fn plot(&self, format: PlotFormat) -> Result<Plot, PlotError> {
        match format {
            PlotFormat::Svg => Ok(Plot { bytes: self.svg().into_bytes(), spelled_out: BTreeSet::new() }),
            PlotFormat::Pdf => Ok(pdf::written(self)?),
        }
    }
}

/// A character as [`escape`] writes those that cannot be shown.
fn spelled(c: char) -> String {
    format!("\\u{{{:x}}}", u32::from(c))
}
