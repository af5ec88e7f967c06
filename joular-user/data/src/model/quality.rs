//! Says how good a stack is: how it was read, and why it ends where it does.
//!
//! A call path has the quality of its user part, unless a part is missing altogether, which says
//! more. Quality is part of what a stack id stands for. So one stack has one quality, and every
//! figure by quality is a sum of branches.

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
    pub const ALL: [Self; 2] = [Self::FramePointers, Self::Tables];

    /// Name in data sets.
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
    /// At the end of a chain of frame pointers: nobody can tell whether it was whole.
    #[default]
    Chain,
    /// At the thread's first function: it is whole.
    Root,
    /// It is deeper than what is kept.
    Depth,
    /// At an address outside all known code.
    NoMapping,
    /// In native code without a usable rule.
    NoRule,
    /// The stack could not be read there.
    Unreadable,
    /// The caller's frame would make no sense.
    Implausible,
    /// In the code cache, where no code lives.
    DeadCode,
    /// The rest of a virtual thread's stack is in the heap.
    Frozen,
    /// The kernel does not let the programs run any longer.
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

    /// Whether the root is there; nobody can tell for a chain of frame pointers.
    pub const fn is_complete(self) -> Option<bool> {
        match self {
            Self::Root => Some(true),
            Self::Chain => None,
            _ => Some(false),
        }
    }

    /// As the kernel side has it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Chain => walk_end::CHAIN,
            Self::Root => walk_end::ROOT,
            Self::Depth => walk_end::DEPTH,
            Self::NoMapping => walk_end::NO_MAPPING,
            Self::NoRule => walk_end::NO_RULE,
            Self::Unreadable => walk_end::UNREADABLE,
            Self::Implausible => walk_end::IMPLAUSIBLE,
            Self::DeadCode => walk_end::DEAD_CODE,
            Self::Frozen => walk_end::FROZEN,
            Self::Budget => walk_end::BUDGET,
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

/// How one stack was read and why it ends.
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

/// How a call path was obtained, and why it ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathQuality {
    /// The stack was walked.
    Walked(StackQuality),
    /// A kernel thread's, which has no user stack.
    Kernel,
    /// A thread's that ends: the kernel has taken its memory, so that it has no user stack any more.
    Ended,
    /// A part of the stack could not be read at all.
    NoStack,
    /// A part of the stack was read, but did not reach user space.
    LostStack,
    /// No sample hit the thread: there is time, but no stack.
    NoSample,
}

impl Default for PathQuality {
    fn default() -> Self {
        Self::Walked(StackQuality::default())
    }
}

impl PathQuality {
    /// Those of which nothing was walked.
    pub const NOT_WALKED: [Self; 5] = [Self::Kernel, Self::Ended, Self::NoStack, Self::LostStack, Self::NoSample];

    /// `None` where nothing was walked.
    pub const fn unwinder(self) -> Option<Unwinder> {
        match self {
            Self::Walked(quality) => Some(quality.unwinder),
            _ => None,
        }
    }

    /// Why it ends where it does, by the name that it has in data sets.
    pub const fn end_name(self) -> &'static str {
        match self {
            Self::Walked(quality) => quality.end.name(),
            Self::Kernel => "kernel",
            Self::Ended => "ended",
            Self::NoStack => "no-stack",
            Self::LostStack => "lost-stack",
            Self::NoSample => "no-sample",
        }
    }

    /// The quality with these names.
    pub fn of_names(unwinder: Option<&str>, end: &str) -> Option<Self> {
        let Some(unwinder) = unwinder else {
            return Self::NOT_WALKED.into_iter().find(|quality| quality.end_name() == end);
        };
        Some(Self::Walked(StackQuality {
            unwinder: Unwinder::ALL.into_iter().find(|known| known.name() == unwinder)?,
            end: WalkEnd::ALL.into_iter().find(|known| known.name() == end)?,
        }))
    }

    /// Whether the path reaches the thread's first function; `None`: nobody can tell.
    pub const fn is_complete(self) -> Option<bool> {
        match self {
            Self::Walked(quality) => quality.end.is_complete(),
            Self::Kernel | Self::Ended => Some(true),
            Self::NoStack | Self::LostStack | Self::NoSample => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_data_sets_mean_one_quality_each() {
        let walked = Unwinder::ALL.into_iter().flat_map(|unwinder| {
            WalkEnd::ALL.into_iter().map(move |end| PathQuality::Walked(StackQuality { unwinder, end }))
        });
        for quality in walked.chain(PathQuality::NOT_WALKED) {
            let unwinder = quality.unwinder().map(Unwinder::name);
            assert_eq!(PathQuality::of_names(unwinder, quality.end_name()), Some(quality));
        }
        for (unwinder, end) in [(None, "root"), (Some("tables"), "kernel"), (Some("magic"), "root"), (None, "")] {
            assert_eq!(PathQuality::of_names(unwinder, end), None, "{unwinder:?} {end}");
        }
    }

    #[test]
    fn flags_and_quality_mean_the_same() {
        for (code, end) in (0..).zip(WalkEnd::ALL) {
            let quality = StackQuality::of_flags(stack_flags::user(unwinder::TABLES, code));
            assert_eq!((quality, end.code()), (StackQuality { unwinder: Unwinder::Tables, end }, code));
        }
        assert_eq!(StackQuality::of_flags(stack_flags::KERNEL), StackQuality::default());
        assert_eq!(StackQuality::of_flags(stack_flags::user(9, 99)).end, WalkEnd::Implausible);
    }
}
