//! Logs what a counter showed, and when: the truth that measurements are checked against.

use anyhow::{Context as _, Result, ensure};

/// How long after a window's end its counters may be read: the profiler wakes
/// up and reads a handful of files, on a machine whose every CPU is busy.
const READ_DELAY_US: i64 = 100_000;

/// One value of a counter, without its wraps and jumps, and when it was written
/// or, while it does not change, seen to be still there.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub wall_us: i64,
    pub energy_uj: u64,
}

/// One reading as a data set has it: the end of its window, and the energy since
/// the one before; none if it failed.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub end_us: i64,
    pub energy_uj: Option<u64>,
}

/// All values of a counter, in their order.
#[derive(Debug, Default)]
pub struct Log {
    entries: Vec<Entry>,
}

impl Log {
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Energy at a moment, on the line between the values around it.
    pub fn energy_uj_at(&self, wall_us: i64) -> Result<f64> {
        let after = self.entries.partition_point(|entry| entry.wall_us <= wall_us);
        let around = after.checked_sub(1).and_then(|before| self.entries.get(before..=after));
        let Some([before, after]) = around else { anyhow::bail!("{wall_us} µs is not in the log") };
        let part = (wall_us - before.wall_us) as f64 / (after.wall_us - before.wall_us).max(1) as f64;
        Ok(before.energy_uj as f64 + part * (after.energy_uj - before.energy_uj) as f64)
    }

    /// Fails unless there is a first reading so that it and each good one after
    /// it are values that the counter really had, at about that time.
    ///
    /// A value read at a moment is the one written last before. So its entry is
    /// at most one step of the writer older than the moment of reading, which is
    /// at most `READ_DELAY_US` after the boundary: the bound on either side is
    /// the longest step in the log plus that delay.
    pub fn explain(&self, start_us: i64, measured: &[Measured]) -> Result<()> {
        let steps = self.entries.windows(2).map(|pair| pair[1].wall_us - pair[0].wall_us);
        let tolerance_us = steps.max().context("an empty log")? + READ_DELAY_US;
        let near = |entry: &Entry, moment_us: i64| (entry.wall_us - moment_us).abs() <= tolerance_us;
        let mut firsts = self.entries.iter().filter(|entry| near(entry, start_us));
        let had = |energy_uj: u64, moment_us| self.all_of(energy_uj).iter().any(|entry| near(entry, moment_us));
        let leads_through = |first: &Entry| {
            let mut energy_uj = first.energy_uj;
            measured.iter().filter_map(|reading| Some((reading.end_us, reading.energy_uj?))).all(|(end_us, more_uj)| {
                energy_uj += more_uj;
                had(energy_uj, end_us)
            })
        };
        ensure!(
            firsts.any(leads_through),
            "no value within {tolerance_us} µs of {start_us} leads through all readings: {measured:?}"
        );
        Ok(())
    }

    /// The entries with this energy: several while it did not change.
    fn all_of(&self, energy_uj: u64) -> &[Entry] {
        let begin = self.entries.partition_point(|entry| entry.energy_uj < energy_uj);
        let end = self.entries.partition_point(|entry| entry.energy_uj <= energy_uj);
        &self.entries[begin..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 W: a value every 5 ms.
    fn log() -> Log {
        let entries = (0..1000).map(|step| Entry { wall_us: step * 5000, energy_uj: step as u64 * 50_000 }).collect();
        Log { entries }
    }

    fn measured(readings: &[(i64, Option<u64>)]) -> Vec<Measured> {
        readings.iter().map(|(end_us, energy_uj)| Measured { end_us: *end_us, energy_uj: *energy_uj }).collect()
    }

    #[test]
    fn differences_of_values_that_were_there_are_explained_and_no_others() {
        for (readings, expected) in [
            (&[(1_000_000, Some(10_000_000)), (2_000_000, Some(10_050_000))][..], true),
            // One µJ that nobody wrote.
            (&[(1_000_000, Some(10_000_001))], false),
            // The right energy at the wrong time.
            (&[(1_500_000, Some(10_000_000))], false),
            // What a failed read did not bring comes with the next, or it does not.
            (&[(1_000_000, None), (2_000_000, Some(20_000_000))], true),
            (&[(1_000_000, None), (2_000_000, Some(10_000_000))], false),
        ] {
            assert_eq!(log().explain(1000, &measured(readings)).is_ok(), expected, "{readings:?}");
        }
    }

    #[test]
    fn energy_between_two_values_is_on_their_line() -> Result<()> {
        assert!((log().energy_uj_at(1_002_500)? - 10_025_000.0).abs() < 1.0);
        assert!(log().energy_uj_at(-1).is_err() && log().energy_uj_at(9_000_000).is_err());
        Ok(())
    }
}
