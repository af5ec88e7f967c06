//! Says what the service has recorded lately, and what it lost.

use std::{fmt::Write as _, path::Path};

use jiff::{SignedDuration, Timestamp};
use joular_data::{
    model::units::UnixMicros,
    report::profile::{DataSet, Filter, Moment, Overview, Run},
};

const LATELY: SignedDuration = SignedDuration::from_hours(1);

/// Of the data set in a directory.
pub(super) fn text(directory: Option<&Path>) -> String {
    let Some(directory) = directory else { return "no data set is written".to_owned() };
    let since = UnixMicros((Timestamp::now() - LATELY).as_microsecond());
    let filter = Filter { since: Some(Moment::At(since)), ..Filter::default() };
    let read = DataSet::open(directory, &filter).and_then(|mut data| {
        let overview = data.overview(&filter)?;
        Ok((overview, data.catalog.runs))
    });
    match read {
        Ok((overview, runs)) => shown(&overview, &runs, since),
        Err(error) => error.to_string(),
    }
}

fn shown(overview: &Overview, runs: &[Run], since: UnixMicros) -> String {
    let mut text = format!(
        "{} windows, {} samples; readings that were not certain {}, that failed {}; energy in rows of no whole window {} µJ\n",
        overview.windows, overview.samples, overview.ambiguous, overview.read_failed, overview.left_out.energy.0
    );
    for (cause, count) in overview.losses.iter().filter(|(_, count)| **count > 0) {
        let _ = writeln!(text, "lost: {count} {cause}");
    }
    for run in runs.iter().filter(|run| run.end.as_ref().is_none_or(|end| end.ended >= since)) {
        let end = run.end.as_ref().map_or("goes on, or did not end properly", |end| &end.reason);
        let _ = writeln!(
            text,
            "run {}: joular-bpf {}, {}, {end}",
            run.info.run_id, run.info.version, run.info.energy_source
        );
    }
    text
}
