//! Collects what tables are part of: how much of the machine's energy was selected, what JVMs did
//! for themselves, how good stacks are, what was lost. What has no name is in [`super::unnamed`].
//!
//! Items and words are those of the summary at a run's end.

use std::collections::BTreeMap;

use crate::{
    events::Machine,
    model::units::MicroJoules,
    report::profile::{Amounts, Overview, Process, Profile, ReadFrom},
    text::{count, escape, figures, seconds, share, time},
    totals::{
        RunSums, audit,
        jvms::{JvmTally, cause_of, quality_lines},
    },
};

/// The run's sums, as the summary has them.
pub fn sums(overview: &Overview) -> RunSums {
    RunSums {
        windows: overview.windows,
        elapsed_ns: overview.duration_ns,
        measured: overview.measured,
        attributed: overview.attributed,
        static_share: overview.static_share,
        unattributed: overview.unattributed,
        samples: overview.samples,
        ambiguous: overview.ambiguous,
        read_failed: overview.read_failed,
        checked: overview.checked,
        losses: overview.losses.clone(),
        inexact_cpu_ns: overview.inexact_cpu_ns,
        label: overview.label,
        ..RunSums::default()
    }
}

/// Where the machine's energy went, an item a line.
pub fn audit(overview: &Overview) -> String {
    audit::audit(&sums(overview))
}

/// What a reader of the figures must know.
pub fn warnings(overview: &Overview) -> Vec<String> {
    let mut warnings = audit::warnings(&sums(overview));
    warnings.extend(overview.skipped.line());
    warnings.extend(overview.read_from.as_ref().and_then(ReadFrom::warning));
    if overview.left_out != Amounts::default() {
        let joules = overview.left_out.energy.joules();
        warnings.push(format!("cut off: {joules:.3} J are left out, because their window is incomplete after a crash"));
    }
    if let Some(lag) = overview.lag {
        let percent = 100.0 * lag.joules() / overview.attributed.joules();
        warnings.push(format!(
            "lag: energy counters are behind, so the targets' energy in these phases may be off by {lag} ({percent:.1} %)"
        ));
    }
    if overview.overlap_ns > 0 {
        warnings.push(format!(
            "overlap: for {:.1} s several runs recorded one host at once, and its energy counts for each of them: choose \
             with --run",
            seconds(overview.overlap_ns)
        ));
    }
    warnings
}

/// JVMs of the selection, largest tax first.
pub fn jvms(profile: &Profile) -> Vec<(&Process, JvmTally)> {
    let tally = |(index, jvm): (&_, &crate::report::profile::JvmEnergy)| {
        (profile.catalog.process(*index), JvmTally::new(jvm.whole, jvm.parts))
    };
    let mut jvms: Vec<_> = profile.overview.jvms.iter().map(tally).collect();
    jvms.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.tax, tally.whole)));
    jvms
}

/// Samples of the JVMs' stacks by what is wrong with them. Time without a sample is not a failed
/// stack.
pub fn causes(overview: &Overview) -> BTreeMap<&str, u64> {
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, amounts) in overview.qualities.iter().filter(|(key, _)| key.is_of_jvm && key.walk_end != "no-sample") {
        let count = causes.entry(cause_of(key.is_complete, &key.walk_end, key.unnamed.as_deref())).or_default();
        *count = count.saturating_add(amounts.samples);
    }
    causes
}

/// How good the JVMs' stacks are; empty if there are none.
pub fn quality(overview: &Overview) -> Vec<String> {
    quality_lines(&causes(overview))
}

/// `cpu from model (modelled)`: domains that the energy is of, its sources, and how it came about.
pub fn source(overview: &Overview) -> String {
    let domains: Vec<String> = overview.domains.iter().map(|domain| escape(domain)).collect();
    let sources: Vec<String> = overview.sources.iter().map(|source| escape(source)).collect();
    let sources = if sources.is_empty() { "no source".to_owned() } else { sources.join(", ") };
    let from = overview.label.map_or(sources.clone(), |label| format!("{sources} ({})", label.words()));
    let from = format!("{from}{}", fitted(overview));
    if domains.is_empty() { from } else { format!("{} from {from}", domains.join(", ")) }
}

/// `, divided by fitted watts of service` where CPU time does not count alike for all.
fn fitted(overview: &Overview) -> String {
    let groups: Vec<String> = overview.watts_by.iter().map(|by| escape(by)).collect();
    if groups.is_empty() { String::new() } else { format!(", divided by fitted watts of {}", groups.join(", ")) }
}

/// Which windows of which hosts were read.
pub fn extent(profile: &Profile) -> String {
    let overview = &profile.overview;
    let mut hosts: Vec<Machine<'_>> = profile.catalog.runs.iter().map(|run| run.info.machine()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let runs = profile.catalog.runs.len();
    let span = overview.span.map_or(String::new(), |(start, end)| format!(", {} to {}", time(start), time(end)));
    let shown = match hosts.as_slice() {
        [] => "no host".to_owned(),
        [one] => one.host.to_string(),
        [first, .., last] => format!("{} hosts, {} to {}", hosts.len(), first.host, last.host),
    };
    format!(
        "{} on {shown}: {:.1} s in {}{span}",
        count(runs, "run"),
        seconds(overview.duration_ns),
        count(overview.windows, "window")
    )
}

/// The sums of the whole selection.
pub fn chosen(profile: &Profile) -> Amounts {
    let mut whole = Amounts::default();
    profile.entries.iter().for_each(|entry| whole.plus(&entry.amounts()));
    whole
}

/// How much of the selection is inferred from samples of other windows; `None` if nothing.
pub fn inferred(profile: &Profile) -> Option<String> {
    let (overview, inferred) = (&profile.overview, profile.overview.inferred);
    let joules = figures::figure(inferred.joules(), overview.label);
    let part = share(inferred, profile.energy());
    (inferred.0 > 0).then(|| {
        format!("inferred {joules} J, {part:.1} %: no sample hit their threads in these windows, samples of other windows share them out")
    })
}

/// How much of the selection was moved from garbage collectors to paths that allocated, and what was not, because no
/// allocation causes it. Neither is said if it is nothing.
pub fn gc_charged(profile: &Profile) -> Vec<String> {
    let overview = &profile.overview;
    let joules = |energy: MicroJoules| (energy.0 > 0).then(|| figures::figure(energy.joules(), overview.label));
    let charged = joules(overview.gc_charged)
        .map(|joules| format!("with {joules} J of garbage collectors, at the call paths that allocated"));
    let kept = joules(overview.gc_kept).map(|joules| {
        format!("G1's threads that refine keep {joules} J: writes of references cause that, not allocation")
    });
    charged.into_iter().chain(kept).collect()
}
