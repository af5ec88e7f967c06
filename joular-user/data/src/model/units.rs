//! Defines newtypes for values that must not be mixed up: ids, addresses, times, energies.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

newtype!(
    /// A process (the kernel's tgid), as seen in the host's PID namespace.
    Pid(u32)
);
newtype!(
    /// A thread (the kernel's pid), as seen in the host's PID namespace.
    Tid(u32)
);
newtype!(
    /// A virtual address, of a process or of the kernel.
    Address(u64)
);
newtype!(
    /// Nanoseconds on `CLOCK_MONOTONIC`, the clock of `bpf_ktime_get_ns`.
    MonotonicNs(u64)
);
newtype!(
    /// Microseconds since 1970-01-01 UTC.
    UnixMicros(i64)
);
newtype!(
    /// Energy in microjoules. All energy arithmetic is in these integers; joules as floating point
    /// exist only for display.
    MicroJoules(u64)
);

impl MicroJoules {
    /// For display only.
    #[allow(clippy::cast_precision_loss, reason = "a double keeps 2^53 µJ, 9 GJ, exactly")]
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for MicroJoules {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Self::saturating_add)
    }
}

impl MonotonicNs {
    /// Nanoseconds from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
