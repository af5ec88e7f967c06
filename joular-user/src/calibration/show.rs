//! Shows what was measured, for people and for programs.

use std::io::{self, Write};

use super::{Calibration, fingerprint::domain_name};

/// A table of everything.
pub fn write_text(out: &mut impl Write, calibration: &Calibration) -> io::Result<()> {
    if let Some(settings) = &calibration.fingerprint.settings {
        writeln!(out, "measured under: {settings}")?;
    }
    if !calibration.baselines.is_empty() {
        let [head, of] = ["idle power", "at rest"];
        writeln!(out, "{head:<38} {:>5} {of:>12} {:>12} {:>12} {:>12}  label", "n", "error", "typical", "spread")?;
    }
    for power in &calibration.baselines {
        let name = domain_name(&power.domain, power.socket, power.core).escape_debug().to_string();
        let (figures, at_rest) = (power.microwatts, power.at_rest);
        let [rest, error, typical, spread] =
            [at_rest.microwatts, at_rest.error_microwatts, figures.typical, figures.spread].map(watts);
        let label = power.label.name();
        writeln!(out, "  {name:<36} {:>5} {rest:>12} {error:>12} {typical:>12} {spread:>12}  {label}", figures.count)?;
    }
    if !calibration.core_powers.is_empty() {
        let head = "one more busy CPU";
        writeln!(out, "{head:<38} {:>5} {:>12} {:>12} {:>12}  frequency", "n", "least", "typical", "spread")?;
    }
    for power in &calibration.core_powers {
        let name = format!("{} (CPUs {})", power.name.escape_debug(), list(&power.cpus));
        let figures = power.microwatts;
        let [least, typical, spread] = [figures.least, figures.typical, figures.spread].map(watts);
        let frequency = format!("{} MHz", power.kilohertz / 1000);
        writeln!(out, "  {name:<36} {:>5} {least:>12} {typical:>12} {spread:>12}  {frequency}", figures.count)?;
    }
    if let Some(smt) = &calibration.smt {
        writeln!(
            out,
            "{:<38} {:>5} {:>12} {:>12} {:>12}",
            "two hyper-threads by one", "n", "least", "typical", "spread"
        )?;
        let (name, figures) = (format!("CPUs {}", list(&smt.cpus)), smt.permille);
        let [least, typical, spread] = [figures.least, figures.typical, figures.spread].map(thousandths);
        writeln!(out, "  {name:<36} {:>5} {least:>12} {typical:>12} {spread:>12}", figures.count)?;
    }
    writeln!(out, "{:<38} {:>5} {:>12} {:>12} {:>12}  runs", "cost of one", "n", "least", "typical", "spread")?;
    for cost in &calibration.costs {
        let figures = cost.nanoseconds;
        let [least, typical, spread] = [figures.least, figures.typical, figures.spread].map(|ns| format!("{ns} ns"));
        let name = cost.category.meaning();
        writeln!(out, "  {name:<36} {:>5} {least:>12} {typical:>12} {spread:>12}  {}", figures.count, cost.runs)?;
    }
    Ok(())
}

/// The calibration as its file has it.
pub fn write_json(out: &mut impl Write, calibration: &Calibration) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, calibration)?;
    writeln!(out)
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn watts(microwatts: u64) -> String {
    format!("{} W", thousandths(microwatts / 1000))
}

fn thousandths(of: u64) -> String {
    format!("{}.{:03}", of / 1000, of % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::{file, fixture};

    #[test]
    fn the_table_has_a_line_for_each_domain_and_category() {
        let mut out = Vec::new();
        write_text(&mut out, &fixture::calibration()).unwrap();
        let expected = "\
measured under: idle states POLL, C1, C6; limits of idle states none; frequency governor powersave; energy preference balance_power; turbo on
idle power                                 n      at rest        error      typical       spread  label
  package of socket 0                     18     20.000 W      0.150 W     20.000 W      0.001 W  measured
  dram of socket 0                        18      2.000 W      0.150 W      2.000 W      0.001 W  measured
two hyper-threads by one                   n        least      typical       spread
  CPUs 2,0,3,1                             8        1.150        1.180        0.040
cost of one                                n        least      typical       spread  runs
  sample of another thread                20       800 ns       890 ns        12 ns  2000
  sample of a target, many frames         20      4000 ns      4090 ns        12 ns  2000
  context switch, very many               20       200 ns       290 ns        12 ns  2000
  reading the clock                       20        30 ns       120 ns        12 ns  2000
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn json_is_what_the_file_has() {
        let mut out = Vec::new();
        write_json(&mut out, &fixture::calibration()).unwrap();
        assert_eq!(file::parse(&String::from_utf8(out).unwrap()).unwrap(), fixture::calibration());
    }
}
