//! Resolves from flags what is drawn.

use joular_data::{
    fleet::choice::View,
    report::{
        flamegraph::{Drawing, Normalise, Picture},
        html::{Flights, PageChoice},
        measure::Measure,
        profile::{App, Names},
        tree::{Kinds, Levels, Shape},
    },
};

use super::{ConfigError, footprint, part, redaction, report::measure, tier};
use crate::cli::{FlamegraphFlags, HtmlFlags};

/// # Errors
/// If a flag cannot be understood.
pub fn drawing(flags: &FlamegraphFlags) -> Result<Drawing, ConfigError> {
    let (mut filter, app) = part(&flags.part)?;
    let normalise = match flags.normalise.as_str() {
        "time" => Normalise::Time,
        "none" => Normalise::Nothing,
        _ => Normalise::Share,
    };
    let picture = Picture::of_file(&flags.output);
    if picture == Picture::Html && flags.min_share.is_some() {
        return Err(ConfigError::Conflict {
            place: "--min-share".to_owned(),
            other: format!("--output {}", flags.output.display()),
            advice: "a page merges nothing: it draws what is wide enough, and the rest when you zoom in",
        });
    }
    let levels = match (flags.levels.by_process, flags.levels.by_thread) {
        (_, true) => Levels::Threads,
        (true, false) => Levels::Processes,
        (false, false) => Levels::Frames,
    };
    filter.sources = tier::sources(&flags.tier.tier, [View::Tree(levels)])?;
    Ok(Drawing {
        data: flags.data.clone(),
        base: flags.diff.clone().map(|base| (base, normalise)),
        filter,
        app,
        shape: Shape { levels, kinds: kinds(flags.levels.by_kind) },
        measure: if flags.allocated { Measure::Allocated } else { measure(flags.measure.as_deref())? },
        is_icicle: !flags.upright,
        min_share: flags.min_share.as_deref().map(|share| parse_share("--min-share", share)).transpose()?,
        picture,
    })
}

const fn kinds(is_by_kind: bool) -> Kinds {
    if is_by_kind { Kinds::Apart } else { Kinds::Merged }
}

/// # Errors
/// If a flag cannot be understood.
pub fn page(flags: &HtmlFlags) -> Result<PageChoice, ConfigError> {
    let (filter, app) = part(&flags.part)?;
    // The page can merge processes itself, and does so at first, as flame graphs do.
    let levels = if flags.levels.by_thread { Levels::Threads } else { Levels::Processes };
    let is_apart = flags.levels.by_process || flags.levels.by_thread;
    let shape = Shape { levels, kinds: kinds(flags.levels.by_kind) };
    let footprint = footprint(&flags.footprint)?;
    let redaction = redaction(&flags.command_line)?;
    let view = match &app {
        Some(App::Java) => "Java view".to_owned(),
        _ => format!("application view of {}", flags.part.app.join(", ")),
    };
    let events = Names::parse(&flags.jfr_event)
        .map_err(|error| ConfigError::Invalid { place: "--jfr-event".to_owned(), cause: error.to_string() })?;
    let flights = Flights { files: flags.jfr.clone(), events };
    Ok(PageChoice { data: flags.data.clone(), filter, app, shape, is_apart, footprint, redaction, view, flights })
}

/// `0.05%`, or the same as a fraction: `0.0005`.
fn parse_share(place: &str, text: &str) -> Result<f64, ConfigError> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse().map(|number: f64| number / unit);
    share.ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| ConfigError::Invalid {
        place: place.to_owned(),
        cause: format!("'{text}' is not a share: write e.g. 0.05% or 0.0005"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_or_fractions() {
        for (text, expected) in [("0.05%", Some(0.0005)), ("0", Some(0.0)), ("100%", Some(1.0)), ("0.5", Some(0.5))] {
            assert_eq!(parse_share("--min-share", text).ok(), expected, "{text}");
        }
        for text in ["", "%", "NaN", "-1%", "101%", "2", "few"] {
            let message = parse_share("--min-share", text).unwrap_err().to_string();
            assert!(message.contains("--min-share"), "{message}");
        }
    }
}
