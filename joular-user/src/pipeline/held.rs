//! Holds events back, in their order, while readings among them are not complete.

use std::collections::{HashMap, VecDeque};

use joular_data::events::{EnergyReading, Event, RawStack};

#[derive(Debug, Default)]
pub(super) struct Held {
    events: VecDeque<Event>,
    /// How many events there were before the first one here.
    gone: usize,
    /// Which event has a stack.
    stacks: HashMap<u64, usize>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn push(&mut self, event: Event) {
        if let Event::Stack(stack) = &event {
            self.stacks.insert(stack.id, self.gone + self.events.len());
        }
        self.events.push_back(event);
    }

    /// The next event that need not wait. `complete` says whether readings are complete, and may change them.
    pub(super) fn next(&mut self, complete: impl FnOnce(&mut EnergyReading) -> bool) -> Option<Event> {
        if let Event::Energy(reading) = self.events.front_mut()?
            && !complete(reading)
        {
            return None;
        }
        let event = self.events.pop_front()?;
        if let Event::Stack(stack) = &event
            && self.stacks.get(&stack.id) == Some(&self.gone)
        {
            self.stacks.remove(&stack.id);
        }
        self.gone += 1;
        Some(event)
    }

    pub(super) fn stack(&self, id: u64) -> Option<&RawStack> {
        match self.events.get(self.stacks.get(&id)?.checked_sub(self.gone)?)? {
            Event::Stack(stack) => Some(stack),
            _ => None,
        }
    }
}
