//! Rounds figures to the digits that they deserve.
//!
//! A modelled figure is good for three significant digits. Counters are shown to the millijoule, as
//! are all figures that people read of them. Where sampling leaves something open, the two
//! significant digits of the error say where the figure ends. Files, CSV and JSON have integers.

use std::cmp::Reverse;

use crate::model::{domain::Label, units::MicroJoules};

/// Significant digits of an estimate.
const MODELLED_DIGITS: i32 = 3;
/// Significant digits of an error.
const ERROR_DIGITS: i32 = 2;
/// Decimal places of what was counted: mJ, mW.
const MEASURED_PLACES: i32 = 3;
/// µJ: nothing is known more finely.
const MOST_PLACES: i32 = 6;
/// Of emissions and cost, which are small numbers of large units.
const MOST_DERIVED_PLACES: i32 = 12;

/// The last digit of a figure: places behind the point; below zero, zeros before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Places(i32);

impl Places {
    /// The last digit of a figure that came about like this.
    pub fn of(value: f64, label: Option<Label>) -> Self {
        match label {
            Some(label) if label.is_estimate() => Self(significant(value, MODELLED_DIGITS).min(MOST_PLACES)),
            _ => Self(MEASURED_PLACES),
        }
    }

    /// The last digit of items that add up to this total: one more than the total deserves, so that
    /// rounding does not distort small ones.
    fn of_items(total: f64, label: Option<Label>) -> Self {
        match label {
            Some(label) if label.is_estimate() => Self(significant(total, MODELLED_DIGITS + 1).min(MOST_PLACES)),
            _ => Self::of(total, label),
        }
    }

    /// The same, of a figure that may be off by `error`.
    pub fn with_error(value: f64, error: f64, label: Option<Label>) -> Self {
        Self::of(value, label).min(Self(significant(error, ERROR_DIGITS)))
    }

    /// The last digit of what a factor makes of energy, such as emissions, which may be off by `error`. A
    /// factor has three digits at best, however the energy was measured.
    pub fn derived(value: f64, error: f64) -> Self {
        let places = significant(value, MODELLED_DIGITS).min(MOST_DERIVED_PLACES);
        Self(if error > 0.0 { places.min(significant(error, ERROR_DIGITS)) } else { places })
    }

    /// The figure, rounded there.
    pub fn write(self, value: f64) -> String {
        let Ok(places) = usize::try_from(self.0) else {
            let unit = 10_f64.powi(-self.0);
            return format!("{:.0}", (value / unit).round() * unit);
        };
        // Nothing, not a small amount.
        if value == 0.0 && self.0 == MOST_PLACES { "0".to_owned() } else { format!("{value:.places$}") }
    }

    /// Microjoules of the last digit.
    fn unit(self) -> u64 {
        10_u64.saturating_pow(u32::try_from(MOST_PLACES - self.0).unwrap_or(0))
    }
}

/// Places behind the point that show so many significant digits; for zero as many as possible.
fn significant(value: f64, digits: i32) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return MOST_PLACES;
    }
    // Rounded first: 9.996 to three digits is 10.0, not 10.00.
    let precision = usize::try_from(digits - 1).unwrap_or(0);
    let text = format!("{value:.precision$e}");
    let exponent: i32 = text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    digits - 1 - exponent
}

/// Joules or watts of this label.
pub fn figure(value: f64, label: Option<Label>) -> String {
    Places::of(value, label).write(value)
}

/// A figure and its interval, ending at the same place: the terminal, reports and the page show
/// both like this.
pub fn with_interval(value: f64, (low, high): (f64, f64), label: Option<Label>) -> (String, String) {
    let places = Places::with_error(value, (high - low) / 2.0, label);
    let shown = if low < high { format!("{}–{}", places.write(low), places.write(high)) } else { "exact".to_owned() };
    (places.write(value), shown)
}

/// Items of a total, in joules, rounded to a common last digit so that they still add up to it.
/// What rounding leaves over goes to those that lost most. The total comes last.
pub fn adding_up(items: &[MicroJoules], label: Option<Label>) -> Vec<String> {
    let total: MicroJoules = items.iter().copied().sum();
    let places = Places::of_items(total.joules(), label);
    let unit = places.unit();
    let mut rounded: Vec<u64> = items.iter().map(|item| item.0 / unit).collect();
    let whole = total.0 / unit + u64::from(total.0 % unit >= unit.div_ceil(2));
    let missing = whole.saturating_sub(rounded.iter().sum());
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|item| Reverse(items[*item].0 % unit));
    for item in order.into_iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        rounded[item] += 1;
    }
    let joules = |units: u64| places.write(MicroJoules(units.saturating_mul(unit)).joules());
    rounded.into_iter().chain([whole]).map(joules).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEASURED: Option<Label> = Some(Label::Measured);
    const MODELLED: Option<Label> = Some(Label::Modelled);

    #[test]
    fn a_figure_ends_where_what_is_known_ends() {
        for (value, label, expected) in [
            (12.345_678, MEASURED, "12.346"),
            (0.0004, MEASURED, "0.000"),
            (0.0, MEASURED, "0.000"),
            (0.0, MODELLED, "0"),
            (1234.5, None, "1234.500"),
            (12.345_678, MODELLED, "12.3"),
            (1.234_567, MODELLED, "1.23"),
            (9.996, MODELLED, "10.0"),
            (0.012_345, MODELLED, "0.0123"),
            (0.000_001, MODELLED, "0.000001"),
            (123.456, MODELLED, "123"),
            (12_345.6, MODELLED, "12300"),
            (999_600.0, MODELLED, "1000000"),
        ] {
            assert_eq!(figure(value, label), expected, "{value} {label:?}");
        }
    }

    #[test]
    fn an_error_has_two_digits_and_ends_the_figure_where_it_ends() {
        for (value, interval, label, expected) in [
            (1.234_567, (1.19, 1.281_2), MEASURED, ("1.235", "1.190–1.281")),
            (1.234_567, (0.8, 1.712), MEASURED, ("1.23", "0.80–1.71")),
            (123.4, (95.2, 157.3), MEASURED, ("123", "95–157")),
            (1234.0, (900.0, 1521.0), MEASURED, ("1230", "900–1520")),
            (1.234_567, (1.234_56, 1.234_58), MEASURED, ("1.235", "1.235–1.235")),
            (45.67, (45.1, 46.32), MODELLED, ("45.7", "45.1–46.3")),
            (1.5, (1.5, 1.5), MEASURED, ("1.500", "exact")),
        ] {
            let (value_text, interval_text) = with_interval(value, interval, label);
            assert_eq!((value_text.as_str(), interval_text.as_str()), expected, "{value} in {interval:?}");
        }
    }

    #[test]
    fn what_a_factor_makes_of_energy_has_three_digits_and_none_finer_than_its_error() {
        for (value, error, expected) in [
            (12.345_678, 0.0, "12.3"),
            (0.000_000_123_456, 0.0, "0.000000123"),
            (0.000_123_456, 0.000_02, "0.000123"),
            (0.000_123_456, 0.000_2, "0.00012"),
            (12_345.6, 0.0, "12300"),
            (0.0, 0.0, "0"),
            (1e-15, 0.0, "0.000000000000"),
        ] {
            assert_eq!(Places::derived(value, error).write(value), expected, "{value} ± {error}");
        }
    }

    #[test]
    fn rounded_items_add_up_to_the_rounded_total() {
        let items = [400, 400, 400].map(MicroJoules);
        assert_eq!(adding_up(&items, MEASURED), ["0.001", "0.000", "0.000", "0.001"]);
        let items = [123_456_789, 876_000, 1].map(MicroJoules);
        assert_eq!(adding_up(&items, MODELLED), ["123.4", "0.9", "0.0", "124.3"]);
        assert_eq!(adding_up(&[MicroJoules(0)], MODELLED), ["0", "0"]);
    }

    proptest! {
        #[test]
        fn items_add_up_whatever_they_are(
            items in prop::collection::vec(0..10_000_000_000_u64, 1..10),
            is_modelled: bool,
        ) {
            let items: Vec<MicroJoules> = items.into_iter().map(MicroJoules).collect();
            let texts = adding_up(&items, if is_modelled { MODELLED } else { MEASURED });
            // In µJ, exactly.
            let parse = |text: &String| {
                let (whole, part) = text.split_once('.').unwrap_or((text, ""));
                format!("{whole}{part:0<6}").parse::<u64>().unwrap()
            };
            let (total, parts) = texts.split_last().unwrap();
            prop_assert_eq!(parts.iter().map(parse).sum::<u64>(), parse(total));
            let unit = Places::of_items(items.iter().copied().sum::<MicroJoules>().joules(), if is_modelled { MODELLED } else { MEASURED }).unit();
            for (item, text) in items.iter().zip(parts) {
                prop_assert!(item.0.abs_diff(parse(text)) < unit, "{} {}", item.0, text);
            }
        }
    }
}
