//! How good a user stack is: how it was read, and why it ends where it does.

use joular_ebpf::abi::{stack_flags, unwinder, walk_end};
use serde::{Deserialize, Serialize};

/// How a stack was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Unwinder {
    /// By the kernel's chain of frame pointers.
    #[default]
    FramePointers,
    /// By unwind tables, and through a JVM's code cache.
    Tables,
}

impl Unwinder {
    pub const fn name(self) -> &'static str {
        match self {
            Self::FramePointers => "frame-pointers",
            Self::Tables => "tables",
        }
    }
}

/// Why a stack ends where it does, on the root's side. The names are those of data
/// sets and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WalkEnd {
    /// A chain of frame pointers that ended: nobody can tell whether it was whole.
    #[default]
    Chain,
    /// At the thread's first function: it is whole.
    Root,
    /// It is deeper than what is kept.
    Depth,
    /// At an address in no code that is known.
    NoMapping,
    /// In native code without a usable rule.
    NoRule,
    /// The stack could not be read there.
    Unreadable,
    /// What would be the caller's frame makes no sense.
    Implausible,
    /// In the code cache, where no code lives.
    DeadCode,
    /// The rest of a virtual thread's stack is in the heap.
    Frozen,
    /// The kernel does not let programs run any longer.
    Budget,
}

impl WalkEnd {
    pub const ALL: [Self; 10] = [
        Self::Chain,
        Self::Root,
        Self::Depth,
        Self::NoMapping,
        Self::NoRule,
        Self::Unreadable,
        Self::Implausible,
        Self::DeadCode,
        Self::Frozen,
        Self::Budget,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Root => "root",
            Self::Depth => "depth",
            Self::NoMapping => "no-mapping",
            Self::NoRule => "no-rule",
            Self::Unreadable => "unreadable",
            Self::Implausible => "implausible",
            Self::DeadCode => "dead-code",
            Self::Frozen => "frozen",
            Self::Budget => "budget",
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            walk_end::CHAIN => Self::Chain,
            walk_end::ROOT => Self::Root,
            walk_end::DEPTH => Self::Depth,
            walk_end::NO_MAPPING => Self::NoMapping,
            walk_end::NO_RULE => Self::NoRule,
            walk_end::UNREADABLE => Self::Unreadable,
            walk_end::DEAD_CODE => Self::DeadCode,
            walk_end::FROZEN => Self::Frozen,
            walk_end::BUDGET => Self::Budget,
            // Also of codes that a newer kernel side may have.
            _ => Self::Implausible,
        }
    }
}

/// See the module's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackQuality {
    pub unwinder: Unwinder,
    pub end: WalkEnd,
}

impl StackQuality {
    /// Of the flags of a stack record.
    pub const fn of_flags(flags: u32) -> Self {
        let unwinder = match stack_flags::unwinder(flags) {
            unwinder::TABLES => Unwinder::Tables,
            _ => Unwinder::FramePointers,
        };
        Self { unwinder, end: WalkEnd::from_code(stack_flags::end(flags)) }
    }

    /// Cut short because it is deeper than what is kept.
    pub const TRUNCATED: Self = Self { unwinder: Unwinder::FramePointers, end: WalkEnd::Depth };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_quality_mean_the_same() {
        for (code, end) in (0..).zip(WalkEnd::ALL) {
            let quality = StackQuality::of_flags(stack_flags::user(unwinder::TABLES, code));
            assert_eq!(quality, StackQuality { unwinder: Unwinder::Tables, end });
        }
        assert_eq!(StackQuality::of_flags(stack_flags::KERNEL), StackQuality::default());
        assert_eq!(StackQuality::of_flags(stack_flags::user(9, 99)).end, WalkEnd::Implausible);
    }
}
