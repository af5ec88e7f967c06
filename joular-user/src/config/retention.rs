//! Resolves from flags how a recording without an end is kept: in runs of a bounded length, of which the
//! oldest go.

use std::time::Duration;

use joular_data::dataset::store::{KeepFree, Limits};

use super::{ConfigError, Places, duration::nanoseconds};
use crate::cli::Flags;

/// Length of runs if there is a limit and no length was given.
const DEFAULT_RUN: Duration = Duration::from_secs(15 * 60);

/// How much of a recording is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long a run of the data set is; `None`: as long as the recording.
    pub rotate_ns: Option<u64>,
    /// What earlier runs may have.
    pub limits: Limits,
}

impl Retention {
    /// Whether runs may be removed.
    pub fn is_limited(&self) -> bool {
        self.limits != Limits::default()
    }
}

impl Places {
    pub(super) fn retention(&self, flags: &Flags) -> Result<Retention, ConfigError> {
        let day = Duration::from_secs(24 * 3600);
        let rotate = self.time("rotate", flags.rotate.as_deref(), Duration::from_secs(10)..=day)?;
        let keep = self.time("keep", flags.keep.as_deref(), Duration::from_secs(10)..=day * 3660)?;
        let bytes = self.size("keep-size", flags.keep_size.as_deref())?;
        let keep_free = self.keep_free(flags.keep_free.as_deref())?;
        let limits = Limits { time_ns: keep.map(nanoseconds), bytes, keep_free };
        let needed = (limits != Limits::default() || flags.ship.is_some()).then_some(DEFAULT_RUN);
        Ok(Retention { rotate_ns: rotate.or(needed).map(nanoseconds), limits })
    }

    /// A size, a percentage, or 0.
    fn keep_free(&self, text: Option<&str>) -> Result<Option<KeepFree>, ConfigError> {
        let percent = |text: &str| text.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 50);
        match text {
            None | Some("0") => Ok(None),
            Some(text) => match percent(text).map(KeepFree::Percent).or(parse_size(text).map(KeepFree::Bytes)) {
                Some(kept) => Ok(Some(kept)),
                None => {
                    let cause =
                        format!("\"{}\" is not what can be kept: write 5% (up to 50%), 2GiB or 0", text.escape_debug());
                    Err(self.invalid("keep-free", cause))
                }
            },
        }
    }

    pub(super) fn size(&self, key: &str, text: Option<&str>) -> Result<Option<u64>, ConfigError> {
        let invalid = |text: &str| {
            self.invalid(key, format!("\"{}\" is not a size: write 500KiB, 20MiB or 2GiB", text.escape_debug()))
        };
        text.map(|text| parse_size(text).ok_or_else(|| invalid(text))).transpose()
    }
}

/// A whole number followed by `KiB`, `MiB`, `GiB` or `TiB`; not 0.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_number_and_a_binary_unit() {
        for (text, bytes) in
            [("3KiB", 3 << 10), ("1MiB", 1 << 20), ("500MiB", 500 << 20), ("2GiB", 2 << 30), ("1TiB", 1 << 40)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "0MiB",
            "2",
            "2G",
            "2GB",
            "-1MiB",
            "1.5GiB",
            "1 GiB",
            "99999999999999999999MiB",
            "18446744073709551615TiB",
        ] {
            assert_eq!(parse_size(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_limit_needs_runs_that_can_go() {
        let of = |flags: Flags| Places::typed(&flags).retention(&flags).map_err(|error| error.to_string());
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(of(Flags::default()), Ok(Retention::default()));
        let quarter = Some(900_000_000_000);
        let kept = of(Flags { keep: text("48h"), ..Flags::default() }).unwrap();
        assert_eq!((kept.rotate_ns, kept.limits.time_ns), (quarter, Some(172_800_000_000_000)));
        let kept = of(Flags { keep_size: text("2GiB"), ..Flags::default() }).unwrap();
        assert_eq!((kept.rotate_ns, kept.limits.bytes), (quarter, Some(2 << 30)));
        let kept = of(Flags { keep_size: text("2GiB"), rotate: text("1h"), ..Flags::default() }).unwrap();
        assert_eq!(kept.rotate_ns, Some(3_600_000_000_000));
        let kept = of(Flags { keep_free: text("5%"), ..Flags::default() }).unwrap();
        assert_eq!((kept.rotate_ns, kept.limits.keep_free), (quarter, Some(KeepFree::Percent(5))));
        let kept =
            |free: &str| of(Flags { keep_free: text(free), ..Flags::default() }).map(|kept| kept.limits.keep_free);
        assert_eq!(kept("2GiB"), Ok(Some(KeepFree::Bytes(2 << 30))));
        assert_eq!(kept("0"), Ok(None));
        for wrong in ["51%", "-1%", "%", "5", "5 %", ""] {
            assert!(kept(wrong).unwrap_err().contains("--keep-free"), "{wrong}");
        }
        assert!(of(Flags { rotate: text("1s"), ..Flags::default() }).unwrap_err().contains("--rotate"));
        assert!(of(Flags { keep_size: text("2"), ..Flags::default() }).unwrap_err().contains("--keep-size"));
    }
}
