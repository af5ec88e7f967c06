//! Writes OpenMetrics 1.0 text, and turns it into the older Prometheus text format.
//!
//! Figures are integers of a small unit and are written as decimals, digit by digit, so that nothing is
//! rounded on the way.

use std::fmt::{self, Display, Write as _};

use joular_data::model::{target_text::TargetText, units::MicroJoules};

/// Bytes of a label's value before its escapes of the format. What is longer is cut.
pub const MAX_LABEL_BYTES: usize = 128;
/// The same for names of methods, which have their packages in them.
pub const MAX_METHOD_BYTES: usize = 256;

const UNITS: [&str; 4] = ["joules", "seconds", "watts", "bytes"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Info,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }

    /// What samples of the kind have behind the family's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge => "",
            Self::Info => "_info",
        }
    }
}

/// An integer of a unit that is 10^-`DIGITS` of the unit written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<const DIGITS: u32>(u64);

impl<const DIGITS: u32> Decimal<DIGITS> {
    pub const fn new(count: u64) -> Self {
        Self(count)
    }
}

/// Seconds.
pub type Nanoseconds = Decimal<9>;
/// Joules or watts.
pub type Micro = Decimal<6>;

impl<const DIGITS: u32> Display for Decimal<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(DIGITS);
        write!(f, "{}.{:0width$}", self.0 / one, self.0 % one, width = DIGITS as usize)
    }
}

impl From<MicroJoules> for Micro {
    fn from(energy: MicroJoules) -> Self {
        Self(energy.0)
    }
}

/// Mean power in µW; 0 for a window without length.
pub fn power(energy: MicroJoules, length_ns: u64) -> Micro {
    let microwatts = (u128::from(energy.0) * 1_000_000_000).checked_div(length_ns.into()).unwrap_or(0);
    Decimal(u64::try_from(microwatts).unwrap_or(u64::MAX))
}

/// Labels of one series, as they stand between braces.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(String);

impl Labels {
    /// Adds a label. An empty value says the same as no label, so it is left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if value.is_empty() {
            return self;
        }
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{comma}{name}=\"{}\"", quoted(value));
        self
    }

    #[must_use]
    pub fn with_text(self, name: &str, value: Option<&TargetText>) -> Self {
        match value {
            Some(text) => self.with(name, &bounded(text, MAX_LABEL_BYTES)),
            None => self,
        }
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

fn quoted(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// A text of metrics under way.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    kind: Option<(&'static str, Kind)>,
}

impl Exposition {
    /// Begins a metric family; samples belong to the last one begun.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.kind = Some((name, kind));
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.name());
        if let Some(unit) = name.rsplit('_').next().filter(|unit| UNITS.contains(unit)) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", quoted(help));
    }

    pub fn sample(&mut self, labels: &Labels, value: impl Display) {
        let Some((name, kind)) = self.kind else { return };
        let (open, close) = if labels.0.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(self.text, "{name}{}{open}{}{close} {value}", kind.suffix(), labels.0);
    }

    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// OpenMetrics text in the Prometheus text format 0.0.4: there a family of counters is called as its
/// samples are, and units and infos are not known.
pub fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    // The family whose samples have another name, and that name's end.
    let mut family = ("", "");
    for line in open_metrics.lines() {
        let Some(meta) = line.strip_prefix("# ") else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let mut words = meta.splitn(3, ' ');
        let (Some(key), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else { continue };
        if key == "UNIT" {
            continue;
        }
        let kind = [Kind::Counter, Kind::Info].into_iter().find(|kind| key == "TYPE" && rest == kind.name());
        if key == "TYPE" {
            family = (name, kind.map_or("", Kind::suffix));
        }
        let suffix = if family.0 == name { family.1 } else { "" };
        let rest = if kind == Some(Kind::Info) { Kind::Gauge.name() } else { rest };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {key} {name}{suffix} {rest}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_digit_by_digit() {
        assert_eq!(Micro::from(MicroJoules(12_345_678)).to_string(), "12.345678");
        assert_eq!(Micro::from(MicroJoules(7)).to_string(), "0.000007");
        assert_eq!(Micro::from(MicroJoules(u64::MAX)).to_string(), "18446744073709.551615");
        assert_eq!(Decimal::<9>(1_000_000_020).to_string(), "1.000000020");
    }

    #[test]
    fn power_is_energy_by_time() {
        assert_eq!(power(MicroJoules(3_000_000), 2_000_000_000).to_string(), "1.500000");
        assert_eq!(power(MicroJoules(3), 0).to_string(), "0.000000");
    }

    #[test]
    fn a_text_of_a_target_cannot_leave_its_label() {
        for (raw, label) in [
            ("java", r#"comm="java""#),
            ("a\"b", r#"comm="a\"b""#),
            ("a\\b", r#"comm="a\\b""#),
            ("a\nb", r#"comm="a\\x0ab""#),
            ("\u{202e}x", r#"comm="\\u{202e}x""#),
            ("", ""),
        ] {
            assert_eq!(Labels::default().with_text("comm", Some(&raw.into())).0, label);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(bounded(&"é".repeat(100).into(), 7), "ééé");
        assert_eq!(bounded(&"\x1b".repeat(10_000).into(), 10), r"\x1b\x1b\x");
    }

    #[test]
    fn the_older_format_names_families_as_their_samples() {
        let mut exposition = Exposition::default();
        exposition.family("a_joules", Kind::Counter, "Energy");
        exposition.sample(&Labels::default().with("x", "1"), 2);
        exposition.family("b_watts", Kind::Gauge, "Power");
        exposition.sample(&Labels::default(), 3);
        exposition.family("c", Kind::Info, "Facts");
        exposition.sample(&Labels::default().with("y", "z"), 1);
        let text = exposition.finish();
        assert_eq!(
            text,
            "# TYPE a_joules counter\n# UNIT a_joules joules\n# HELP a_joules Energy\na_joules_total{x=\"1\"} 2\n\
             # TYPE b_watts gauge\n# UNIT b_watts watts\n# HELP b_watts Power\nb_watts 3\n\
             # TYPE c info\n# HELP c Facts\nc_info{y=\"z\"} 1\n# EOF\n"
        );
        assert_eq!(
            prometheus_text(&text),
            "# TYPE a_joules_total counter\n# HELP a_joules_total Energy\na_joules_total{x=\"1\"} 2\n\
             # TYPE b_watts gauge\n# HELP b_watts Power\nb_watts 3\n\
             # TYPE c_info gauge\n# HELP c_info Facts\nc_info{y=\"z\"} 1\n"
        );
    }
}
