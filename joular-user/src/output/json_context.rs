//! Writes what a window ran under, for `--json`.

use joular_data::{attribution::window_report::WindowReport, events::WindowContext};
use serde::Serialize;

/// As in table `windows` of the data set.
#[derive(Serialize)]
pub(super) struct Context<'a> {
    busy_cpus_milli: Option<i64>,
    #[serde(flatten)]
    noted: &'a WindowContext,
}

impl<'a> Context<'a> {
    /// `None` where a recording does not say.
    pub(super) fn of(report: &'a WindowReport) -> Option<Self> {
        let busy_cpus_milli = report.cpu.busy_cpus_milli(report.length_ns);
        report.context.as_ref().map(|noted| Self { busy_cpus_milli, noted })
    }
}

#[cfg(test)]
mod tests {
    use joular_data::{
        fixture::{self, SMALL},
        stacks::StackTable,
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_says_what_it_ran_under() {
        let report = fixture::window(SMALL, &mut StackTable::default(), 1);
        let found = serde_json::to_value(Context::of(&report)).unwrap();
        let mut expected = json!({
            "busy_cpus_milli": 3000,
            "mean_frequency_khz": 0,
            "governor": "schedutil",
            "steal_ns": 10_000_000,
            "temperature_millicelsius": 41_001,
            "suspended_ns": 0,
            "clock_step_us": 0,
            "clock_offset_us": 0,
        });
        expected["mean_frequency_khz"] = found["mean_frequency_khz"].clone();
        assert!(found["mean_frequency_khz"].as_u64() >= Some(2_400_000));
        assert_eq!(found, expected);
        assert!(Context::of(&WindowReport::default()).is_none());
    }
}
