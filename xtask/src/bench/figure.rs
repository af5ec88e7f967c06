//! A measured figure and how it is written down.

use std::fmt;

use joular_tests::statistics::{median, median_interval_95, sorted};

#[derive(Clone)]
pub struct Figure {
    pub name: String,
    pub unit: &'static str,
    /// What we want to reach.
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
        write!(f, "{:<34} {:>16}  (n = {n}, {}; target {})", self.name, self.value(), self.spread(), self.target)
    }
}

/// docs/benchmarks.md.
pub fn document(machine: &[(&str, String)], figures: &[Figure]) -> String {
    let mut text = String::from(
        "# Benchmarks\n\n\
         What profiling costs, at 99 Hz unless said otherwise and windows of one second. Written by `cargo xtask bench`;\n\
         medians, with a 95 % confidence interval by order statistics, or the range of fewer than\n\
         six values. Figures of shared or virtual machines vary: compare ratios, not nanoseconds.\n\n\
         ## Machine\n\n",
    );
    for (name, value) in machine {
        text += &format!("- {name}: {value}\n");
    }
    text += "\n## Figures\n\n| figure | median | spread | n | target |\n|---|---|---|---|---|\n";
    for figure in figures {
        let (n, target) = (figure.values.len(), figure.target);
        text += &format!("| {} | {} | {} | {n} | {target} |\n", figure.name, figure.value(), figure.spread());
    }
    text += "\n## How each was measured\n\n";
    for figure in figures {
        text += &format!("- **{}**: {}\n", figure.name, figure.method);
    }
    text
}
