//! Writes collapsed stacks, one line each: frames root → leaf joined by `;`, a space, the energy in
//! µJ, or the amount of another measure in its unit. inferno, flamegraph.pl and speedscope read them.
//!
//! The format has no place for anything else: no threads, no lines, no comments.

use std::{borrow::Cow, collections::BTreeMap, io::Write};

use super::{ExportFormat, Exported, Result, Selection, Writer};
use crate::report::measure;

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "collapsed", writer: Writer::Text(write) };

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    let paths = &profile.catalog.paths;
    let names: Vec<String> = paths.frames().iter().map(|frame| name(frame.method().raw()).into_owned()).collect();
    if !profile.has(selection.measure) {
        return Err(measure::nothing(selection.measure, selection.data).into());
    }
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for fact in profile.facts(selection.measure) {
        let mut frames: Vec<&str> = paths.path(fact.path).iter().map(|frame| names[frame.index()].as_str()).collect();
        let class = profile.class_of(&fact).map(|class| name(class.raw()));
        frames.extend(class.as_deref());
        let sum = sums.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(fact.amount);
    }
    for (stack, amount) in &sums {
        writeln!(out, "{stack} {amount}")?;
    }
    Ok(Exported::of(&profile))
}

/// A name that no reader takes for a separator of frames or lines, for a comment, or for an empty
/// name.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let separates = |c: char| c == ';' || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if name.is_empty() {
        return Cow::Borrowed("_");
    }
    if !name.contains(separates) && !name.starts_with('#') {
        return Cow::Borrowed(name);
    }
    let safe = name.replace(separates, "_");
    Cow::Owned(safe.strip_prefix('#').map_or_else(|| safe.clone(), |rest| format!("_{rest}")))
}
