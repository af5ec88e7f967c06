//! Says what an object tells that the probes see: it is the first that did not fit into its thread's allocation buffer,
//! or one too large for any, or it tells nothing.
//!
//! If the end of a buffer is equally likely to be anywhere, the larger an object is, the more likely the end falls in it.
//! So the first objects that do not fit are of each kind in proportion to its bytes, whatever the sizes are (the inspection
//! paradox of renewal theory), and each stands for as many bytes as the buffer had room for. HotSpot keeps a buffer with
//! much room left, and allocates larger objects outside: what does not fit later was chosen by its size, and tells nothing.
//! Nor does the first object of a buffer after a collection, which ends buffers anywhere. An object that is as large as the
//! room is seen each time, and stands for itself.
//!
//! [`super::ends`] notices where ends fall at the same places again and again.

use super::{
    allocation::MOST_BUFFER_BYTES,
    ends::{EndCounts, Ends},
};

/// How much of a buffer HotSpot may keep at its end, for what is prefetched: `AllocatePrefetchDistance` of up to 512 bytes and
/// five cache lines (`ThreadLocalAllocBuffer::startup_initialization`, `end_reserve`).
const RESERVED_BYTES: u64 = 1024;

/// What is kept of a thread between two objects that are seen. The map of them has the least recently used give way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferState {
    /// What the thread had allocated when its buffer began, the buffer's first object included.
    before: u64,
    /// Of what it has allocated since: outside of the buffer.
    outside: u64,
    /// What the buffer has room for after its first object. 0: there is no buffer.
    room: u64,
    /// 1: an object has not fitted into it.
    is_crossed: u64,
    ends: Ends,
}

/// An object that a probe sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenObject {
    pub bytes: u64,
    /// The address of its class.
    pub klass: u64,
    /// What its thread has allocated with it.
    pub allocated_bytes: u64,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenIn {
    /// It is the first in a new buffer of so many bytes.
    NewBuffer(u64),
    /// It did not fit into the buffer, which is kept.
    Outside,
    /// The thread has no buffer: a collection has ended it.
    NoBuffer,
}

/// What an object tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// 0: it is not to be sampled.
    pub stands_for_bytes: u64,
    pub ends: EndCounts,
}

impl BufferState {
    /// Of a thread that nothing is known of: what was before tells nothing.
    #[inline(always)]
    pub fn first(object: &SeenObject, seen_in: SeenIn) -> Self {
        let mut state = Self::default();
        state.go_on(object, seen_in);
        state
    }

    /// Takes the next object. `random` is any number, all equally likely.
    #[inline(always)]
    pub fn see(&mut self, object: &SeenObject, seen_in: SeenIn, random: u32) -> Told {
        let filled = object.allocated_bytes.wrapping_sub(object.bytes).wrapping_sub(self.before);
        let filled = filled.wrapping_sub(self.outside);
        let mut told = Told::default();
        if object.bytes >= self.room {
            // Without a buffer before it, the first object of a new one is like any other.
            let is_like_any = self.room == 0 && matches!(seen_in, SeenIn::NewBuffer(_));
            told.stands_for_bytes = if is_like_any { 0 } else { object.bytes };
        } else if self.is_crossed == 0
            // More than any buffer: the thread's number is another's by now.
            && filled <= MOST_BUFFER_BYTES
            && filled.wrapping_add(object.bytes).wrapping_add(RESERVED_BYTES) > self.room
        {
            told = Told {
                stands_for_bytes: self.room,
                ends: self.ends.see(object, filled, self.room.wrapping_sub(filled), random),
            };
            self.is_crossed = 1;
        }
        self.go_on(object, seen_in);
        told
    }

    #[inline(always)]
    fn go_on(&mut self, object: &SeenObject, seen_in: SeenIn) {
        match seen_in {
            SeenIn::Outside => {
                self.outside = self.outside.wrapping_add(object.bytes);
                return;
            }
            SeenIn::NewBuffer(bytes) => {
                self.room = if bytes > object.bytes { bytes.wrapping_sub(object.bytes) } else { 0 };
                self.is_crossed = 0;
            }
            SeenIn::NoBuffer => self.room = 0,
        }
        (self.before, self.outside) = (object.allocated_bytes, 0);
    }
}

/// For how many bytes an object is sampled that stands for so many; `None`: it is not. One that stands for fewer than
/// `gap_bytes` is sampled with the chance at which such samples stand for `gap_bytes` each. `random` is any number, all
/// equally likely.
#[inline(always)]
pub const fn sampled_bytes(stands_for_bytes: u64, gap_bytes: u32, random: u32) -> Option<u64> {
    let gap = gap_bytes as u64;
    if stands_for_bytes >= gap {
        Some(stands_for_bytes)
    } else if (random as u64 * gap) >> 32 < stands_for_bytes {
        Some(gap)
    } else {
        None
    }
}
