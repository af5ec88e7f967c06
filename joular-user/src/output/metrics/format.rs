//! Writes OpenMetrics 1.0 text, and turns it into the older Prometheus text format.

use std::{borrow::Cow, fmt::Write as _};

use super::sample::{Families, Figure, Kind, Labels, Unit};

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

fn quoted(value: &str) -> Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n").into()
    } else {
        value.into()
    }
}

/// A text of metrics under way.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    kind: Option<(&'static str, Kind)>,
}

impl Exposition {
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

impl Families for Exposition {
    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        self.kind = Some((name, kind));
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.name());
        if let Some(unit) = Unit::of(name) {
            let _ = writeln!(self.text, "# UNIT {name} {}", unit.name());
        }
        let _ = writeln!(self.text, "# HELP {name} {}", quoted(help));
    }

    fn sample(&mut self, labels: &Labels, figure: Figure) {
        let Some((name, kind)) = self.kind else { return };
        self.text.push_str(name);
        self.text.push_str(kind.suffix());
        let mut before = '{';
        for (name, value) in labels.pairs() {
            // Writing to a String cannot fail.
            let _ = write!(self.text, "{before}{name}=\"{}\"", quoted(value));
            before = ',';
        }
        let close = if before == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{close} {figure}");
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
    fn a_text_of_a_target_cannot_leave_its_label() {
        for (raw, label) in [
            ("java", r#"comm="java""#),
            ("a\"b", r#"comm="a\"b""#),
            ("a\\b", r#"comm="a\\b""#),
            ("a\nb", r#"comm="a\\x0ab""#),
            ("\u{202e}x", r#"comm="\\u{202e}x""#),
            ("", ""),
        ] {
            let mut exposition = Exposition::default();
            exposition.family("a", Kind::Gauge, "");
            exposition.sample(&Labels::default().with_text("comm", Some(&raw.into())), Figure::whole(1));
            let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
            assert!(exposition.finish().contains(&format!("\na{label} 1\n")), "{raw}");
        }
    }

    #[test]
    fn the_older_format_names_families_as_their_samples() {
        let mut exposition = Exposition::default();
        exposition.family("a_joules", Kind::Counter, "Energy");
        exposition.sample(&Labels::default().with("x", "1"), Figure::whole(2));
        exposition.family("b_watts", Kind::Gauge, "Power");
        exposition.sample(&Labels::default(), Figure::whole(3));
        exposition.family("c", Kind::Info, "Facts");
        exposition.sample(&Labels::default().with("y", "z"), Figure::whole(1));
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
