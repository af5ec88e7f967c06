//! Limits how much of stacks and names is kept.

use super::names::NameLimits;

/// How much is kept. What finds no room becomes a marker in the paths that contain it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Call paths, and frames, before the table is built anew; or twice what is needed, if that is more.
    pub(super) branches: usize,
    pub(super) frames: usize,
    /// Bytes of names before the table is built anew.
    pub(super) text_bytes: usize,
    /// Raw stacks, and the frames of all of them.
    pub(super) stacks: usize,
    pub(super) stack_frames: usize,
    pub(super) names: NameLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A table as large as what a window needs is kept anyway. With more, the paths that a machine takes once in a
            // while make a recording larger for hours.
            branches: 1 << 10,
            frames: 1 << 15,
            text_bytes: 32 << 20,
            stacks: 1 << 20,
            stack_frames: 1 << 25,
            names: NameLimits::default(),
        }
    }
}
