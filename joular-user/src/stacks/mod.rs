//! Frames and call paths.

pub mod frame;
pub mod intern;
pub mod path;

pub use frame::{Frame, FrameKind, Marker};
pub use intern::{BranchIndex, FrameId, StackTable};
