//! Says by which names a process can become a target, as far as the kernel's programs look at them.

use super::{COMM_LEN, Comm};

/// Most patterns that the programs compare names with.
pub const MAX_COMM_PATTERNS: usize = 16;

/// How a name begins. The zero behind a name is a part of it, so a whole name is a beginning too.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommPattern {
    value: [u64; 2],
    /// Which bits of a name count.
    mask: [u64; 2],
}

impl CommPattern {
    /// Names that begin so; of text that is longer than a name, the part that fits.
    pub fn beginning(text: &[u8]) -> Self {
        let mut value = Comm::default();
        let mut mask = Comm::default();
        for ((value, mask), byte) in value.iter_mut().zip(&mut mask).zip(text) {
            (*value, *mask) = (*byte, u8::MAX);
        }
        Self { value: words(&value), mask: words(&mask) }
    }

    /// One name.
    pub fn exact(name: &[u8]) -> Self {
        let mut pattern = Self::beginning(name);
        let mut mask = Comm::default();
        mask[..=name.len().min(COMM_LEN - 1)].fill(u8::MAX);
        pattern.mask = words(&mask);
        pattern
    }

    #[inline(always)]
    pub fn matches(&self, comm: &Comm) -> bool {
        let name = words(comm);
        (name[0] & self.mask[0]) == self.value[0] && (name[1] & self.mask[1]) == self.value[1]
    }
}

#[inline(always)]
fn words(comm: &Comm) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *comm;
    [u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u64::from_ne_bytes([i, j, k, l, m, n, o, p])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(name: &str) -> Comm {
        let mut comm = Comm::default();
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    #[test]
    fn a_name_is_matched_whole_and_a_beginning_at_its_begin() {
        for (pattern, name, expected) in [
            (CommPattern::exact(b"java"), "java", true),
            (CommPattern::exact(b"java"), "javac", false),
            (CommPattern::exact(b"java"), "jav", false),
            (CommPattern::exact(b"fifteen-letters"), "fifteen-letters", true),
            (CommPattern::exact(b"fifteen-letters"), "fifteen-letter", false),
            (CommPattern::exact(b""), "", true),
            (CommPattern::exact(b""), "x", false),
            (CommPattern::beginning(b"ja"), "java", true),
            (CommPattern::beginning(b"ja"), "j", false),
            (CommPattern::beginning(b"worker-of-"), "worker-of-nine", true),
            (CommPattern::beginning(b"worker-of-"), "worker-at-nine", false),
            (CommPattern::beginning(b""), "anything", true),
        ] {
            assert_eq!(pattern.matches(&comm(name)), expected, "{pattern:?} and {name:?}");
        }
    }
}
