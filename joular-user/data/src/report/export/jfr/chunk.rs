//! Writes a recording chunk by chunk. A chunk stands for itself: a header, events, the constants that they refer to, and what
//! types there are.

use std::io::Write;

use super::{
    about, constants,
    events::{self, During, Event},
    metadata,
    pools::Pools,
    values::Values,
};
use crate::{
    model::units::UnixMicros,
    report::export::{Result, timeline::unix_ns},
};

const MAGIC: [u8; 4] = *b"FLR\0";
const MAJOR: u16 = 2;
const MINOR: u16 = 1;

/// Bytes of a header.
const HEADER: usize = 68;

/// A tick is a nanosecond.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

/// Integers are compressed.
const FEATURES: u32 = 1;

/// Type of the event that has the constants.
const CHECKPOINT: u64 = 1;

/// Constants are complete up to here.
const FLUSH: u64 = 1;

/// Counts ticks from the first moment of a recording on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) start: UnixMicros,
}

impl Clock {
    pub(super) fn ticks(self, moment: UnixMicros) -> u64 {
        u64::try_from(moment.0.saturating_sub(self.start.0)).unwrap_or(0).saturating_mul(1000)
    }

    pub(super) fn during(self, start: UnixMicros, length_ns: u64) -> During {
        let start = self.ticks(start);
        During { start, end: start.saturating_add(length_ns) }
    }
}

/// The chunks of a recording.
pub(super) struct Chunks<'a> {
    out: &'a mut dyn Write,
    clock: Clock,
    pub(super) pools: Pools,
    /// How many bytes a chunk has before the next one begins.
    limit: usize,
    events: Values,
    fields: Values,
    /// When the first event begins and the last one ends.
    during: Option<During>,
    /// Until when chunks so far say what happened.
    covered: u64,
    written: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(out: &'a mut dyn Write, clock: Clock, pools: Pools, limit: usize) -> Self {
        let (events, fields) = (Values::default(), Values::default());
        Self { out, clock, pools, limit, events, fields, during: None, covered: 0, written: 0 }
    }

    pub(super) fn push<E: Event>(&mut self, event: &E) {
        let (start, end) = (event.start(), event.end());
        self.fields.clear();
        self.fields.natural(E::TYPE.id);
        self.fields.natural(start);
        event.fields(&mut self.fields);
        self.events.event(&self.fields);
        let during = self.during.get_or_insert(During { start, end });
        (during.start, during.end) = (during.start.min(start), during.end.max(end));
    }

    /// Ends the chunk if it is large enough.
    pub(super) fn cut_if_full(&mut self) -> Result<()> {
        if self.events.bytes().len().saturating_add(self.pools.size()) < self.limit { Ok(()) } else { self.cut() }
    }

    /// Ends the last chunk. There is one even if nothing happened.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.during.is_none() && self.written > 0 { Ok(()) } else { self.cut() }
    }

    fn cut(&mut self) -> Result<()> {
        let during = self.during.take().unwrap_or(During { start: 0, end: 0 });
        let (mut described, mut constants) = (Values::default(), Values::default());
        described.event(&metadata::event(&[constants::TYPES, events::TYPES, about::TYPES], during.start));
        constants.event(&self.constants(during.start));
        // Readers may take what describes the events for their end.
        let parts = [&self.events, &constants, &described].map(Values::bytes);
        // What another chunk covers does not count again: readers add up lengths.
        let added_ns = during.end.saturating_sub(during.start.max(self.covered));
        self.out.write_all(&self.header(during.start, added_ns, parts.map(<[u8]>::len)))?;
        for part in parts {
            self.out.write_all(part)?;
        }
        self.covered = self.covered.max(during.end);
        self.written += 1;
        self.events.clear();
        self.pools.clear();
        Ok(())
    }

    fn header(&self, start: u64, length_ns: u64, [events, constants, described]: [usize; 3]) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(MAJOR.to_be_bytes());
        header.extend(MINOR.to_be_bytes());
        let (constants_at, described_at) = (HEADER + events, HEADER + events + constants);
        for number in [
            (described_at + described) as u64,
            constants_at as u64,
            described_at as u64,
            unix_ns(self.clock.start).saturating_add(start),
            length_ns,
            start,
            TICKS_PER_SECOND,
        ] {
            header.extend(number.to_be_bytes());
        }
        header.extend(FEATURES.to_be_bytes());
        header
    }

    fn constants(&self, start: u64) -> Values {
        let mut fields = Values::default();
        // No length, and no other constants before these.
        [CHECKPOINT, start, 0, 0, FLUSH].into_iter().for_each(|number| fields.natural(number));
        self.pools.write(&mut fields);
        fields
    }
}
