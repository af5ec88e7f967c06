//! Keeps bundles of a bucket near, in a file without a name: each is fetched once, however many of its tables are read.
//!
//! A bundle is kept as a file for each of its tables ([`super::super::read`] makes them): its columns once, and an end for each
//! table that says where the columns of this table are. Where there is no room, nothing is kept, and bundles are fetched again
//! for each table. The room is free again when nobody reads any more, however the program ends.

use std::{
    env,
    fs::File,
    ops::Range,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::schema::types::SchemaDescriptor;

use super::{Object, Room};

/// Part of the free room that may be taken.
const MOST_OF_ROOM: u64 = 2;
/// Bytes that are taken at most.
const MOST_BYTES: u64 = 8 << 30;

/// The file that has all bundles.
#[derive(Debug, Default)]
pub(crate) struct Spill(OnceLock<Option<Opened>>);

#[derive(Debug)]
struct Opened {
    file: Arc<File>,
    most: u64,
    end: Mutex<u64>,
}

/// Where bundles are kept, and whether this one is yet.
#[derive(Debug)]
pub struct Near {
    spill: Arc<Spill>,
    kept: OnceLock<Option<Kept>>,
}

/// The schema of a table as a file of its own. Bundles have the same ones.
#[derive(Debug)]
pub(crate) struct TableSchema {
    pub(crate) parquet: Arc<SchemaDescriptor>,
    /// As it is read: known when the first such file was opened.
    pub(crate) arrow: OnceLock<SchemaRef>,
}

/// A table of a bundle.
#[derive(Debug)]
pub(crate) struct TableEnd {
    pub(crate) table: &'static str,
    pub(crate) schema: Arc<TableSchema>,
    /// Where its end is in [`Content::bytes`].
    pub(crate) end: Range<u64>,
}

/// What is written of a bundle.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The columns of all tables, at the places that the bundle has them at, and then the ends.
    pub(crate) bytes: Vec<u8>,
    pub(crate) tables: Vec<TableEnd>,
    /// First and last `window_start`, as microseconds, if the bundle says them.
    pub(crate) windows: Option<(i64, i64)>,
}

#[derive(Debug)]
struct Kept {
    file: Arc<File>,
    at: u64,
    columns: u64,
    tables: Vec<TableEnd>,
    windows: Option<(i64, i64)>,
}

/// The folders that a file may be made in, the best one first: `/tmp` may be memory.
fn folders() -> Vec<PathBuf> {
    let named = env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    let large = (!named).then(|| PathBuf::from("/var/tmp"));
    large.into_iter().chain([env::temp_dir()]).collect()
}

impl Spill {
    fn opened(&self) -> Option<&Opened> {
        let open = |folder: PathBuf| {
            let file = tempfile::tempfile_in(folder).ok()?;
            let free = Room::from(rustix::fs::fstatvfs(&file).ok()?).free_bytes;
            Some(Opened { file: Arc::new(file), most: MOST_BYTES.min(free / MOST_OF_ROOM), end: Mutex::default() })
        };
        self.0.get_or_init(|| folders().into_iter().find_map(open)).as_ref()
    }

    /// Adds what is written of a bundle. `None`: there is no room.
    fn add(&self, Content { bytes, tables, windows }: Content) -> Option<Kept> {
        let opened = self.opened()?;
        let length = bytes.len() as u64;
        let at = {
            let mut end = opened.end.lock().unwrap_or_else(PoisonError::into_inner);
            let after = end.checked_add(length).filter(|after| *after <= opened.most)?;
            std::mem::replace(&mut *end, after)
        };
        opened.file.write_all_at(&bytes, at).ok()?;
        let columns = tables.iter().map(|table| table.end.start).min()?;
        Some(Kept { file: Arc::clone(&opened.file), at, columns, tables, windows })
    }
}

impl Near {
    #[cfg_attr(not(feature = "object-store"), allow(dead_code, reason = "only buckets are far away"))]
    pub(crate) fn within(spill: &Arc<Spill>) -> Self {
        Self { spill: Arc::clone(spill), kept: OnceLock::new() }
    }

    /// Whether it was tried to keep the bundle, with or without success.
    pub(crate) fn is_tried(&self) -> bool {
        self.kept.get().is_some()
    }

    /// Whether it need not be fetched again.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept().is_some()
    }

    /// Keeps the bundle, if it can be taken apart and there is room.
    pub(crate) fn keep(&self, content: impl FnOnce() -> Option<Content>) {
        self.kept.get_or_init(|| self.spill.add(content()?));
    }

    /// A table of the bundle as a file of its own, in memory: it has many small parts. `None` if it is not kept, has no such
    /// table, or cannot be read.
    pub(crate) fn table(&self, table: &str) -> Option<(Object, Arc<TableSchema>)> {
        let kept = self.kept()?;
        let TableEnd { schema, end, .. } = kept.tables.iter().find(|kept| kept.table == table)?;
        let size_bytes = kept.columns.checked_add(end.end.checked_sub(end.start)?)?;
        let mut bytes = vec![0; usize::try_from(size_bytes).ok()?];
        let (columns, of_table) = bytes.split_at_mut_checked(usize::try_from(kept.columns).ok()?)?;
        kept.file.read_exact_at(columns, kept.at).ok()?;
        kept.file.read_exact_at(of_table, kept.at.checked_add(end.start)?).ok()?;
        Some((Object::new(Bytes::from(bytes), size_bytes), Arc::clone(schema)))
    }

    /// First and last `window_start` of the bundle, if it is kept and says them.
    pub(crate) fn windows(&self) -> Option<(i64, i64)> {
        self.kept()?.windows
    }

    fn kept(&self) -> Option<&Kept> {
        self.kept.get()?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use parquet::schema::types::Type;

    use super::*;

    fn content(bytes: &[u8], tables: &[(&'static str, Range<u64>)]) -> Content {
        let root = Type::group_type_builder("root").build().unwrap();
        let parquet = Arc::new(SchemaDescriptor::new(Arc::new(root)));
        let schema = Arc::new(TableSchema { parquet, arrow: OnceLock::new() });
        let end =
            |(table, end): &(&'static str, Range<u64>)| TableEnd { table, schema: schema.clone(), end: end.clone() };
        Content { bytes: bytes.to_vec(), tables: tables.iter().map(end).collect(), windows: Some((1, 2)) }
    }

    #[test]
    fn each_table_is_the_columns_with_its_own_end() {
        let spill = Arc::default();
        let (first, second) = (Near::within(&spill), Near::within(&spill));
        assert!(!first.is_tried() && first.table("a").is_none() && first.windows().is_none());
        first.keep(|| Some(content(b"columnsAABBB", &[("a", 7..9), ("b", 9..12)])));
        first.keep(|| panic!("it is kept"));
        second.keep(|| Some(content(b"othersC", &[("a", 6..7)])));
        let whole = |near: &Near, table: &str| near.table(table).map(|(object, _)| object.read_all().unwrap());
        assert_eq!(whole(&first, "a").unwrap(), b"columnsAA");
        assert_eq!(whole(&first, "b").unwrap(), b"columnsBBB");
        assert_eq!(whole(&second, "a").unwrap(), b"othersC");
        assert_eq!(whole(&second, "b"), None);
        assert!(first.is_kept() && first.windows() == Some((1, 2)));
    }

    #[test]
    fn what_has_no_room_is_not_kept_and_not_tried_again() {
        let opened = Opened { file: Arc::new(tempfile::tempfile().unwrap()), most: 10, end: Mutex::default() };
        let spill = Arc::new(Spill(OnceLock::from(Some(opened))));
        let keep = |bytes: &[u8]| {
            let near = Near::within(&spill);
            near.keep(|| Some(content(bytes, &[("a", 1..2)])));
            (near.is_tried(), near.is_kept())
        };
        assert_eq!(keep(b"123456"), (true, true));
        assert_eq!(keep(b"12345"), (true, false));
        assert_eq!(keep(b"1234"), (true, true));
        assert_eq!(folders().last(), Some(&env::temp_dir()));
    }
}
