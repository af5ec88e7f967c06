//! Writes a comparison with a wattmeter as text or as one JSON object.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde::Serialize;

use super::{
    BoardFit, Validation,
    fit::Interval,
    phases::{Gains, HeldOut},
};
use crate::{
    model::target_text::TargetText,
    text::{escape, harmless_json},
};

#[derive(Serialize)]
struct Whole<'a> {
    host: &'a TargetText,
    runs: usize,
    domains: Vec<Summed<'a>>,
    domains_left_out: &'a [String],
    label: Option<&'static str>,
    meter_readings: usize,
    meter_period_s: f64,
    windows: u64,
    windows_used: u64,
    spans: usize,
    span_s: f64,
    /// Meter's clock − the machine's.
    clock_shift_s: f64,
    clock_shift_found: bool,
    correlation: f64,
    offset_w: Interval,
    gain: Interval,
    /// Gains of phases, and whether they are equal; empty and `null` if there are not two phases.
    gain_by_phase: Vec<OfPhase<'a>>,
    gains_differ: Option<bool>,
    /// Phases whose gains are not compared: they have fewer than 12 spans, or there are more than 12 phases.
    phases_left_out: Option<usize>,
    /// Percent of its reading, as its maker states it.
    meter_class_percent: Option<f64>,
    /// Each fifth of the run predicted by the others.
    held_out: Option<HeldOut>,
    rmse_w: Interval,
    mean_error_w: Interval,
    residual_w: f64,
    /// With `--board-model` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    board_model: Option<BoardFit>,
    verdict: String,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct OfPhase<'a> {
    /// Empty for windows in no phase.
    phase: &'a TargetText,
    spans: usize,
    gain: Interval,
}

#[derive(Serialize)]
struct Summed<'a> {
    domain: &'a str,
    source: &'a str,
}

#[allow(clippy::cast_precision_loss, reason = "times for people")]
fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

impl Validation {
    /// Writes it as text, or as JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, is_json: bool, out: &mut impl Write) -> io::Result<()> {
        if !is_json {
            return out.write_all(self.text().as_bytes());
        }
        let json = serde_json::to_string_pretty(&self.whole()).map_err(io::Error::from)?;
        writeln!(out, "{}", harmless_json(&json))
    }

    fn whole(&self) -> Whole<'_> {
        Whole {
            host: &self.host,
            runs: self.runs,
            domains: self.domains.iter().map(|(domain, source)| Summed { domain, source }).collect(),
            domains_left_out: &self.left_out,
            label: self.label.map(|label| label.name()),
            meter_readings: self.readings,
            meter_period_s: seconds(self.period_us),
            windows: self.windows,
            windows_used: self.windows_used,
            spans: self.spans,
            span_s: seconds(self.span_us),
            clock_shift_s: seconds(self.alignment.shift_us),
            clock_shift_found: self.alignment.is_found,
            correlation: self.alignment.correlation,
            offset_w: self.fit.offset,
            gain: self.fit.gain,
            gain_by_phase: self.of_phases().collect(),
            gains_differ: self.gains.as_ref().map(Gains::are_unequal),
            phases_left_out: self.gains.as_ref().map(|gains| gains.left_out),
            meter_class_percent: self.meter_class,
            held_out: self.held_out,
            rmse_w: self.fit.rmse,
            mean_error_w: self.fit.mean_error,
            residual_w: self.fit.residual,
            board_model: self.board,
            verdict: self.verdict(),
            warnings: self.warnings(),
        }
    }

    // Writing to a String cannot fail.
    fn text(&self) -> String {
        let mut said = String::new();
        let domains: Vec<String> =
            self.domains.iter().map(|(domain, source)| escape(&format!("{domain} ({source})"))).collect();
        let label = self.label.map_or("", |label| label.name());
        let _ =
            writeln!(said, "joular-bpf  {}, {label}; host {}, {} run(s)", domains.join(" + "), self.host, self.runs);
        if !self.left_out.is_empty() {
            let _ = writeln!(said, "            without {}", escape(&self.left_out.join(", ")));
        }
        let class = match self.meter_class {
            Some(percent) => format!("; class {percent} %: every figure may be off by that beside its interval"),
            None => "; its class is not given (--meter-class): its error is in no interval".to_owned(),
        };
        let blank = if self.blank > 0 { format!(", {} without a power", self.blank) } else { String::new() };
        let _ = writeln!(
            said,
            "meter       {} readings, one in {:.2} s{blank}{class}",
            self.readings,
            seconds(self.period_us)
        );
        let _ = writeln!(said, "clocks      {}", self.clocks());
        let _ = writeln!(
            said,
            "compared    {} of {} windows, in {} spans of {:.2} s",
            self.windows_used,
            self.windows,
            self.spans,
            seconds(self.span_us)
        );
        for warning in self.warnings() {
            let _ = writeln!(said, "warning: {warning}");
        }
        let _ = writeln!(said, "\nmeter = offset + gain × joular-bpf      95 % interval");
        let fit = &self.fit;
        for (name, figure, unit, places) in [("offset", fit.offset, "W", 2), ("gain", fit.gain, "", 4)] {
            let _ = writeln!(said, "{}", line(name, figure, unit, places));
        }
        let _ = writeln!(
            said,
            "  {:<12} {:>10.2} W    standard deviation of what the fit leaves",
            "residual", fit.residual
        );
        self.write_phases(&mut said);
        if let Some(HeldOut { is_of_runs, rmse_w, predicted, by_load_w: [low, middle, high] }) = self.held_out {
            let part = if is_of_runs { "run" } else { "fifth of the run" };
            let _ = writeln!(said, "each {part} by a fit of the others");
            let _ = writeln!(
                said,
                "  {:<12} {rmse_w:>10.2} W    {:.1} % of the meter's variation is predicted",
                "RMSE",
                100.0 * predicted
            );
            let _ = writeln!(
                said,
                "  {:<12} {low:>10.2} {middle:.2} {high:.2} W    mean of meter − fit at low, middle and high power",
                "by load"
            );
        }
        let _ = writeln!(said, "joular-bpf − meter, without the fit");
        let _ = writeln!(said, "{}", line("mean error", fit.mean_error, "W", 2));
        let _ = writeln!(said, "{}", line("RMSE", fit.rmse, "W", 2));
        if let Some(board) = &self.board {
            write_board(board, &mut said);
        }
        let _ = writeln!(said, "\n{}", self.verdict());
        said
    }

    fn of_phases(&self) -> impl Iterator<Item = OfPhase<'_>> {
        let gains = self.gains.iter().flat_map(|gains| &gains.phases);
        gains.filter_map(|of| Some(OfPhase { phase: self.phases.get(of.phase)?, spans: of.spans, gain: of.gain }))
    }

    fn write_phases(&self, said: &mut String) {
        let Some(gains) = &self.gains else { return };
        let _ = writeln!(said, "gain by phase");
        for OfPhase { phase, spans, gain } in self.of_phases() {
            let name = if phase.raw().is_empty() { "(no phase)".to_owned() } else { phase.to_string() };
            let _ = writeln!(said, "{}   {spans} spans", line(&name, gain, "", 4));
        }
        if gains.left_out > 0 {
            let _ =
                writeln!(said, "  {} phases left out: fewer than 12 spans, or beyond the 12 longest", gains.left_out);
        }
        let _ = if gains.are_unequal() {
            writeln!(
                said,
                "  they differ: chance alone does so in less than {:.2} % of runs",
                100.0 * gains.chance.max(0.0001)
            )
        } else {
            writeln!(
                said,
                "  they may be equal: chance alone makes them as different in {:.0} % of runs",
                100.0 * gains.chance
            )
        };
    }

    fn clocks(&self) -> String {
        let shift = seconds(self.alignment.shift_us);
        let correlation = self.alignment.correlation;
        if !self.alignment.is_found {
            return format!("taken to agree (correlation {correlation:.3})");
        }
        let way = if shift < 0.0 { "behind" } else { "ahead" };
        format!("the meter's is {:.2} s {way}, by the best correlation ({correlation:.3})", shift.abs())
    }
}

fn write_board(board: &BoardFit, said: &mut String) {
    let _ = writeln!(said, "meter = idle + more × use of all CPUs");
    for (name, figure) in [("idle", board.idle_w), ("more", board.more_w)] {
        let _ = writeln!(said, "{}", line(name, figure, "W", 3));
    }
    let _ = writeln!(
        said,
        "  {:<12} {:>10.3} W    of {} windows with use of {:.0} to {:.0} %",
        "residual",
        board.residual_w,
        board.windows,
        100.0 * board.least_use,
        100.0 * board.most_use
    );
}

fn line(name: &str, figure: Interval, unit: &str, places: usize) -> String {
    let Interval { value, low, high } = figure;
    format!("  {name:<12} {value:>10.places$} {unit:<2}   {low:.places$} to {high:.places$}")
}
