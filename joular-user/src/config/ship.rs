//! Resolves from flags where runs go that have ended, and how.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use joular_data::{
    redact::Redaction,
    shipping::{Layout, Options},
};

use super::{ConfigError, Places, duration::nanoseconds, rollup::rollup_window_ns};
use crate::cli::{Flags, ShipFlags};

/// How long the end of a recording waits for its last run to be shipped.
const DEFAULT_AT_END: Duration = Duration::from_secs(10);

/// A window of a fleet.
const DEFAULT_WINDOW: Duration = Duration::from_secs(60);

/// Where runs go that have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ship {
    /// A directory, or the URL of object storage.
    pub to: String,
    /// Length of the windows there; `None`: as recorded.
    pub window_ns: Option<u64>,
    /// What is made of a run there.
    pub layout: Layout,
    /// Whether a bucket is asked whether it has a file before it is written: see [`Options::looks_first`].
    pub looks_first: bool,
    /// Bytes per second, on average.
    pub most_bytes_per_s: Option<u64>,
    /// How long the end of a recording waits until the last run has arrived.
    pub at_end: Duration,
}

impl Ship {
    /// For the code that ships, which puts what it makes in this folder.
    pub fn options(&self, scratch: PathBuf, redaction: Redaction) -> Options {
        let Self { window_ns, layout, looks_first, most_bytes_per_s, .. } = *self;
        Options { window_ns, layout, looks_first, redaction, most_bytes_per_s, scratch }
    }
}

impl Places {
    pub(super) fn ship(&self, flags: &Flags) -> Result<Option<Ship>, ConfigError> {
        let Some(to) = flags.ship.clone() else {
            return match flags.first_of(&["ship-window", "ship-layout", "ship-look-first", "ship-rate", "ship-at-end"])
            {
                Some(key) => Err(self.invalid(key, "it needs --ship, which says where runs go")),
                None => Ok(None),
            };
        };
        if flags.no_output {
            return Err(self.conflict("ship", "no-output", "runs that are shipped are those of the data set"));
        }
        if flags.output.as_deref() == Some(Path::new(&to)) {
            return Err(self.invalid("ship", "it is where the data set is written: name another place"));
        }
        let window_ns = match flags.ship_window.as_deref() {
            Some("recorded") => None,
            text => Some(self.ship_window_ns(text, flags.interval.as_deref())?),
        };
        let most_bytes_per_s = self.size("ship-rate", flags.ship_rate.as_deref())?;
        let limits = Duration::ZERO..=Duration::from_secs(3600);
        let at_end = self.time("ship-at-end", flags.ship_at_end.as_deref(), limits)?.unwrap_or(DEFAULT_AT_END);
        let layout = self.layout("ship-layout", flags.ship_layout.as_deref())?;
        let looks_first = flags.ship_look_first;
        Ok(Some(Ship { to, window_ns, layout, looks_first, most_bytes_per_s, at_end }))
    }

    fn layout(&self, key: &'static str, text: Option<&str>) -> Result<Layout, ConfigError> {
        let Some(text) = text else { return Ok(Layout::default()) };
        let found = Layout::ALL.into_iter().find(|layout| layout.name() == text);
        found.ok_or_else(|| self.invalid(key, "write bundles or tables"))
    }

    fn ship_window_ns(&self, text: Option<&str>, interval: Option<&str>) -> Result<u64, ConfigError> {
        let limits = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
        let window_ns = nanoseconds(self.time("ship-window", text, limits.clone())?.unwrap_or(DEFAULT_WINDOW));
        let interval = self.time("interval", interval, Duration::ZERO..=*limits.end())?;
        let interval_ns = nanoseconds(interval.unwrap_or(Duration::from_secs(1)));
        if window_ns <= interval_ns || !window_ns.is_multiple_of(interval_ns) {
            let cause = "it is not a multiple of --interval: name one, or recorded";
            return Err(self.invalid("ship-window", cause));
        }
        Ok(window_ns)
    }
}

/// Of `ship`, which ships once.
///
/// # Errors
/// If a flag cannot be understood.
pub fn ship_once(flags: &ShipFlags) -> Result<Ship, ConfigError> {
    let window_ns = (flags.window != "recorded").then(|| rollup_window_ns(&flags.window)).transpose()?;
    let none = Flags::default();
    let places = Places::typed(&none);
    Ok(Ship {
        to: flags.to.clone().unwrap_or_default(),
        window_ns,
        layout: places.layout("layout", Some(&flags.layout))?,
        looks_first: flags.look_first,
        most_bytes_per_s: places.size("rate", flags.rate.as_deref())?,
        at_end: Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flags: Flags) -> Result<Option<Ship>, String> {
        Places::typed(&flags).ship(&flags).map_err(|error| error.to_string())
    }

    fn to_bucket() -> Flags {
        Flags { ship: Some("s3://fleet/energy".into()), ..Flags::default() }
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn runs_are_shipped_as_windows_of_a_minute_unless_told_otherwise() {
        assert_eq!(of(Flags::default()), Ok(None));
        let ship = of(to_bucket()).unwrap().unwrap();
        assert_eq!(
            (ship.to.as_str(), ship.window_ns, ship.most_bytes_per_s),
            ("s3://fleet/energy", Some(60_000_000_000), None)
        );
        let ship =
            of(Flags { ship_window: text("recorded"), ship_rate: text("2MiB"), ..to_bucket() }).unwrap().unwrap();
        assert_eq!((ship.window_ns, ship.most_bytes_per_s), (None, Some(2 << 20)));
        assert_eq!(ship.at_end, Duration::from_secs(10));
        assert_eq!((ship.layout, ship.looks_first), (Layout::Bundles, false));
        let ship = of(Flags { ship_layout: text("tables"), ship_look_first: true, ..to_bucket() }).unwrap().unwrap();
        assert_eq!((ship.layout, ship.looks_first), (Layout::Tables, true));
        let ship = of(Flags { ship_at_end: text("50s"), ..to_bucket() }).unwrap().unwrap();
        assert_eq!(ship.at_end, Duration::from_secs(50));
        let ship = of(Flags { ship_window: text("30s"), interval: text("500ms"), ..to_bucket() }).unwrap().unwrap();
        assert_eq!(ship.window_ns, Some(30_000_000_000));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (flags, message) in [
            (Flags { ship_rate: text("2MiB"), ..Flags::default() }, "--ship-rate: it needs --ship"),
            (Flags { no_output: true, ..to_bucket() }, "--ship cannot be used with --no-output"),
            (Flags { output: Some("s3://fleet/energy".into()), ..to_bucket() }, "--ship: it is where the data set"),
            (
                Flags { ship_window: text("90s"), interval: text("60s"), ..to_bucket() },
                "--ship-window: it is not a multiple",
            ),
            (Flags { interval: text("60s"), ..to_bucket() }, "--ship-window: it is not a multiple"),
            (Flags { ship_at_end: text("2h"), ..to_bucket() }, "--ship-at-end: "),
            (Flags { ship_layout: text("zip"), ..to_bucket() }, "--ship-layout: write bundles or tables"),
            (Flags { ship_look_first: true, ..Flags::default() }, "--ship-look-first: it needs --ship"),
            (Flags { ship_rate: text("fast"), ..to_bucket() }, "--ship-rate: \"fast\" is not a size"),
        ] {
            let error = of(flags).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
