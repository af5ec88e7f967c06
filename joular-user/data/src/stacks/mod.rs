//! Makes frames and call paths.

mod ids;
pub mod intern;
pub mod jvm_work;
pub mod path;

pub use ids::{branch_id, stack_id};
pub use intern::{BranchIndex, FrameId, PathFacts, StackTable};
pub use jvm_work::JvmWork;
