//! Holds what the user says of the processor: its TDP, and the voltage it needs at each frequency.
//! All are integers, so that the values used are those typed.

use thiserror::Error;

/// Most that one processor is specified for: 10 kW, in µW.
pub const MOST_TDP_UW: u64 = 10_000_000_000;
const MOST_STATES: usize = 64;
/// 100 GHz and 10 V, far above any processor and small enough that no product
/// in the model overflows.
pub const MOST_KHZ: u64 = 100_000_000;
const MOST_UV: u64 = 10_000_000;

/// What is known about the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TdpOptions {
    /// Thermal design power of one processor, µW, more than 0 and at most 10 kW;
    /// `None` to ask powercap.
    pub tdp_uw: Option<u64>,
    /// What voltage goes with what frequency; empty: one voltage for all.
    pub states: States,
}

/// A frequency and the voltage it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// 1 kHz to 100 GHz.
    pub khz: u64,
    /// 1 µV to 10 V.
    pub uv: u64,
}

/// States in the order of their frequencies, each frequency once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States(Vec<State>);

/// A text that is not a TDP or not a list of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TdpError {
    #[error("not a power in watts, more than 0 and at most 10000, e.g. 65")]
    Watts,
    #[error("not MHZ:VOLTS,MHZ:VOLTS,… with up to 100000 MHz and 10 V, e.g. 800:0.7,2400:1.1")]
    State,
    #[error("more than {MOST_STATES} states")]
    TooMany,
    #[error("{0} kHz has two voltages")]
    Twice(u64),
}

/// Watts as typed to µW.
///
/// # Errors
/// [`TdpError::Watts`].
pub fn parse_tdp(text: &str) -> Result<u64, TdpError> {
    decimal(text, 6).filter(|uw| (1..=MOST_TDP_UW).contains(uw)).ok_or(TdpError::Watts)
}

impl std::str::FromStr for States {
    type Err = TdpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut states = Vec::new();
        for part in text.split(',') {
            if states.len() == MOST_STATES {
                return Err(TdpError::TooMany);
            }
            states.push(state(part).ok_or(TdpError::State)?);
        }
        states.sort();
        match states.windows(2).find(|pair| matches!(pair, [a, b] if a.khz == b.khz)) {
            Some(pair) => Err(TdpError::Twice(pair.first().map_or(0, |state| state.khz))),
            None => Ok(Self(states)),
        }
    }
}

impl States {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The highest frequency, if there is any.
    pub fn highest_khz(&self) -> Option<u64> {
        self.0.last().map(|state| state.khz)
    }

    /// The voltage at a frequency, µV: on the line between the states around it,
    /// rounded to the nearest, and that of the nearest state beyond them. 1 if
    /// there are no states: only ratios of voltages count.
    pub fn uv_at(&self, khz: u64) -> u64 {
        let above = self.0.partition_point(|state| state.khz < khz);
        let below = above.checked_sub(1).and_then(|index| self.0.get(index));
        match (below, self.0.get(above)) {
            (Some(below), Some(above)) => between(*below, *above, khz),
            (Some(state), None) | (None, Some(state)) => state.uv,
            (None, None) => 1,
        }
    }
}

/// On the line from `below` to `above`; `khz` is above the one and not above the
/// other.
fn between(below: State, above: State, khz: u64) -> u64 {
    let width = u128::from(above.khz.saturating_sub(below.khz).max(1));
    let part = |uv: u64, khz: u64| u128::from(uv) * u128::from(khz);
    // Weighted by the distance to the other end, each at most 10^15.
    let sum = part(below.uv, above.khz.saturating_sub(khz)) + part(above.uv, khz.saturating_sub(below.khz));
    u64::try_from((sum + width / 2) / width).unwrap_or(MOST_UV)
}

fn state(text: &str) -> Option<State> {
    let (mhz, volts) = text.split_once(':')?;
    let khz = decimal(mhz, 3).filter(|khz| (1..=MOST_KHZ).contains(khz))?;
    let uv = decimal(volts, 6).filter(|uv| (1..=MOST_UV).contains(uv))?;
    Some(State { khz, uv })
}

/// A plain decimal number in units of 10^-`places`; finer than that is refused,
/// not rounded.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_become_microwatts() {
        for (text, expected) in [
            ("65", Some(65_000_000)),
            ("12.5", Some(12_500_000)),
            (" 0.000001 ", Some(1)),
            ("10000", Some(MOST_TDP_UW)),
            ("10000.000001", None),
            ("0", None),
            ("0.0000001", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("1.", None),
            (".5", None),
            ("1.2.3", None),
            ("65W", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_tdp(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn states_are_pairs_in_any_order() {
        let states: States = "2400:1.1, 800:0.70625".parse().unwrap();
        assert_eq!(states.0, [State { khz: 800_000, uv: 706_250 }, State { khz: 2_400_000, uv: 1_100_000 }]);
        assert_eq!(states.highest_khz(), Some(2_400_000));
    }

    #[test]
    fn what_is_not_a_list_of_states_is_refused() {
        for (text, expected) in [
            ("", TdpError::State),
            ("800", TdpError::State),
            ("800:", TdpError::State),
            (":1", TdpError::State),
            ("800:0", TdpError::State),
            ("0:1", TdpError::State),
            ("800:11", TdpError::State),
            ("100001:1", TdpError::State),
            ("800:1.0.0", TdpError::State),
            ("800:1,", TdpError::State),
            ("800:1;900:1", TdpError::State),
            ("800:1,900:1,800.0:1.2", TdpError::Twice(800_000)),
            (&["1:1"; 65].join(","), TdpError::TooMany),
        ] {
            assert_eq!(text.parse::<States>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn voltages_lie_on_lines_between_states_and_stay_beyond_them() {
        let states: States = "1000:0.8,2000:1.0,3000:1.3".parse().unwrap();
        for (mhz, expected) in
            [(500, 800_000), (1000, 800_000), (1500, 900_000), (2000, 1_000_000), (2500, 1_150_000), (9000, 1_300_000)]
        {
            assert_eq!(states.uv_at(mhz * 1000), expected, "{mhz} MHz");
        }
        assert_eq!(States::default().uv_at(5), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_no_voltage_leaves_the_states(text in "([0-9]{1,6}(\\.[0-9]{1,4})?:[0-9](\\.[0-9]{1,7})?,?){0,5}|.{0,40}", khz: u64) {
            let _ = parse_tdp(&text);
            if let Ok(states) = text.parse::<States>() {
                let least = states.0.iter().map(|state| state.uv).min();
                let most = states.0.iter().map(|state| state.uv).max();
                let found = states.uv_at(khz);
                proptest::prop_assert!(least <= Some(found) && Some(found) <= most);
            }
        }
    }
}
