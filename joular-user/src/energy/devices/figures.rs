//! Parses the figures that a user knows of a card or a disk.

use thiserror::Error;

use crate::energy::watts::parse_microwatts;

/// In place of figures: those that are published.
const PUBLISHED: &str = "published";

/// More than anything costs: 1 J a byte, 1 kJ a request.
const MOST_NJ: f64 = 1e9;
const MOST_UJ: f64 = 1e9;

/// What is known of a network card. Nothing is published that would do in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicFigures {
    /// Power of one card whose link is up and that moves nothing.
    pub idle_uw: u64,
    /// The same without a link.
    pub down_uw: Option<u64>,
    /// The same while it moves as much as its link can, one way; no less than `idle_uw`. It is there unless both costs are.
    pub active_uw: Option<u64>,
    pub sent_pj: Option<u64>,
    pub received_pj: Option<u64>,
}

/// What is known of a disk; the rest is as published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskFigures {
    /// Power of one disk that is ready and does nothing.
    pub idle_uw: Option<u64>,
    /// Of a request, whatever its size.
    pub read_pj: Option<u64>,
    pub write_pj: Option<u64>,
    /// Of a byte.
    pub byte_read_pj: Option<u64>,
    pub byte_written_pj: Option<u64>,
}

/// A text that is not figures.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FiguresError {
    #[error("\"{0}\" is not NAME=NUMBER: use some of {1}, with commas between them, or published")]
    Form(String, &'static str),
    #[error("there is no figure {0}: use some of {1}")]
    Name(String, &'static str),
    #[error("{0} is given twice")]
    Twice(&'static str),
    #[error("{0} is \"{1}\", which is not a number from 0 to {2}")]
    Number(&'static str, String, &'static str),
    #[error(
        "what a network card draws when it moves nothing is not published: give idle-watts, and active-watts or sent-nj and \
         received-nj; docs/energy-model.md says how to measure them"
    )]
    NoIdlePower,
    #[error(
        "what a byte costs is not known: give active-watts, or sent-nj and received-nj (0 if the card's power is always the same)"
    )]
    NoCost,
    #[error(
        "a card that moves bytes draws no less than one that moves none: give active-watts that are not below idle-watts"
    )]
    ActiveBelowIdle,
}

/// What a figure is in.
#[derive(Clone, Copy)]
enum Unit {
    Watts,
    /// Per request.
    Microjoules,
    /// Per byte.
    Nanojoules,
}

/// A figure by its name, and where it goes.
type Place<'a> = (&'static str, Unit, &'a mut Option<u64>);

impl std::str::FromStr for NicFigures {
    type Err = FiguresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut figures, mut idle_uw) = (Self::default(), None);
        let places = [
            ("idle-watts", Unit::Watts, &mut idle_uw),
            ("down-watts", Unit::Watts, &mut figures.down_uw),
            ("active-watts", Unit::Watts, &mut figures.active_uw),
            ("sent-nj", Unit::Nanojoules, &mut figures.sent_pj),
            ("received-nj", Unit::Nanojoules, &mut figures.received_pj),
        ];
        parse(text, places, "idle-watts, down-watts, active-watts, sent-nj and received-nj")?;
        let idle_uw = idle_uw.ok_or(FiguresError::NoIdlePower)?;
        match figures.active_uw {
            Some(active_uw) if active_uw < idle_uw => Err(FiguresError::ActiveBelowIdle),
            None if figures.sent_pj.is_none() || figures.received_pj.is_none() => Err(FiguresError::NoCost),
            _ => Ok(Self { idle_uw, ..figures }),
        }
    }
}

impl std::str::FromStr for DiskFigures {
    type Err = FiguresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut figures = Self::default();
        let places = [
            ("idle-watts", Unit::Watts, &mut figures.idle_uw),
            ("read-uj", Unit::Microjoules, &mut figures.read_pj),
            ("write-uj", Unit::Microjoules, &mut figures.write_pj),
            ("byte-read-nj", Unit::Nanojoules, &mut figures.byte_read_pj),
            ("byte-written-nj", Unit::Nanojoules, &mut figures.byte_written_pj),
        ];
        parse(text, places, "idle-watts, read-uj, write-uj, byte-read-nj and byte-written-nj").map(|()| figures)
    }
}

fn parse<const N: usize>(text: &str, mut places: [Place<'_>; N], names: &'static str) -> Result<(), FiguresError> {
    if text.trim() == PUBLISHED {
        return Ok(());
    }
    let plain = |text: &str| text.chars().take(40).flat_map(char::escape_debug).collect::<String>();
    for figure in text.split(',') {
        let (name, number) = figure.split_once('=').ok_or_else(|| FiguresError::Form(plain(figure), names))?;
        let place = places.iter_mut().find(|(known, ..)| *known == name.trim());
        let (name, unit, place) = place.ok_or_else(|| FiguresError::Name(plain(name), names))?;
        let (value, most) = unit.parse(number);
        let value = value.ok_or_else(|| FiguresError::Number(name, plain(number), most))?;
        if place.replace(value).is_some() {
            return Err(FiguresError::Twice(name));
        }
    }
    Ok(())
}

impl Unit {
    /// In µW or pJ, rounded to the nearest, and the largest for people.
    fn parse(self, text: &str) -> (Option<u64>, &'static str) {
        match self {
            Self::Watts => (parse_microwatts(text).ok(), "100000"),
            Self::Microjoules => (scaled(text, MOST_UJ, 1e6), "1000000000"),
            Self::Nanojoules => (scaled(text, MOST_NJ, 1e3), "1000000000"),
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10^15 after the range check")]
fn scaled(text: &str, most: f64, by: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (0.0..=most).contains(&number).then(|| (number * by).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_named_and_the_rest_of_a_disk_is_as_published() {
        let idle = NicFigures { idle_uw: 3_500_000, ..NicFigures::default() };
        for (text, expected) in [
            ("idle-watts=3.5,active-watts=3.5", NicFigures { active_uw: Some(3_500_000), ..idle }),
            (
                "down-watts=1,active-watts=4,idle-watts=3.5",
                NicFigures { down_uw: Some(1_000_000), active_uw: Some(4_000_000), ..idle },
            ),
            (
                "idle-watts=3.5, sent-nj=2.07, received-nj=0",
                NicFigures { sent_pj: Some(2_070), received_pj: Some(0), ..idle },
            ),
        ] {
            assert_eq!(text.parse::<NicFigures>(), Ok(expected), "{text}");
        }
        assert_eq!("published".parse::<DiskFigures>(), Ok(DiskFigures::default()));
        let disk: DiskFigures = "read-uj=49000.5,byte-written-nj=9.2,idle-watts=0".parse().unwrap();
        let expected = DiskFigures {
            idle_uw: Some(0),
            read_pj: Some(49_000_500_000),
            byte_written_pj: Some(9_200),
            ..DiskFigures::default()
        };
        assert_eq!(disk, expected);
    }

    #[test]
    fn what_is_not_figures_is_refused_and_says_what_would_be() {
        for (text, part) in [
            ("", "not NAME=NUMBER"),
            ("3.5", "not NAME=NUMBER"),
            ("watts=1", "no figure watts: use some of idle-watts, down-watts, active-watts"),
            ("sent-nj=1,sent-nj=2", "sent-nj is given twice"),
            ("sent-nj=-1", "sent-nj is \"-1\", which is not a number from 0 to 1000000000"),
            ("sent-nj=1e10", "not a number"),
            ("idle-watts=NaN", "idle-watts is \"NaN\", which is not a number from 0 to 100000"),
            ("sent-nj=1,", "not NAME=NUMBER"),
            ("published", "is not published: give idle-watts, and active-watts or sent-nj and received-nj"),
            ("active-watts=3", "is not published: give idle-watts"),
            ("idle-watts=3", "what a byte costs is not known: give active-watts, or sent-nj and received-nj"),
            ("idle-watts=3,sent-nj=1", "what a byte costs is not known"),
            ("idle-watts=3,active-watts=2", "give active-watts that are not below idle-watts"),
        ] {
            let error = text.parse::<NicFigures>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
