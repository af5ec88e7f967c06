//! Says which parts of a run become one: parts that follow each other, are of one date and host,
//! have the same columns, and together are no more than [`MAX_LOAD`].

use std::collections::BTreeMap;

use crate::dataset::{
    error::{DataSetError, Result},
    layout::FilePlace,
    read::{
        files::{FlushFiles, RunFiles},
        footer::Footer,
    },
    store::StoredFile,
    tables::TABLES,
};

/// Values of one column that a file may get. Some commands hold all rows of a part in memory; this
/// bound keeps that to some hundred megabytes.
const MAX_LOAD: u64 = 1_000_000;

/// Parts that become one.
pub(crate) struct Merge {
    /// Place of the first of them.
    pub(crate) place: FilePlace,
    /// In the order in which a run writes: `windows` last.
    pub(crate) tables: Vec<(&'static str, Merged)>,
    parts: usize,
    last_window: Option<i64>,
}

/// Files that become one.
pub(crate) struct Merged {
    pub(crate) files: Vec<StoredFile>,
    /// The footer of the first one; the others have the same schema and metadata.
    pub(crate) footer: Footer,
    rows: u64,
    load: u64,
}

impl Merge {
    fn new(place: &FilePlace) -> Self {
        Self { place: place.clone(), tables: Vec::new(), parts: 0, last_window: None }
    }

    pub(crate) fn is_one_part(&self) -> bool {
        self.parts == 1
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &StoredFile> {
        self.tables.iter().flat_map(|(_, merged)| &merged.files)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.tables.iter().map(|(table, merged)| (*table, merged.rows))
    }

    fn has_room_for(&self, place: &FilePlace, footers: &BTreeMap<&'static str, Footer>) -> bool {
        let fits = |(table, footer): (&&str, &Footer)| {
            self.tables.iter().find(|(other, _)| other == table).is_none_or(|(_, merged)| {
                merged.load.saturating_add(footer.load) <= MAX_LOAD
                    && merged.footer.schema == footer.schema
                    && merged.footer.metadata == footer.metadata
            })
        };
        // Windows are told apart by their starts: where the clock was set back, by their files too.
        let starts = footers.values().filter_map(|footer| footer.windows).map(|(first, _)| first).min();
        let is_later = self.last_window.zip(starts).is_none_or(|(last, start)| start > last);
        self.place.is_beside(place) && is_later && footers.iter().all(fits)
    }

    fn add(&mut self, part: &FlushFiles, footers: BTreeMap<&'static str, Footer>) {
        self.parts += 1;
        // Stacks are described by their first window, which says nothing about the last one.
        let ends = footers.values().filter_map(|footer| footer.windows).map(|(_, last)| last).max();
        self.last_window = self.last_window.max(ends);
        for (table, footer) in footers {
            let Some(file) = part.named(table) else { continue };
            let (rows, load) = (footer.rows, footer.load);
            match self.tables.iter_mut().find(|(other, _)| *other == table) {
                Some((_, merged)) => {
                    merged.files.push(file.clone());
                    merged.rows = merged.rows.saturating_add(rows);
                    merged.load = merged.load.saturating_add(load);
                }
                None => self.tables.push((table, Merged { files: vec![file.clone()], footer, rows, load })),
            }
        }
        self.tables.sort_by_key(|(table, _)| TABLES.iter().position(|other| other == table));
    }
}

/// In the order of the parts.
pub(crate) fn of(files: &RunFiles) -> Result<Vec<Merge>> {
    if files.is_bundle() {
        return Err(DataSetError::Bundled { path: files.row.path() });
    }
    let mut merges: Vec<Merge> = Vec::new();
    for (place, part) in &files.parts {
        let mut footers = BTreeMap::new();
        for table in TABLES {
            if let Some(file) = part.named(table) {
                footers.insert(table, Footer::read(file)?);
            }
        }
        match merges.last_mut() {
            Some(last) if last.has_room_for(place, &footers) => last.add(part, footers),
            _ => {
                let mut merge = Merge::new(place);
                merge.add(part, footers);
                merges.push(merge);
            }
        }
    }
    Ok(merges)
}
