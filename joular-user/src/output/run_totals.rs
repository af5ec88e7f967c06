//! Sums what one run of an experiment used, for whoever compares runs.

use std::{cell::RefCell, rc::Rc};

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::MicroJoules,
    output::{Output, Result},
    stacks::StackTable,
    totals::RunSums,
};

/// What a run used.
#[derive(Clone, Debug, Default)]
pub struct RunTotals {
    pub run_id: String,
    pub started_us: i64,
    pub sums: RunSums,
    /// Mean of the windows' frequencies of busy CPUs, MHz, by their lengths.
    frequency: Mean,
    /// Mean of the temperatures at windows' ends, degrees Celsius.
    temperature: Mean,
}

impl RunTotals {
    /// Energy of the command's threads.
    pub const fn command(&self) -> MicroJoules {
        self.sums.attributed
    }

    pub fn frequency_mhz(&self) -> Option<f64> {
        self.frequency.value()
    }

    pub fn temperature_celsius(&self) -> Option<f64> {
        self.temperature.value()
    }
}

/// A weighted mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Takes the results of a run, and shares its sums with who asks at the end.
#[derive(Clone, Debug, Default)]
pub struct RunTotalsOutput(Rc<RefCell<RunTotals>>);

impl RunTotalsOutput {
    pub fn totals(&self) -> RunTotals {
        self.0.borrow().clone()
    }
}

impl Output for RunTotalsOutput {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        let mut totals = self.0.borrow_mut();
        totals.run_id.clone_from(&run.run_id);
        totals.started_us = run.started.0;
        Ok(())
    }

    fn process(&mut self, _: &ProcessInfo) {}

    #[allow(clippy::cast_precision_loss, reason = "means for people")]
    fn window(&mut self, report: &WindowReport, _: &StackTable) -> Result<()> {
        let mut totals = self.0.borrow_mut();
        totals.sums.add(report);
        if let Some(context) = &report.context {
            let length = report.length_ns as f64;
            if let Some(khz) = context.mean_frequency_khz {
                totals.frequency.add(khz as f64 / 1000.0, length);
            }
            if let Some(millicelsius) = context.temperature_millicelsius {
                totals.temperature.add(millicelsius as f64 / 1000.0, length);
            }
        }
        Ok(())
    }

    fn run_ended(&mut self, _: &RunEnd) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use joular_data::events::WindowContext;

    use super::*;

    #[test]
    fn means_are_by_length_and_of_what_is_known() {
        let mut output = RunTotalsOutput::default();
        for (length_ns, khz, millicelsius) in [(1_000, Some(1_000_000), None), (3_000, Some(2_000_000), Some(50_000))] {
            let context = WindowContext {
                mean_frequency_khz: khz,
                temperature_millicelsius: millicelsius,
                ..WindowContext::default()
            };
            let report = WindowReport { length_ns, context: Some(context), ..WindowReport::default() };
            output.window(&report, &StackTable::default()).unwrap();
        }
        let totals = output.totals();
        assert_eq!((totals.frequency_mhz(), totals.temperature_celsius()), (Some(1750.0), Some(50.0)));
        assert_eq!((totals.sums.elapsed_ns, RunTotals::default().frequency_mhz()), (4_000, None));
    }
}
