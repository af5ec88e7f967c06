//! Writes a comparison as JUnit XML, which CI systems show as a list of tests.
//!
//! A test suite has a test case for the total, for each phase, and for each row that is shown and was
//! tested. Those that `--fail-on` looks at can fail; the others are there to be seen. The structure is
//! what Ant's JUnit task began and Jenkins, GitLab and GitHub's tools read: suites, cases, properties,
//! `failure` and `skipped`.

use std::fmt::Write as _;

use super::percents;
use crate::{
    model::target_text::TargetText,
    report::diff::{Choices, Compared, Comparison, FailOn, Measure, Side, Verdict},
    text::{escape, seconds},
};

/// Names are cut to so many characters: a list of tests shows less.
const LONGEST_NAME: usize = 500;

/// A test case, before it is written.
struct Case<'a> {
    class: &'static str,
    name: String,
    unit: String,
    row: &'a Compared,
    fails_on: FailOn,
    /// Time that a run of B took, s.
    seconds: f64,
}

pub fn text(comparison: &Comparison, choices: &Choices) -> String {
    let cases = cases(comparison, choices);
    let failed = cases.iter().filter(|case| case.is_failed(comparison, choices)).count();
    let skipped = cases.iter().filter(|case| case.skipped(comparison).is_some()).count();
    let tests = cases.len();
    let time = seconds(comparison.b.overview.duration_ns);
    let mut said = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        said,
        "<testsuites name=\"joular-bpf\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" time=\"{time:.3}\">"
    );
    let _ = writeln!(
        said,
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" \
         time=\"{time:.3}\">",
        choices.measure.name()
    );
    said.push_str(&properties("    ", &of_suite(comparison, choices)));
    for case in &cases {
        case.write(comparison, choices, &mut said);
    }
    let remarks: Vec<String> = comparison.warnings.iter().chain(&comparison.notices).map(|line| xml(line)).collect();
    if !remarks.is_empty() {
        let _ = writeln!(said, "    <system-out>{}</system-out>", remarks.join("\n"));
    }
    said.push_str("  </testsuite>\n</testsuites>\n");
    said
}

fn cases<'a>(comparison: &'a Comparison, choices: &Choices) -> Vec<Case<'a>> {
    let unit = choices.unit();
    #[allow(clippy::cast_precision_loss, reason = "a number of runs")]
    let runs = comparison.b.runs_with_windows().max(1) as f64;
    let time: u64 = comparison.b.windows.iter().map(|window| window.length_ns).sum();
    let mut cases = vec![Case {
        class: "joular-bpf.total",
        name: "total".to_owned(),
        unit: unit.clone(),
        row: &comparison.total,
        fails_on: FailOn::Total,
        seconds: seconds(time) / runs,
    }];
    cases.extend(comparison.shown_phases(choices).iter().map(|row| Case {
        class: "joular-bpf.phase",
        name: name(&row.key.name),
        unit: choices.unit_of_phases(),
        row,
        fails_on: FailOn::Phase,
        seconds: 0.0,
    }));
    // What exceeds the gate is never left out.
    let shown = comparison.shown(choices).len();
    let rows = comparison.rows.iter().zip(comparison.names()).enumerate();
    let rows = rows.filter(|(place, (row, _))| row.change.p.is_some() && (*place < shown || row.exceeds));
    cases.extend(rows.map(|(_, (row, shown))| Case {
        class: "joular-bpf.row",
        name: name(&shown),
        unit: unit.clone(),
        row,
        fails_on: FailOn::Row,
        seconds: 0.0,
    }));
    cases
}

impl Case<'_> {
    fn is_failed(&self, comparison: &Comparison, choices: &Choices) -> bool {
        let is_judged = choices.fail_above.is_some() && choices.fail_on == self.fails_on;
        is_judged && self.row.exceeds && self.skipped(comparison).is_none()
    }

    /// Why nothing can be said of it.
    fn skipped(&self, comparison: &Comparison) -> Option<&'static str> {
        if !comparison.are_comparable {
            return Some("A and B were made differently");
        }
        (self.row.change.verdict == Verdict::NotEnoughRuns).then_some("not enough runs")
    }

    fn write(&self, comparison: &Comparison, choices: &Choices, said: &mut String) {
        let change = &self.row.change;
        let _ = writeln!(
            said,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">",
            self.class,
            xml(&self.name),
            self.seconds
        );
        let unit = self.unit.as_str();
        let amounts = match choices.measure {
            Measure::Energy => [("a_joules", self.row.a.energy.joules()), ("b_joules", self.row.b.energy.joules())]
                .map(|(name, joules)| (name, joules.to_string())),
            _ => [("a_amount", self.row.a.energy.0), ("b_amount", self.row.b.energy.0)]
                .map(|(name, amount)| (name, amount.to_string())),
        };
        let [of_a, of_b] = amounts;
        let facts = [
            ("unit", unit.to_owned()),
            ("a", change.a.to_string()),
            ("b", change.b.to_string()),
            of_a,
            of_b,
            ("percent", change.ratio().map_or_else(String::new, |ratio| (ratio * 100.0).to_string())),
            ("percent_interval", change.relative.map_or_else(String::new, |interval| percents(Some(interval)))),
            ("verdict", change.verdict.name().to_owned()),
        ];
        said.push_str(&properties("      ", &facts));
        if let Some(reason) = self.skipped(comparison) {
            let _ = writeln!(said, "      <skipped message=\"{reason}\"/>");
        } else if self.is_failed(comparison, choices) {
            let percent = change.ratio().map_or_else(|| "new".to_owned(), |ratio| format!("{:+.1} %", ratio * 100.0));
            let allowed = choices.fail_above.unwrap_or_default() * 100.0;
            let _ = writeln!(
                said,
                "      <failure type=\"{}\" message=\"{percent}, certainly more than {allowed} % above A{}\">\
                 A {} {unit}, B {} {unit}, 95 % interval of the change {} %</failure>",
                choices.measure.name(),
                comparison.sessions.reservation(),
                change.a,
                change.b,
                percents(change.relative)
            );
        }
        said.push_str("    </testcase>\n");
    }
}

fn of_suite(comparison: &Comparison, choices: &Choices) -> Vec<(&'static str, String)> {
    let data = |side: &Side| side.data.display().to_string();
    vec![
        ("a", data(&comparison.a)),
        ("b", data(&comparison.b)),
        ("by", choices.row().to_owned()),
        ("fail_above_percent", choices.fail_above.map_or_else(String::new, |above| (above * 100.0).to_string())),
        ("energy_of_a", comparison.a.overview.label.map_or("none", |label| label.name()).to_owned()),
        ("energy_of_b", comparison.b.overview.label.map_or("none", |label| label.name()).to_owned()),
        ("sessions_of_a", comparison.a.sessions_with_windows().to_string()),
        ("runs_of_a", comparison.a.runs_with_windows().to_string()),
        ("runs_of_b", comparison.b.runs_with_windows().to_string()),
    ]
}

fn properties(indent: &str, facts: &[(&str, String)]) -> String {
    let mut said = format!("{indent}<properties>\n");
    for (name, value) in facts {
        let _ = writeln!(said, "{indent}  <property name=\"{name}\" value=\"{}\"/>", xml(value));
    }
    let _ = writeln!(said, "{indent}</properties>");
    said
}

fn name(text: &TargetText) -> String {
    text.to_string().chars().take(LONGEST_NAME).collect()
}

/// Text within an element or a quoted attribute. Characters that control or reorder are spelled out, so that
/// none is left that XML 1.0 forbids; two more that it forbids are replaced.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in escape(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            '\0'..'\x20' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
