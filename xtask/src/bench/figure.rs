//! Defines a measured figure and how it is written down.

use std::fmt;

use joular_tests::statistics::{median, median_interval_95, sorted};

#[derive(Clone)]
pub struct Figure {
    pub name: String,
    pub unit: &'static str,
    /// `≤ 8 µs`, `≥ 99.5 %` or `none`.
    pub target: &'static str,
    /// How it was measured, in a sentence.
    pub method: String,
    pub values: Vec<f64>,
    /// Digits behind the point.
    pub digits: usize,
}

impl Figure {
    fn value(&self) -> String {
        format!("{:.*} {}", self.digits, median(&self.values), self.unit)
    }

    /// Whether the median, as it is written, meets the target.
    fn result(&self) -> &'static str {
        let mut words = self.target.split_whitespace();
        let (relation, bound) = (words.next(), words.next().and_then(|word| word.parse::<f64>().ok()));
        let Ok(median) = format!("{:.*}", self.digits, median(&self.values)).parse::<f64>() else { return "not known" };
        match (relation, bound) {
            (Some("≤"), Some(most)) if median <= most => "met",
            (Some("≥"), Some(least)) if median >= least => "met",
            (Some("≤" | "≥"), Some(_)) => "missed",
            _ => "–",
        }
    }

    /// The median's confidence interval; the range where there are too few values for one.
    fn spread(&self) -> String {
        let sorted = sorted(&self.values);
        let (name, low, high) = match (median_interval_95(&self.values), sorted.as_slice()) {
            (Some((low, high)), _) => ("95 %", low, high),
            (None, [first, .., last]) => ("range", *first, *last),
            (None, _) => return "one value".to_owned(),
        };
        format!("{name}: {low:.*} … {high:.*}", self.digits, self.digits)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.values.len();
        write!(
            f,
            "{:<34} {:>16}  (n = {n}, {}; target {}: {})",
            self.name,
            self.value(),
            self.spread(),
            self.target,
            self.result()
        )
    }
}

/// docs/measured/costs.md.
pub fn document(machine: &[(&str, String)], figures: &[Figure]) -> String {
    let mut text = String::from(
        "# What profiling costs\n\n\
         `cargo xtask bench` writes this page. Figures are at 99 Hz and with windows of one second unless said\n\
         otherwise. Each is a median with its 95 % confidence interval by order statistics. With fewer than six values\n\
         it has their range instead. A target is met if the median meets it. Figures of shared or virtual machines\n\
         vary: compare ratios, not nanoseconds.\n\n\
         ## Machine\n\n",
    );
    for (name, value) in machine {
        text += &format!("- {name}: {value}\n");
    }
    text += "\n## Figures\n\n| figure | median | spread | n | target | result |\n|---|---|---|---|---|---|\n";
    for figure in figures {
        let (n, target, result) = (figure.values.len(), figure.target, figure.result());
        text +=
            &format!("| {} | {} | {} | {n} | {target} | {result} |\n", figure.name, figure.value(), figure.spread());
    }
    text += "\n## How each was measured\n\n";
    for alike in figures.chunk_by(|a, b| a.method == b.method) {
        let names: Vec<String> = alike.iter().map(|figure| format!("**{}**", figure.name)).collect();
        text += &format!("- {}: {}\n", names.join(", "), alike[0].method);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(median: f64, digits: usize, target: &'static str, expected: &str) {
        let name = "figure".to_owned();
        let figure = Figure { name, unit: "s", target, method: "stopwatch".to_owned(), values: vec![median], digits };
        assert_eq!(figure.result(), expected, "{median} against {target}");
        let row = format!(" | {target} | {expected} |\n");
        let document = document(&[], &[figure]);
        assert!(document.contains(&row), "{document}");
    }

    #[test]
    fn each_line_with_a_target_says_met_or_missed() {
        check(0.3, 1, "≤ 0.5 %", "met");
        check(0.5, 1, "≤ 0.5 %", "met");
        check(0.6, 1, "≤ 0.5 %", "missed");
        check(99.5, 1, "≥ 99.5 %", "met");
        check(99.4, 1, "≥ 99.5 %", "missed");
        check(7.0, 1, "none", "–");
    }

    #[test]
    fn the_figure_that_is_shown_decides() {
        check(0.501, 2, "≤ 0.5 s", "met");
        check(0.506, 2, "≤ 0.5 s", "missed");
    }
}
