//! Draws the call tree of a selection with energy, bytes or counts as width, for `joular-bpf flamegraph`: as an SVG
//! ([`svg`]), or as a page that can be searched and turned over ([`page`]).

mod finish;
mod lines;
pub(super) mod page;
mod svg;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::{
    headline::{self, Headline},
    measure::{self, Measure},
    profile::{App, Filter, Profile},
    tree::Shape,
};
use crate::dataset::error::Result;

/// What a picture is made as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Picture {
    #[default]
    Svg,
    /// One page without anything from elsewhere.
    Html,
}

impl Picture {
    /// As the ending of the file's name says.
    pub fn of_file(path: &Path) -> Self {
        let is_page = |ending: &std::ffi::OsStr| ["html", "htm"].iter().any(|page| ending.eq_ignore_ascii_case(page));
        if path.extension().is_some_and(is_page) { Self::Html } else { Self::Svg }
    }
}

/// How amounts of two data sets are made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalise {
    /// As if both had the same in all: shows which code takes a larger part.
    #[default]
    Share,
    /// As if both took the same time: shows which code draws more power, or allocates faster.
    Time,
    /// As they are.
    Nothing,
}

/// What to draw.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub data: PathBuf,
    /// The data set to compare with, which is the earlier one.
    pub base: Option<(PathBuf, Normalise)>,
    pub filter: Filter,
    pub app: Option<App>,
    pub shape: Shape,
    pub measure: Measure,
    /// Whether the root is at the top.
    pub is_icicle: bool,
    /// Part of the whole, 0 to 1, below which a node is merged with its siblings. `None`: as the picture has room.
    pub min_share: Option<f64>,
    pub picture: Picture,
}

/// What a picture is drawn of.
struct Drawn<'a> {
    drawing: &'a Drawing,
    profile: Profile,
    base: Option<Base>,
    /// Says what it is, and of what.
    title: String,
    headline: String,
    subtitle: String,
}

/// The data set that another one is compared with.
struct Base {
    profile: Profile,
    /// What its amounts are multiplied by.
    factor: f64,
}

/// Draws it; also the line that says what it is about.
///
/// # Errors
/// If a data set cannot be read, or there is nothing to draw.
pub fn draw(drawing: &Drawing) -> Result<(Vec<u8>, String)> {
    let drawn = drawing.filter.unreadable.reading(|| Drawn::read(drawing))?;
    let bytes = match drawing.picture {
        Picture::Svg => svg::of(&drawn)?,
        Picture::Html => page::of(&drawn),
    };
    Ok((bytes, drawn.headline))
}

impl<'a> Drawn<'a> {
    fn read(drawing: &'a Drawing) -> Result<Self> {
        let measure = drawing.measure;
        let read = |path: &Path| {
            let profile = Profile::read(path, &drawing.filter, drawing.app.as_ref())?;
            if whole(&profile, measure) == 0 { Err(measure::nothing(measure, path)) } else { Ok(profile) }
        };
        let profile = read(&drawing.data)?;
        let headline = headline_of(&profile, measure);
        let what = measure.title();
        let mut drawn = Self {
            drawing,
            profile,
            base: None,
            title: format!("{what} by call branch"),
            subtitle: headline.clone(),
            headline,
        };
        if let Some((path, normalise)) = &drawing.base {
            let before = read(path)?;
            drawn.title = format!("{what}, compared {}", normalise.meaning(measure));
            drawn.subtitle = format!("{} · against {}", drawn.headline, headline_of(&before, measure));
            let factor = factor_of(*normalise, measure, &drawn.profile, &before);
            drawn.base = Some(Base { profile: before, factor });
        }
        Ok(drawn)
    }
}

impl Normalise {
    const fn meaning(self, measure: Measure) -> &'static str {
        match (self, measure) {
            (Self::Share, _) => "by share: red has a larger share than before, blue a smaller one",
            (Self::Time, Measure::Energy) => "by power: red draws more power than before, blue less",
            (Self::Time, Measure::Allocated) => "by rate: red allocates more in the same time than before, blue less",
            (Self::Nothing, Measure::Energy) => "by energy: red has more energy than before, blue less",
            (Self::Time, _) => "by rate: red has more in the same time than before, blue less",
            (Self::Nothing, Measure::Allocated) => "by bytes: red allocated more than before, blue less",
            (Self::Nothing, _) => "by amount: red has more than before, blue less",
        }
    }
}

fn headline_of(profile: &Profile, measure: Measure) -> String {
    match measure {
        Measure::Energy => Headline::of(profile).text(),
        measure => headline::of_measure(profile, measure),
    }
}

fn whole(profile: &Profile, measure: Measure) -> u64 {
    profile.facts(measure).fold(0_u64, |sum, fact| sum.saturating_add(fact.amount))
}

/// The factor of what was before.
#[allow(clippy::cast_precision_loss, reason = "for a picture")]
fn factor_of(normalise: Normalise, measure: Measure, now: &Profile, before: &Profile) -> f64 {
    let ratio = |now: u64, before: u64| if before == 0 { 1.0 } else { now as f64 / before as f64 };
    match normalise {
        Normalise::Share => ratio(whole(now, measure), whole(before, measure)),
        Normalise::Time => ratio(now.overview.duration_ns, before.overview.duration_ns),
        Normalise::Nothing => 1.0,
    }
}

#[cfg(test)]
mod pictures {
    use super::*;

    #[test]
    fn a_file_is_what_its_ending_says() {
        for (file, expected) in [
            ("shop.svg", Picture::Svg),
            ("shop.html", Picture::Html),
            ("shop.HTM", Picture::Html),
            ("html", Picture::Svg),
            ("-", Picture::Svg),
            ("a.html/b", Picture::Svg),
        ] {
            assert_eq!(Picture::of_file(Path::new(file)), expected, "{file}");
        }
    }
}
