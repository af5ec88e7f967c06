//! Call branches: what a branch id stands for.

use super::{Column, Get, Table, UnixMicros, joined};
use crate::{
    model::{
        frame::{Frame, Marker},
        quality::{PathQuality, Unwinder},
    },
    stacks::PathFacts,
};

pub struct Stacks;

pub struct StackRecord<'a> {
    pub run_id: &'a str,
    pub first_seen: UnixMicros,
    pub branch_id: i64,
    pub stack_id: i64,
    pub facts: PathFacts,
    /// Root → leaf.
    pub frames: Vec<&'a Frame>,
}

impl StackRecord<'_> {
    /// `a;b;c`, as [`crate::stacks::StackTable::folded`] has it.
    fn folded(&self) -> String {
        let methods: Vec<String> = self.frames.iter().map(|frame| frame.method().replace(';', ":")).collect();
        methods.join(";")
    }
}

impl Table for Stacks {
    const NAME: &'static str = "stacks";
    const ROW: &'static str = "a call path with its lines, kinds of code and quality, when it is first seen; in a long run again \
                               when it is seen after it had been forgotten, so at least once per run: join on distinct stack_id";
    const BY_POLICY: bool = false;
    type Row<'a> = StackRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let path = vec![
            Column::<Self>::new("run_id", Get::Name(|r| Some(r.run_id.into())), "run", "run, as in table runs"),
            Column::<Self>::new(
                "window_start",
                Get::Time(|r| Some(r.first_seen.0)),
                "wall clock",
                "start of the window that saw it, the first one or again",
            ),
            Column::<Self>::new(
                "stack_id",
                Get::Quantity(|r| Some(r.stack_id)),
                "attribution",
                "hash of the root → leaf frames, kind, file and line included, and of unwinder and walk_end",
            ),
            Column::<Self>::new(
                "branch_id",
                Get::Quantity(|r| Some(r.branch_id)),
                "attribution",
                "hash of the root → leaf methods",
            ),
            Column::<Self>::new(
                "depth",
                Get::Int(|r| i64::try_from(r.frames.len()).ok()),
                "kernel",
                "number of frames",
            )
            .unit("frames"),
            Column::<Self>::new(
                "folded",
                Get::Text(|r| Some(r.folded().into())),
                "symbols",
                "methods root → leaf, joined by ;",
            ),
            Column::<Self>::new("frames", Get::Frames(|r| r.frames.clone()), "symbols", "frames root → leaf"),
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

pub(crate) fn quality_columns<T: OfPaths>() -> Vec<Column<T>> {
    vec![
        Column::<T>::new(
            "unwinder",
            Get::Name(|r| T::quality(r).0.unwinder().map(|unwinder| Unwinder::name(unwinder).into())),
            "kernel",
            "how it was obtained: tables (unwind tables, a JVM's code cache) or frame-pointers",
        )
        .null("nothing was unwound"),
        Column::<T>::new(
            "walk_end",
            Get::Name(|r| Some(T::quality(r).0.end_name().into())),
            "kernel",
            "why it ends on the root's side, by a name that docs/jvm.md explains",
        ),
        Column::<T>::new(
            "is_complete",
            Get::Flag(|r| T::quality(r).0.is_complete()),
            "kernel",
            "it reaches the thread's first function",
        )
        .null("nobody can tell: frame pointers"),
        Column::<T>::new(
            "unnamed",
            Get::Name(|r| T::quality(r).1.map(|marker| Marker::name(marker).into())),
            "symbols",
            "marker that stands for frames of it without a name; of several the first of [evicted], [stale], [unresolved]",
        )
        .null("all frames have names"),
    ]
}

/// Not a table of its own: the columns of a frame within `stacks.frames`.
pub struct FrameTable;

impl Table for FrameTable {
    const NAME: &'static str = "stacks.frames";
    const ROW: &'static str = "a frame of a call branch";
    const BY_POLICY: bool = false;
    type Row<'a> = &'a Frame;

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::<Self>::new(
                "class",
                Get::Name(|f| f.class.as_deref().map(Into::into)),
                "symbols",
                "class with package",
            )
            .null("not Java"),
            Column::<Self>::new("method", Get::Name(|f| Some(f.name.as_str().into())), "symbols", "name without class"),
            Column::<Self>::new(
                "signature",
                Get::Name(|f| f.signature.as_deref().map(Into::into)),
                "symbols",
                "JVM signature",
            )
            .null("not Java, or not known"),
            Column::<Self>::new(
                "module",
                Get::Name(|f| f.module.as_deref().map(Into::into)),
                "symbols",
                "library or kernel module",
            )
            .null("Java, or not known"),
            Column::<Self>::new("file", Get::Name(|f| f.file.as_deref().map(Into::into)), "symbols", "source file")
                .null("not known"),
            Column::<Self>::new("line", Get::Int(|f| f.line.map(Into::into)), "symbols", "line in the source file")
                .null("not known"),
            Column::<Self>::new(
                "kind",
                Get::Name(|f| Some(f.kind.name().into())),
                "symbols",
                "kind of code, as in methods",
            ),
        ]
    }
}
