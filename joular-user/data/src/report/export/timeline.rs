//! Reads the rows of a selection one by one, with the methods' filter applied.

use std::path::Path;

use super::Result;
use crate::{
    model::units::UnixMicros,
    report::profile::{App, Catalog, DataSet, Filter, Overview, Summed, ThreadPath, row::Row},
};

pub(super) struct Timeline<'a> {
    data: DataSet,
    summed: Summed,
    filter: &'a Filter,
    /// By path: whether the filter allows it.
    allowed: Vec<bool>,
    pub(super) overview: Overview,
}

impl<'a> Timeline<'a> {
    pub(super) fn open(root: &Path, filter: &'a Filter, app: Option<&App>) -> Result<Self> {
        let mut data = DataSet::open(root, filter)?;
        let mut overview = data.overview(filter)?;
        let summed = data.sums(filter, |_, _| {})?;
        let paths = &data.catalog.paths;
        let allowed: Vec<bool> = paths.indices().map(|path| filter.allows_path(paths.frames_of(path))).collect();
        let is_allowed = |entry: &&ThreadPath| allowed.get(entry.path.index()).copied().unwrap_or(false);
        overview.inferred = summed.entries.iter().filter(is_allowed).map(|entry| entry.inferred).sum();
        if let Some(app) = app {
            data.catalog.paths = data.catalog.paths.of_app(app);
        }
        Ok(Self { data, summed, filter, allowed, overview })
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.data.catalog
    }

    /// When the first window starts.
    pub(super) fn start(&self) -> UnixMicros {
        self.overview.span.map_or(UnixMicros(0), |(start, _)| start)
    }

    /// Calls `take` for every row, in the order in which they were written: windows of a run one
    /// after the other. It stops at the first error of `take`.
    pub(super) fn scan(&mut self, mut take: impl FnMut(&Catalog, &Row) -> Result<()>) -> Result<()> {
        let mut result = Ok(());
        let allowed = &self.allowed;
        self.data.scan_in_time(self.filter, &self.summed, |catalog, row| {
            if result.is_ok() && allowed.get(row.path.index()).copied().unwrap_or(false) {
                result = take(catalog, row);
            }
        })?;
        result
    }
}

/// Nanoseconds since 1970, 0 before.
pub(super) fn unix_ns(moment: UnixMicros) -> u64 {
    u64::try_from(moment.0).unwrap_or(0).saturating_mul(1000)
}
