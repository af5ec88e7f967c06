//! Frames and call paths.

pub mod frame;
pub mod intern;

pub use frame::{Frame, FrameKind, Marker};
pub use intern::{BranchIndex, FrameId, StackTable};
