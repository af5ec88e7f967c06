//! Describes call branches: what a branch id stands for.

use super::{Column, ColumnOf, Table, UnixMicros, joined, kind, shared::RUN_ID};
use crate::{
    dataset::column::KnownFrame,
    model::{
        frame::Marker,
        quality::{PathQuality, Unwinder},
    },
    stacks::PathFacts,
};

pub(crate) const WINDOW_START: Column<kind::Time> =
    Column::new("window_start", "wall clock", "start of the window that saw it first, or again once forgotten");
pub(crate) const STACK_ID: Column<kind::Int> = Column::quantity(
    "stack_id",
    "attribution",
    "hash of the root → leaf frames, kind, file and line included, and of unwinder and walk_end",
);
pub(crate) const BRANCH_ID: Column<kind::Int> =
    Column::quantity("branch_id", "attribution", "hash of the root → leaf methods");
pub(crate) const DEPTH: Column<kind::Int> = Column::new("depth", "kernel", "number of frames").unit("frames");
pub(crate) const FOLDED: Column<kind::Text> = Column::new("folded", "symbols", "methods root → leaf, joined by ;");
pub(crate) const FRAMES: Column<kind::Frames> = Column::new("frames", "symbols", "frames root → leaf");
pub(crate) const UNWINDER: Column<kind::Name> = Column::new(
    "unwinder",
    "kernel",
    "how it was obtained: tables (unwind tables, a JVM's code cache) or frame-pointers",
)
.null("nothing was unwound");
pub(crate) const WALK_END: Column<kind::Name> =
    Column::new("walk_end", "kernel", "why it ends on the root's side; docs/jvm.md explains the names");
pub(crate) const IS_COMPLETE: Column<kind::Flag> =
    Column::new("is_complete", "kernel", "whether it reaches the thread's first function")
        .null("unknown: frame pointers do not show it");
pub(crate) const UNNAMED: Column<kind::Name> = Column::new(
    "unnamed",
    "symbols",
    "marker of frames without a name; of several, the first in [evicted], [stale], [mapping not kept], [unresolved]",
)
.null("all frames have names");

pub struct Stacks;

pub struct StackRecord<'a> {
    pub run_id: &'a str,
    pub first_seen: UnixMicros,
    pub branch_id: i64,
    pub stack_id: i64,
    pub facts: PathFacts,
    /// Root → leaf.
    pub frames: Vec<KnownFrame<'a>>,
}

impl StackRecord<'_> {
    /// `a;b;c`, as [`crate::stacks::StackTable::folded`] has it.
    fn folded(&self) -> String {
        let methods: Vec<String> =
            self.frames.iter().map(|(_, frame)| frame.method().raw().replace(';', ":")).collect();
        methods.join(";")
    }
}

impl Table for Stacks {
    const NAME: &'static str = "stacks";
    const ROW: &'static str = "a call path with its lines, kinds of code and quality, when it is first seen; a long run may \
                               forget it and write it again, so a run has it at least once: join on distinct stack_id";
    const BY_POLICY: bool = false;
    type Row<'a> = StackRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let path = vec![
            RUN_ID.of::<Self>(|r| Some(r.run_id.into())),
            WINDOW_START.of::<Self>(|r| Some(r.first_seen.0)),
            STACK_ID.of::<Self>(|r| Some(r.stack_id)),
            BRANCH_ID.of::<Self>(|r| Some(r.branch_id)),
            DEPTH.of::<Self>(|r| i64::try_from(r.frames.len()).ok()),
            FOLDED.of::<Self>(|r| Some(r.folded().into())),
            FRAMES.of::<Self>(|r| r.frames.clone()),
        ];
        joined([path, quality_columns()])
    }
}

impl OfPaths for Stacks {
    fn quality(row: &StackRecord<'_>) -> (PathQuality, Option<Marker>) {
        (row.facts.quality, row.facts.unnamed)
    }
}

/// Rows that are about paths of one quality.
pub(crate) trait OfPaths: Table {
    fn quality(row: &Self::Row<'_>) -> (PathQuality, Option<Marker>);
}

pub(crate) fn quality_columns<T: OfPaths>() -> Vec<ColumnOf<T>> {
    vec![
        UNWINDER.of::<T>(|r| T::quality(r).0.unwinder().map(|unwinder| Unwinder::name(unwinder).into())),
        WALK_END.of::<T>(|r| Some(T::quality(r).0.end_name().into())),
        IS_COMPLETE.of::<T>(|r| T::quality(r).0.is_complete()),
        UNNAMED.of::<T>(|r| T::quality(r).1.map(|marker| Marker::name(marker).into())),
    ]
}
