//! Writes an experiment's runs as comma-separated values, a line for each: also those that do not count.

use joular_data::{
    model::units::{MicroJoules, UnixMicros},
    text::{csv, exact_joules, seconds, time},
};

use super::{log::Log, plan::Place, trial::Outcome};

const COLUMNS: [&str; 19] = [
    "variant",
    "repetition",
    "order",
    "started",
    "seconds",
    "joules",
    "watts",
    "cpu_seconds",
    "work",
    "joules_per_work",
    "machine_joules",
    "energy_label",
    "temperature_celsius",
    "frequency_mhz",
    "samples",
    "exit_code",
    "is_kept",
    "why",
    "run_id",
];

/// Why a run counts that ended with an error.
const IGNORED: &str = "failures are ignored";

/// A run, and what became of it.
struct Row<'a> {
    place: Place,
    /// Among the runs that count.
    order: Option<u32>,
    outcome: &'a Outcome,
    why: &'a str,
}

/// All runs in the order of their starts.
pub fn csv(log: &Log) -> String {
    let kept = log.runs.iter().map(|run| Row {
        place: run.place,
        order: Some(run.order),
        outcome: &run.outcome,
        why: if run.outcome.exit_code == 0 { "" } else { IGNORED },
    });
    let left_out =
        log.left_out.iter().map(|run| Row { place: run.place, order: None, outcome: &run.outcome, why: &run.why });
    let mut rows: Vec<Row<'_>> = kept.chain(left_out).collect();
    rows.sort_by_key(|row| row.outcome.started_us);
    let heading = csv::line(COLUMNS.map(String::from));
    rows.iter().fold(heading, |said, row| said + &csv::line(row.cells(log)))
}

impl Row<'_> {
    fn cells(&self, log: &Log) -> [String; COLUMNS.len()] {
        let Outcome { exit_code, run_id, started_us, duration_ns, cpu_ns, energy_uj, machine_uj, .. } = self.outcome;
        let Outcome { samples, work, temperature_celsius, frequency_mhz, label, .. } = self.outcome;
        let variant = log.variants.get(self.place.variant).map_or("", |variant| variant.name.as_str());
        // As people count.
        let counted = |number: u32| (u64::from(number) + 1).to_string();
        #[allow(clippy::cast_precision_loss, reason = "figures for people")]
        let (joules, lasted) = (*energy_uj as f64 / 1e6, seconds(*duration_ns));
        let ratio = |whole: f64, parts: f64| csv::figure(Some(whole / parts).filter(|ratio| ratio.is_finite()));
        [
            csv::name(variant),
            counted(self.place.round),
            self.order.map_or_else(String::new, counted),
            time(UnixMicros(*started_us)),
            csv::figure(Some(lasted)),
            exact_joules(MicroJoules(*energy_uj)),
            ratio(joules, lasted),
            csv::figure(Some(seconds(*cpu_ns))),
            csv::figure(*work),
            work.map_or_else(String::new, |work| ratio(joules, work)),
            exact_joules(MicroJoules(*machine_uj)),
            label.clone().unwrap_or_default(),
            csv::figure(*temperature_celsius),
            csv::figure(*frequency_mhz),
            samples.to_string(),
            exit_code.to_string(),
            self.order.is_some().to_string(),
            self.why.to_owned(),
            csv::name(run_id),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Circumstances,
            log::{LeftOut, RunRecord},
            plan, trial,
        },
        *,
    };

    fn log() -> Log {
        let variants = ["a=true", "b=false"].map(str::to_owned);
        let mut log = Log::new(7, &plan::variants(&[], &variants, &[]).unwrap(), None, Circumstances::default());
        let at = |second: i64| Outcome { started_us: 1_772_409_594_000_000 + second * 1_000_000, ..trial::outcome() };
        let of = |round, variant| Place { round, variant };
        log.left_out.push(LeftOut { place: of(0, 0), why: "warm-up".to_owned(), outcome: at(0) });
        let failed = Outcome { exit_code: 3, ..at(20) };
        log.left_out.push(LeftOut {
            place: of(0, 1),
            why: "ended with exit code 3".to_owned(),
            outcome: failed.clone(),
        });
        let counted = Outcome { work: Some(10.0), temperature_celsius: Some(51.5), ..at(10) };
        log.runs.push(RunRecord { place: of(0, 0), order: 0, outcome: counted });
        log.runs.push(RunRecord { place: of(0, 1), order: 1, outcome: Outcome { started_us: i64::MAX, ..failed } });
        log
    }

    #[test]
    fn every_run_has_a_line_that_says_whether_it_counts_and_why() {
        let text = csv(&log());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], COLUMNS.join(","));
        let expected = [
            "a,1,,2026-03-01T23:59:54Z,2,3.250000,1.625,1.5,,,10.000000,measured,,,100,0,false,warm-up,run",
            "a,1,1,2026-03-02T00:00:04Z,2,3.250000,1.625,1.5,10,0.325,10.000000,measured,51.5,,100,0,true,,run",
            "b,1,,2026-03-02T00:00:14Z,2,3.250000,1.625,1.5,,,10.000000,measured,,,100,3,false,ended with exit code 3,run",
        ];
        assert_eq!(lines[1..4], expected);
        assert!(lines[4].starts_with("b,1,2,") && lines[4].ends_with(",3,true,failures are ignored,run"), "{text}");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn figures_that_a_run_lacks_are_empty_and_names_do_no_harm() {
        let mut log = log();
        log.variants[0].name = "=1+1,\u{1b}".to_owned();
        log.left_out.clear();
        log.runs.truncate(1);
        log.runs[0].outcome = Outcome { duration_ns: 0, label: None, work: None, ..trial::outcome() };
        let text = csv(&log);
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("\"'=1+1,\\x1b\",1,1,2026-03-01T23:59:54Z,0,3.250000,,1.5,,,10.000000,,"), "{line}");
    }
}
