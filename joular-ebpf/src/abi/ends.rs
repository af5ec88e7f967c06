//! Notices where a thread's allocations keep step with its buffers.
//!
//! A program that repeats a cycle may have its buffers end again and again at the same places of the cycle. Then how often
//! an object is the one that does not fit says nothing of how many bytes its kind has. So it is counted how often an end
//! is foreseen: after an end, the next one is expected where it fell the last time that an end was like this one. Two ends
//! are alike if they fell in objects of one class and size, in the same part of them. If ends are independent of each
//! other, they are foreseen by chance only, and that is counted too: an end can fall in any part of an object.

use super::buffer::SeenObject;

/// Into how many parts an object is divided to say where an end fell in it.
const PARTS: u64 = 16;
/// How many kinds of ends are remembered of a thread, with what came after each.
const REMEMBERED_ENDS: usize = 32;
/// [`EndCounts::by_chance`] of an end that is certain.
pub const CERTAIN: u64 = 4096;

/// Ends of buffers, and how many fell where they were foreseen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndCounts {
    pub seen: u32,
    pub foreseen: u32,
    /// How many would have by chance, in parts of [`CERTAIN`].
    pub by_chance: u64,
}

impl EndCounts {
    #[inline(always)]
    pub const fn add(&mut self, other: &Self) {
        self.seen = self.seen.wrapping_add(other.seen);
        self.foreseen = self.foreseen.wrapping_add(other.foreseen);
        self.by_chance = self.by_chance.wrapping_add(other.by_chance);
    }
}

/// What is kept of where ends fell.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    /// Places in buffers and sizes of objects are multiples of this; 0: none is known.
    unit: u64,
    /// The last end; 0: there is none.
    last: u32,
    /// The kind of object of an earlier end, drawn at random: how often the next end is in that kind is chance.
    earlier: u32,
    /// What came last after an end like that.
    after: [u16; REMEMBERED_ENDS],
}

impl Ends {
    /// Takes an end that fell in an object, when so many bytes of the buffer were filled and so many were left.
    #[inline(always)]
    pub(super) fn see(&mut self, object: &SeenObject, filled: u64, left: u64, random: u32) -> EndCounts {
        self.unit = common_divisor(self.unit, common_divisor(object.bytes, filled));
        let (part, chance) = part_of(object.bytes, left, self.unit);
        let kind = mixed(object.klass ^ object.bytes.rotate_left(48));
        let end = mixed(u64::from(kind) ^ (part.wrapping_add(1) << 32)) | 1;
        let mut counts = EndCounts::default();
        if self.last != 0 {
            let next = &mut self.after[self.last as usize >> 1 & (REMEMBERED_ENDS - 1)];
            let is_foreseen = *next == (end >> 16) as u16;
            *next = (end >> 16) as u16;
            let by_chance = if self.earlier == kind { chance } else { 0 };
            counts = EndCounts { seen: 1, foreseen: u32::from(is_foreseen), by_chance };
        }
        self.last = end;
        if self.earlier == 0 || random & 7 == 0 {
            self.earlier = kind;
        }
        counts
    }
}

/// In which part of an object an end fell, and the chance of that, in parts of [`CERTAIN`]. Ends are whole units apart.
#[inline(always)]
const fn part_of(bytes: u64, left: u64, unit: u64) -> (u64, u64) {
    if bytes == 0 || unit == 0 {
        return (0, CERTAIN);
    }
    let (within, units) = (left % bytes, bytes / unit);
    match units {
        0 | 1 => (0, CERTAIN),
        2..PARTS => (within / unit, CERTAIN / units),
        _ => (within * PARTS / bytes, CERTAIN / PARTS),
    }
}

/// Euclid's. Numbers of 40 bits take at most 60 steps.
#[inline(always)]
pub(super) const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    let mut step = 0;
    while step < 60 {
        if b == 0 {
            return a;
        }
        (a, b) = (b, a % b);
        step += 1;
    }
    1
}

/// A number that differs where this one does, in all its bits.
#[inline(always)]
const fn mixed(number: u64) -> u32 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_divisors() {
        for (a, b, expected) in
            [(0, 24, 24), (24, 0, 24), (48, 36, 12), (8208, 64, 16), ((1 << 40) - 1, (1 << 39) - 1, 1)]
        {
            assert_eq!(common_divisor(a, b), expected);
        }
    }

    #[test]
    fn an_end_falls_in_as_many_parts_of_an_object_as_it_has_units() {
        for (bytes, left, unit, expected) in [
            (24, 8, 24, (0, CERTAIN)),
            (24, 16, 8, (2, CERTAIN / 3)),
            (24, 40, 8, (2, CERTAIN / 3)),
            (128, 127, 8, (15, CERTAIN / 16)),
            (8208, 4104, 16, (8, CERTAIN / 16)),
            (0, 8, 8, (0, CERTAIN)),
            (8, 8, 0, (0, CERTAIN)),
        ] {
            assert_eq!(part_of(bytes, left, unit), expected, "{bytes} {left} {unit}");
        }
    }

    #[test]
    fn an_end_is_foreseen_if_it_came_after_one_like_the_last() {
        let mut ends = Ends::default();
        let mut see = |klass, left| {
            let object = SeenObject { bytes: 1600, klass, allocated_bytes: 0 };
            ends.see(&object, 8, left, 0)
        };
        let foreseen = [(0x1000, 0), (0x2000, 700), (0x1000, 0), (0x2000, 700), (0x1000, 900), (0x2000, 700)]
            .map(|(klass, left)| see(klass, left).foreseen);
        assert_eq!(foreseen, [0, 0, 0, 1, 0, 0]);
        let EndCounts { seen, by_chance, .. } = see(0x2000, 0);
        assert_eq!((seen, by_chance), (1, CERTAIN / 16), "the one before was of this class");
    }
}
