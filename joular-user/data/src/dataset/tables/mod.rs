//! Defines the tables of the data set, a file each: the table's columns
//! ([`crate::dataset::column::Column`]), what its rows are made of, and how each column takes its
//! value from a row. Columns that several tables share are in [`shared`].

pub(crate) mod allocations;
pub(crate) mod amounts;
pub(crate) mod collections;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod frames;
pub(crate) mod io;
pub(crate) mod jvms;
pub(crate) mod list;
pub(crate) mod marks;
pub(crate) mod methods;
pub(crate) mod processes;
pub(crate) mod quality;
pub(crate) mod rollup;
pub(crate) mod runs;
pub(crate) mod shared;
pub(crate) mod stacks;
pub(crate) mod weights;
pub(crate) mod windows;
pub(crate) mod work;

pub(crate) use self::list::{Buffers, ForRows, ForTable, OF_ROLLUPS, TABLES};
use self::shared::{InWindow, OfProcess, joined, label_columns, process_columns, window_columns};
pub use self::{
    allocations::{AllocationRecord, Allocations},
    amounts::{AmountRecord, Amounts},
    collections::{AgeRecord, Ages, ChargeRecord, CollectionRecord, Collections, GcCharges},
    counters::{CounterRecord, Counters},
    frames::FrameTable,
    io::{Io, IoRecord},
    jvms::{JvmRecord, Jvms},
    marks::{MarkRecord, Marks},
    methods::{MethodRecord, Methods},
    processes::{ProcessRecord, Processes},
    quality::{Quality, QualityRecord},
    rollup::{RollupBranchRecord, RollupBranches, RollupMethodRecord, RollupMethods},
    runs::{RunRecord, Runs},
    shared::{Boot, WindowKey},
    stacks::{StackRecord, Stacks},
    weights::{WeightRecord, Weights},
    windows::{WindowRecord, Windows},
    work::{BranchRecord, Branches, ThreadRecord, Threads, Work},
};
use super::column::{Column, ColumnOf, Table, int, kind};
use crate::model::units::UnixMicros;
