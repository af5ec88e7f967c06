//! Knows the font that PDF files contain: which characters it has, and how wide they are.
//!
//! It is a part of Arimo, whose widths are those of Helvetica and Arial: Latin, Greek and Cyrillic letters, and signs of
//! mathematics. `font/README.md` says how it was made, `font/OFL.txt` has its licence.

use std::collections::BTreeSet;

use ttf_parser::{Face, FaceParsingError, GlyphId};

use super::{drawing::FONT_SIZE, spelled};
use crate::text::{Keep, cut};

/// The font's file.
pub(super) const FILE: &[u8] = include_bytes!("font/Arimo-Subset.ttf");

/// A column of a terminal, as a part of the letters' height. Most names are narrower than their columns, but there are
/// names of capital letters, which are cut.
const COLUMN: f64 = 0.6;

/// The font, read.
pub(super) struct Font {
    face: Face<'static>,
}

/// Height and depth of letters, in thousandths of their size, as PDF has them.
pub(super) struct Metrics {
    pub(super) ascent: f32,
    pub(super) descent: f32,
    pub(super) capitals: f32,
    /// Left, lowest, right and highest place of any letter.
    pub(super) around: [f32; 4],
}

impl Font {
    pub(super) fn read() -> Result<Self, FaceParsingError> {
        Face::parse(FILE, 0).map(|face| Self { face })
    }

    pub(super) fn metrics(&self) -> Metrics {
        let bounds = self.face.global_bounding_box();
        let thousandths = |units: i16| 1000.0 * f32::from(units) / f32::from(self.face.units_per_em());
        Metrics {
            ascent: thousandths(self.face.ascender()),
            descent: thousandths(self.face.descender()),
            capitals: thousandths(self.face.capital_height().unwrap_or_else(|| self.face.ascender())),
            around: [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(thousandths),
        }
    }

    /// `None` if the font lacks the character.
    pub(super) fn glyph(&self, c: char) -> Option<GlyphId> {
        self.face.glyph_index(c).filter(|glyph| glyph.0 != 0)
    }

    /// Width of a letter, in thousandths of its size.
    pub(super) fn width(&self, glyph: GlyphId) -> f32 {
        let units = self.face.glyph_hor_advance(glyph).unwrap_or_default();
        1000.0 * f32::from(units) / f32::from(self.face.units_per_em())
    }

    /// Width of a text in the size of drawings, CSS pixels.
    pub(super) fn width_of(&self, text: &str) -> f64 {
        let glyphs = text.chars().filter_map(|c| self.glyph(c));
        glyphs.map(|glyph| f64::from(self.width(glyph))).sum::<f64>() / 1000.0 * FONT_SIZE
    }

    /// The text with what the font lacks spelled out, within its room. `lacking` gets what was spelled out.
    pub(super) fn fitted(&self, text: &str, room: Option<(usize, Keep)>, lacking: &mut BTreeSet<char>) -> String {
        let mut whole = String::with_capacity(text.len());
        for c in text.chars() {
            if self.glyph(c).is_some() {
                whole.push(c);
            } else {
                whole.push_str(&spelled(c));
                lacking.insert(c);
            }
        }
        let Some((columns, keep)) = room else { return whole };
        #[allow(clippy::cast_precision_loss, reason = "columns of a name")]
        let most = columns as f64 * COLUMN * FONT_SIZE;
        let mut tries = (1..=columns).rev().map(|columns| cut(&whole, columns, keep));
        tries.find(|tried| self.width_of(tried) <= most).unwrap_or_default()
    }
}
