//! Defines what live metrics are made of: families of samples, each with labels and a figure.
//!
//! Figures are integers of a small unit, so that nothing is rounded on the way to those who take them.

use std::{
    borrow::Cow,
    fmt::{self, Display},
    sync::Arc,
};

use joular_data::model::{target_text::TargetText, units::MicroJoules};

/// Bytes of a label's value before its escapes of the format. What is longer is cut.
pub const MAX_LABEL_BYTES: usize = 128;
/// The same for names of methods, which have their packages in them.
pub const MAX_METHOD_BYTES: usize = 256;

/// Takes metrics, family by family.
pub trait Families {
    /// Begins a family; samples belong to the last one begun.
    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str);

    fn sample(&mut self, labels: &Labels, figure: Figure);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Info,
}

/// What a family's figures count, which is the last word of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Joules,
    Seconds,
    Watts,
    Bytes,
}

impl Unit {
    const ALL: [Self; 4] = [Self::Joules, Self::Seconds, Self::Watts, Self::Bytes];

    /// `None`: it is a number of things.
    pub fn of(family: &str) -> Option<Self> {
        let word = family.rsplit('_').next()?;
        Self::ALL.into_iter().find(|unit| unit.name() == word)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Joules => "joules",
            Self::Seconds => "seconds",
            Self::Watts => "watts",
            Self::Bytes => "bytes",
        }
    }
}

/// `count` × 10^-`digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub count: u64,
    pub digits: u32,
}

impl Figure {
    pub const fn whole(count: u64) -> Self {
        Self { count, digits: 0 }
    }

    /// Millionths.
    pub const fn micro(count: u64) -> Self {
        Self { count, digits: 6 }
    }

    /// Billionths.
    pub const fn nano(count: u64) -> Self {
        Self { count, digits: 9 }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(self.digits);
        write!(f, "{}", self.count / one)?;
        if self.digits == 0 {
            return Ok(());
        }
        write!(f, ".{:0width$}", self.count % one, width = self.digits as usize)
    }
}

/// Joules.
impl From<MicroJoules> for Figure {
    fn from(energy: MicroJoules) -> Self {
        Self::micro(energy.0)
    }
}

/// Mean power in watts; 0 for a window without length.
pub fn power(energy: MicroJoules, length_ns: u64) -> Figure {
    let microwatts = (u128::from(energy.0) * 1_000_000_000).checked_div(length_ns.into()).unwrap_or(0);
    Figure::micro(u64::try_from(microwatts).unwrap_or(u64::MAX))
}

/// Labels of one series, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<(Cow<'static, str>, Arc<str>)>);

impl Labels {
    /// Adds a label. An empty value says the same as no label, so it is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.0.push((name.into(), value.into()));
        }
        self
    }

    /// Adds labels of a host, each `key=value`, as `label_KEY`. Keys that are the same as names of Prometheus stand once.
    #[must_use]
    pub fn with_labels_of_host(mut self, labels: &[TargetText]) -> Self {
        for (key, value) in labels.iter().filter_map(|label| label.raw().split_once('=')) {
            let name = format!("label_{}", key.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
            if !self.0.iter().any(|(known, _)| *known == name) {
                self.0.push((name.into(), bounded(&value.into(), MAX_LABEL_BYTES).into()));
            }
        }
        self
    }

    #[must_use]
    pub fn with_text(self, name: &'static str, value: Option<&TargetText>) -> Self {
        match value {
            Some(text) => self.with(name, &bounded(text, MAX_LABEL_BYTES)),
            None => self,
        }
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

/// A target's text without characters that control or hide, and not longer than `limit` bytes.
pub fn bounded(text: &TargetText, limit: usize) -> String {
    let mut shown = TargetText::from(prefix(text.raw(), limit)).to_string();
    shown.truncate(prefix(&shown, limit).len());
    shown
}

fn prefix(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_digit_by_digit() {
        assert_eq!(Figure::from(MicroJoules(12_345_678)).to_string(), "12.345678");
        assert_eq!(Figure::from(MicroJoules(7)).to_string(), "0.000007");
        assert_eq!(Figure::from(MicroJoules(u64::MAX)).to_string(), "18446744073709.551615");
        assert_eq!(Figure::nano(1_000_000_020).to_string(), "1.000000020");
    }

    #[test]
    fn power_is_energy_by_time() {
        assert_eq!(power(MicroJoules(3_000_000), 2_000_000_000).to_string(), "1.500000");
        assert_eq!(power(MicroJoules(3), 0).to_string(), "0.000000");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(bounded(&"é".repeat(100).into(), 7), "ééé");
        assert_eq!(bounded(&"\x1b".repeat(10_000).into(), 10), r"\x1b\x1b\x");
    }
}
