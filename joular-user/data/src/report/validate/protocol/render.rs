//! Writes what a recording of the protocol shows, as Markdown or as one JSON object.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde::Serialize;

use super::{
    ByMeter, Interval, Mean, Program, Protocol, Step,
    pairs::{Alone, Pair},
    power::StepPower,
    seconds,
};
use crate::{
    model::{domain::Label, target_text::TargetText},
    report::validate::{
        fit::LEAST_INDEPENDENT,
        phases::{Gains, HeldOut, PhaseGain},
    },
    text::{
        self, escape, harmless_json,
        table::{Column, Table},
    },
};

#[derive(Serialize)]
struct Whole<'a> {
    host: &'a TargetText,
    cpu_model: &'a str,
    cpus: u32,
    kernel: &'a str,
    version: &'a str,
    run_id: &'a str,
    is_simulated: bool,
    energy_source: &'a str,
    domains: Vec<&'a str>,
    label: Option<&'static str>,
    weights: String,
    rounds: usize,
    step_s: f64,
    celsius_range: Option<(f64, f64)>,
    steps: &'a [StepPower],
    pairs: &'a [Pair],
    meter: Option<JsonMeter>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct JsonMeter {
    readings: usize,
    period_s: f64,
    class_percent: Option<f64>,
    clock_shift_s: f64,
    clock_shift_found: bool,
    offset_w: Interval,
    gain: Interval,
    gain_by_program: Vec<JsonGain>,
    gains_differ: Option<bool>,
    held_out: Option<HeldOut>,
    residual_w: f64,
}

#[derive(Serialize)]
struct JsonGain {
    program: Program,
    spans: usize,
    gain: Interval,
}

impl Protocol {
    /// Writes it as Markdown, or as JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, is_json: bool, out: &mut impl Write) -> io::Result<()> {
        if !is_json {
            return out.write_all(self.markdown().as_bytes());
        }
        let json = serde_json::to_string_pretty(&self.whole()).map_err(io::Error::from)?;
        writeln!(out, "{}", harmless_json(&json))
    }

    fn whole(&self) -> Whole<'_> {
        let info = &self.info;
        Whole {
            host: &info.host,
            cpu_model: &info.cpu_model,
            cpus: info.online_cpus,
            kernel: &info.kernel,
            version: &info.version,
            run_id: &info.run_id,
            is_simulated: self.is_simulated(),
            energy_source: &info.energy_source,
            domains: self.domains.iter().map(|(domain, _)| domain.as_str()).collect(),
            label: self.label.map(|label| label.name()),
            weights: info.policy.weights(),
            rounds: self.rounds,
            step_s: self.step_s,
            celsius_range: self.celsius,
            steps: &self.steps,
            pairs: &self.pairs,
            meter: self.by_meter.as_ref().map(json_meter),
            warnings: self.warnings(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.label == Some(Label::Modelled) {
            warnings.push(
                "The energy is modelled from CPU time: steps of equal CPU time have equal power, whatever they do."
                    .to_owned(),
            );
        }
        if self.missing > 0 {
            warnings.push(format!(
                "In {} of {} steps nothing could be compared: means of these are of fewer rounds, or are left out.",
                self.missing,
                Step::all().len() * self.rounds
            ));
        }
        let Some(by) = &self.by_meter else { return warnings };
        if !by.alignment.is_found {
            warnings.push(
                "No clock difference was found, as the two powers do not go together: none was assumed.".to_owned(),
            );
        }
        if by.class.is_none() {
            warnings.push("The meter's class is not given (`--meter-class`): its error is in no interval.".to_owned());
        }
        if by.fit.independent < LEAST_INDEPENDENT {
            warnings.push(
                "Neighbouring spans are alike: intervals of offset and gain may be too narrow. Record more rounds."
                    .to_owned(),
            );
        }
        warnings
    }

    // Writing to a String cannot fail.
    fn markdown(&self) -> String {
        let mut said = "# Validation of joular-bpf\n\n".to_owned();
        if self.is_simulated() {
            said += "**The machine and the meter are simulated. Nothing here was measured.**\n\n";
        }
        said += &self.circumstances();
        for warning in self.warnings() {
            let _ = writeln!(said, "\n**Warning:** {warning}");
        }
        let _ = writeln!(
            said,
            "\nFigures are means of {} rounds, ± half of their 95 % interval (Student's t).\n\n## Power of each step\n\n{}",
            self.rounds,
            self.power()
        );
        if let Some(by) = &self.by_meter {
            let _ = writeln!(said, "## The meter by joular-bpf\n\n{}", by.markdown());
        }
        let _ = writeln!(said, "## Two programs side by side\n\n{}", self.division());
        said + LIMITS
    }

    fn circumstances(&self) -> String {
        let info = &self.info;
        let domains: Vec<String> = self.domains.iter().map(|(domain, source)| format!("{domain} ({source})")).collect();
        let label = self.label.map_or("no label", |label| label.name());
        let mut rows = vec![
            ("machine", format!("{}: {}, {} CPUs, Linux {}", info.host, info.cpu_model, info.online_cpus, info.kernel)),
            ("recorded", format!("{}, by joular-bpf {}, run {}", text::time(info.started), info.version, info.run_id)),
            ("energy", format!("{}; {label}; divided by {}", domains.join(" + "), info.policy.weights())),
            (
                "protocol",
                format!(
                    "{} rounds of {} steps of {:.0} s, in a random order",
                    self.rounds,
                    self.steps.len(),
                    self.step_s
                ),
            ),
        ];
        rows.push((
            "temperature",
            self.celsius.map_or_else(|| "no sensor".to_owned(), |(least, most)| format!("{least:.1} to {most:.1} °C")),
        ));
        rows.push(("meter", self.by_meter.as_ref().map_or_else(|| "none".to_owned(), ByMeter::circumstances)));
        let lines = rows
            .iter()
            .map(|(name, what)| format!("| {name} | {} |\n", escape(what).replace('|', "\\|").replace('<', "&lt;")));
        format!("| | |\n|---|---|\n{}", lines.collect::<String>())
    }

    fn power(&self) -> String {
        let figures = |heading: &str, of: &dyn Fn(&StepPower) -> Option<Mean>| {
            Column::figures(heading, &self.steps, |step| of(step).map_or_else(|| "–".to_owned(), |mean| watts(&mean)))
        };
        let mut columns = vec![figures("joular-bpf, W", &|step| Some(step.recorded))];
        if self.by_meter.is_some() {
            columns.push(figures("meter, W", &|step| step.meter));
            columns.push(figures("meter beyond one line, W", &|step| step.beyond_line));
        }
        let names = self.steps.iter().map(|step| step.step.name().as_str().into()).collect();
        Table { columns, heading: "step".to_owned(), names }.markdown(true)
    }

    fn division(&self) -> String {
        let rows: Vec<(&Pair, &Alone)> =
            self.pairs.iter().flat_map(|pair| pair.alone.iter().map(move |alone| (pair, alone))).collect();
        if rows.is_empty() {
            return "No pair has all that it needs: its steps, both programs alone, and the idle machine.\n".to_owned();
        }
        let column = |heading: &str, of: &dyn Fn(&Pair, &Alone) -> String| {
            Column::figures(heading, &rows, |(pair, alone)| of(pair, alone))
        };
        let columns = vec![
            column("by", &|_, alone| alone.by.name().to_owned()),
            column("alone, W", &|_, alone| format!("{} and {}", watts(&alone.watts[0]), watts(&alone.watts[1]))),
            column("first one's part, %", &|_, alone| percent(&alone.share)),
            column("it was given, %", &|pair, _| percent(&pair.given)),
            column("error, points", &|_, alone| percent(&alone.error)),
            column("together, % of both alone", &|_, alone| percent(&alone.together)),
        ];
        let name = |(pair, _): &(&Pair, &Alone)| format!("{} + {}", pair.programs.0.name(), pair.programs.1.name());
        let names = rows.iter().map(|row| name(row).as_str().into()).collect();
        Table { columns, heading: "programs".to_owned(), names }.markdown(true)
    }
}

const LIMITS: &str = "\
What a program draws beside another one cannot be measured, so the part that it should have been given is what it draws
alone, beyond the idle machine. Where *together* is far from 100 %, programs get into each other's way (frequency,
hyper-threads, caches), and no division can be right about both alone and together.

This report holds for this machine, these programs and this meter. Programs of yours draw what they draw.
";

fn watts(mean: &Mean) -> String {
    format!("{:.2} ± {:.2}", mean.value, mean.within)
}

fn percent(mean: &Mean) -> String {
    format!("{:.1} ± {:.1}", 100.0 * mean.value, 100.0 * mean.within)
}

fn interval(figure: Interval) -> String {
    format!("{:.3} ({:.3} to {:.3})", figure.value, figure.low, figure.high)
}

impl ByMeter {
    fn circumstances(&self) -> String {
        let class = self.class.map_or_else(|| "class not given".to_owned(), |percent| format!("class {percent} %"));
        let shift = seconds(self.alignment.shift_us);
        format!(
            "{} readings, one in {:.2} s; {class}; its clock and its lag together {shift:+.2} s",
            self.readings,
            seconds(self.period_us)
        )
    }

    fn gains(&self) -> impl Iterator<Item = (Program, &PhaseGain)> {
        let gains = self.gains.iter().flat_map(|gains| &gains.phases);
        gains.filter_map(|of| Some((*Program::ALL.get(of.phase)?, of)))
    }

    fn markdown(&self) -> String {
        let mut said = format!(
            "`meter = offset + gain × joular-bpf` with offset {} W and gain {} leaves {:.2} W (standard deviation).\n",
            interval(self.fit.offset),
            interval(self.fit.gain),
            self.fit.residual
        );
        if let Some(HeldOut { rmse_w, predicted, by_load_w: [low, middle, high], .. }) = self.held_out {
            let _ = writeln!(
                said,
                "Each round by a fit of the others: {rmse_w:.2} W off (RMSE), {:.1} % of the meter's variation predicted; on \
                 average {low:+.2}, {middle:+.2} and {high:+.2} W at low, middle and high power.",
                100.0 * predicted
            );
        }
        let Some(gains) = &self.gains else { return said };
        let rows: Vec<(Program, &PhaseGain)> = self.gains().collect();
        let columns = vec![
            Column::figures("gain", &rows, |(_, of)| interval(of.gain)),
            Column::figures("spans", &rows, |(_, of)| of.spans.to_string()),
        ];
        let names = rows.iter().map(|(program, _)| program.name().into()).collect();
        let table = Table { columns, heading: "program".to_owned(), names };
        let verdict = match gains.are_unequal() {
            true => "The gains differ: one gain for all loads is wrong for each.",
            false => "The gains may be equal: chance alone may make them as different.",
        };
        let _ = write!(said, "\n{}\n{verdict}\n", table.markdown(true));
        said
    }
}

fn json_meter(by: &ByMeter) -> JsonMeter {
    let gain = |(program, of): (Program, &PhaseGain)| JsonGain { program, spans: of.spans, gain: of.gain };
    JsonMeter {
        readings: by.readings,
        period_s: seconds(by.period_us),
        class_percent: by.class,
        clock_shift_s: seconds(by.alignment.shift_us),
        clock_shift_found: by.alignment.is_found,
        offset_w: by.fit.offset,
        gain: by.fit.gain,
        gain_by_program: by.gains().map(gain).collect(),
        gains_differ: by.gains.as_ref().map(Gains::are_unequal),
        held_out: by.held_out,
        residual_w: by.fit.residual,
    }
}
