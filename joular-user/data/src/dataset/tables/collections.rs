//! Defines garbage collections, the ages of objects that outlived them, and which paths are charged for their energy.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, int, joined, kind, label_columns, process_columns,
    shared::{THREAD_START, TID},
    window_columns,
    work::{BRANCH_ID, CATEGORY, STACK_ID, THREAD_NAME},
};
use crate::attribution::{
    collector::{ChargeRow, CollectionRow},
    window_report::ProcessRef,
};

pub(crate) const COLLECTOR: Column<kind::Name> =
    Column::new("collector", "JVM", "as Java's GarbageCollectorMXBean is called: G1 Young Generation, PS MarkSweep");
pub(crate) const KIND: Column<kind::Name> = Column::new(
    "kind",
    "attribution",
    "young: of the young generation (with G1 of some of the old one too); old: of the whole heap",
);
pub(crate) const CAUSE: Column<kind::Name> =
    Column::new("cause", "JVM", "why: G1 Evacuation Pause, Allocation Failure, System.gc()")
        .null("a pause of G1's marking, or a JVM without counters (-XX:-UsePerfData)");
pub(crate) const STARTED: Column<kind::Time> =
    Column::new("start", "wall clock", "when it began; with process and collector its key");
pub(crate) const SINCE_START_NS: Column<kind::Int> = Column::quantity(
    "since_start_ns",
    "monotonic clock",
    "the same, since window_start; negative if it began in an earlier window",
)
.unit("ns");
pub(crate) const DURATION_NS: Column<kind::Int> =
    Column::quantity("duration_ns", "monotonic clock", "how long it took, with what runs beside the program")
        .unit("ns")
        .null("it goes on in the next window");
pub(crate) const BEFORE_BYTES: Column<kind::Int> =
    Column::quantity("before_bytes", "JVM", "used bytes of the heap as it began").unit("bytes");
pub(crate) const AFTER_BYTES: Column<kind::Int> =
    Column::quantity("after_bytes", "JVM", "used bytes of the heap as it ended").unit("bytes").null("under way");
pub(crate) const ENERGY_UJ: Column<kind::Int> = Column::quantity(
    "energy_uj",
    "attribution",
    "its part of jvms.gc_uj, by how long it took of the window; what G1 used to mark and refine is no collection's",
)
.unit("µJ");
pub(crate) const AGE: Column<kind::Int> =
    Column::new("age", "JVM", "collections that the objects have outlived: 1 to 15, which is 15 or more");
pub(crate) const OBJECT_BYTES: Column<kind::Int> =
    Column::quantity("object_bytes", "JVM", "objects of that age, as the collector counted them last").unit("bytes");
pub(crate) const SINCE_YOUNG_BYTES: Column<kind::Int> = Column::quantity(
    "since_young_bytes",
    "attribution",
    "allocated since the last collection, if there is a young one in the window, whose energy they share; else 0",
)
.unit("bytes");
pub(crate) const SINCE_OLD_BYTES: Column<kind::Int> = Column::quantity(
    "since_old_bytes",
    "attribution",
    "allocated since the last collection of the whole heap, if there is such a one in the window, or threads marked; else 0",
)
.unit("bytes");
pub(crate) const WINDOW_BYTES: Column<kind::Int> = Column::quantity(
    "window_bytes",
    "attribution",
    "allocated in the window, if nothing was collected or marked; else 0",
)
.unit("bytes");
pub(crate) const YOUNG_SURVIVED_BYTES: Column<kind::Int> = Column::quantity(
    "young_survived_bytes",
    "JVM",
    "about how much of what it allocated survived its first young collection, in the window",
)
.unit("bytes");
pub(crate) const OLD_SURVIVED_BYTES: Column<kind::Int> = Column::quantity(
    "old_survived_bytes",
    "JVM",
    "the same since the last collection of the whole heap, where since_old_bytes counts; else 0",
)
.unit("bytes");
pub(crate) const GC_CHARGED_BY_SURVIVAL_UJ: Column<kind::Int> = Column::quantity(
    "gc_charged_by_survival_uj",
    "attribution",
    "the same if what survived counts, and not what was allocated",
)
.unit("µJ");
pub(crate) const GC_CHARGED_UJ: Column<kind::Int> = Column::quantity(
    "gc_charged_uj",
    "attribution",
    "part of jvms.gc_uj that the path is charged for; no part of its energy in other tables",
)
.unit("µJ");

pub struct Collections;

pub struct CollectionRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub row: &'a CollectionRow,
}

impl CollectionRecord<'_> {
    fn started(&self) -> i64 {
        self.key.start.0.saturating_add(self.row.since_start_ns.div_euclid(1000))
    }
}

impl InWindow for Collections {
    fn key<'r>(row: &'r CollectionRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Collections {
    fn process<'r>(row: &'r CollectionRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl Table for Collections {
    const NAME: &'static str = "collections";
    const ROW: &'static str = "a garbage collection of a JVM in a window, with --alloc; one that lasts longer than a window \
                               has a row in each";
    const BY_POLICY: bool = true;
    type Row<'a> = CollectionRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let own = vec![
            COLLECTOR.of::<Self>(|r| Some(r.row.collector.raw().into())),
            KIND.of::<Self>(|r| Some(r.row.kind().name().into())),
            CAUSE.of::<Self>(|r| r.row.cause.as_ref().map(|cause| cause.raw().into())),
            STARTED.of::<Self>(|r| Some(r.started())),
            SINCE_START_NS.of::<Self>(|r| Some(r.row.since_start_ns)),
            DURATION_NS.of::<Self>(|r| int(r.row.duration_ns?)),
            BEFORE_BYTES.of::<Self>(|r| int(r.row.before_bytes)),
            AFTER_BYTES.of::<Self>(|r| int(r.row.after_bytes?)),
            ENERGY_UJ.of::<Self>(|r| int(r.row.energy.0)),
        ];
        joined([window_columns(), process_columns(), own, label_columns()])
    }
}

pub struct Ages;

pub struct AgeRecord<'a> {
    pub collection: CollectionRecord<'a>,
    pub age: u64,
    pub bytes: u64,
}

impl InWindow for Ages {
    fn key<'r>(row: &'r AgeRecord<'_>) -> &'r WindowKey<'r> {
        &row.collection.key
    }
}

impl OfProcess for Ages {
    fn process<'r>(row: &'r AgeRecord<'_>) -> &'r ProcessRef {
        row.collection.process
    }
}

impl Table for Ages {
    const NAME: &'static str = "ages";
    const ROW: &'static str = "objects of an age in the young generation after a young collection, with --alloc; only \
                               Serial and G1 count them";
    const BY_POLICY: bool = false;
    type Row<'a> = AgeRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let own = vec![
            COLLECTOR.of::<Self>(|r| Some(r.collection.row.collector.raw().into())),
            STARTED.of::<Self>(|r| Some(r.collection.started())),
            AGE.of::<Self>(|r| int(r.age)),
            OBJECT_BYTES.of::<Self>(|r| int(r.bytes)),
        ];
        joined([window_columns(), process_columns(), own])
    }
}

pub struct GcCharges;

pub struct ChargeRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub row: &'a ChargeRow,
    pub branch_id: i64,
    pub stack_id: i64,
}

impl InWindow for GcCharges {
    fn key<'r>(row: &'r ChargeRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for GcCharges {
    fn process<'r>(row: &'r ChargeRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl Table for GcCharges {
    const NAME: &'static str = "gc_charges";
    const ROW: &'static str = "a call path of a thread that is charged for its collector in a window, with --alloc; the path \
                               allocated, and need not have run in the window; the rows of a JVM sum to jvms.gc_uj less \
                               what G1 used to refine, unless nothing was seen to be allocated";
    const BY_POLICY: bool = true;
    type Row<'a> = ChargeRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let own = vec![
            TID.of::<Self>(|r| Some(r.row.tid.0.into())),
            THREAD_NAME.of::<Self>(|r| Some(r.row.name.raw().into())),
            CATEGORY.of::<Self>(|r| Some(r.row.category.name().into())),
            THREAD_START.of::<Self>(|r| r.key.boot.wall_time(r.row.start_boottime_ns)),
            BRANCH_ID.of::<Self>(|r| Some(r.branch_id)),
            STACK_ID.of::<Self>(|r| Some(r.stack_id)),
            SINCE_YOUNG_BYTES.of::<Self>(|r| int(r.row.since_young_bytes)),
            SINCE_OLD_BYTES.of::<Self>(|r| int(r.row.since_old_bytes)),
            WINDOW_BYTES.of::<Self>(|r| int(r.row.window_bytes)),
            YOUNG_SURVIVED_BYTES.of::<Self>(|r| int(r.row.young_survived_bytes)),
            OLD_SURVIVED_BYTES.of::<Self>(|r| int(r.row.old_survived_bytes)),
            GC_CHARGED_UJ.of::<Self>(|r| int(r.row.charged.0)),
            GC_CHARGED_BY_SURVIVAL_UJ.of::<Self>(|r| int(r.row.charged_by_survival.0)),
        ];
        joined([window_columns(), process_columns(), own, label_columns()])
    }
}
