//! Judges a recording of minutes: it loses nothing, and its memory does not grow.

use anyhow::{Context as _, Result, ensure};
use joular_tests::{notes, statistics::median};

use super::guest::Said;

/// By which the memory of the last third may exceed that of the middle one. Tables that have a bound still fill in the first
/// minutes (the soak of x86-64 judges memory after nine): 8 % were seen in four minutes, most of it in half a minute.
const GROWTH: f64 = 0.2;

/// Of each moment that was looked at: seconds, threads, and KiB of memory.
pub fn check(said: &Said) -> Result<()> {
    let looks: Vec<[f64; 3]> = said
        .numbers("look ")
        .into_iter()
        .filter_map(|look| Some([*look.first()?, *look.get(1)?, look.get(2..)?.iter().sum()]))
        .collect();
    ensure!(looks.len() >= 30, "it was looked at {} times", looks.len());
    let third = looks.len() / 3;
    let medians = |looks: &[[f64; 3]]| {
        let of = |index: usize| median(&looks.iter().map(|look| look[index]).collect::<Vec<_>>());
        (of(1), of(2))
    };
    let (threads_before, before_kib) = medians(&looks[third..2 * third]);
    let (threads_after, after_kib) = medians(&looks[2 * third..]);
    let (first, last) = (looks.first().context("a look")?, looks.last().context("a look")?);
    notes::figure(&format!(
        "Linux {}: {} KiB at first, {before_kib} in the middle third of {:.0} s, {after_kib} in the last, {} at last; {threads_after} threads",
        said.kernel,
        first[2],
        last[0] - first[0],
        last[2]
    ));
    ensure!(after_kib <= before_kib * (1.0 + GROWTH), "memory grew from {before_kib} to {after_kib} KiB");
    // One more may be reading a file.
    ensure!(threads_after <= threads_before + 1.0, "threads grew from {threads_before} to {threads_after}");
    Ok(())
}
