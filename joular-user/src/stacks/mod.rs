//! Frames and call paths.

pub mod frame;
mod ids;
pub mod intern;
pub mod jvm_work;
pub mod path;
pub mod quality;

pub use frame::{Frame, FrameKind, Marker};
pub use ids::{branch_id, stack_id};
pub use intern::{BranchIndex, FrameId, PathFacts, StackTable};
pub use jvm_work::JvmWork;
pub use quality::{PathQuality, StackQuality, Unwinder, WalkEnd};
