//! Says which registers an instruction writes, and where it takes their values from.

/// A set of general registers, by number; numbers beyond 31 are in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(u32);

impl RegisterSet {
    pub const NONE: Self = Self(0);

    pub const fn of(register: usize) -> Self {
        if register < 32 { Self(1 << register) } else { Self::NONE }
    }

    /// The registers from one number to another, which is included.
    pub const fn range(first: usize, last: usize) -> Self {
        let mut set = Self::NONE;
        let mut register = first;
        while register <= last {
            set = set.with(register);
            register += 1;
        }
        set
    }

    pub const fn with(self, register: usize) -> Self {
        Self(self.0 | Self::of(register).0)
    }

    pub const fn contains(self, register: usize) -> bool {
        self.0 & Self::of(register).0 != 0
    }

    /// In order.
    pub fn registers(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |register| self.contains(*register))
    }
}

/// Where a register gets its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Register(usize),
    /// The word that is `offset` bytes behind where a register points at.
    Memory {
        base: usize,
        offset: u64,
    },
}

/// A register that gets a whole word as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub to: usize,
    pub from: Source,
}

/// What an instruction does to general registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// All that it writes.
    pub written: RegisterSet,
    /// Those of them whose value is another register's or of memory. It is taken before anything is written.
    pub moved: [Option<Moved>; 2],
}
