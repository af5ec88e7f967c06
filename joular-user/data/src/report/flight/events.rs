//! Goes through the events of a chunk.

use std::collections::{HashMap, HashSet};

use super::{
    Chunk,
    constants::{CHECKPOINT, Constants},
    error::Damage,
    header::{Header, SIZE},
    input::Input,
    types::{Type, Types},
    values::{Budget, Scalar, Values},
};

/// Fields that an event's text has.
const MOST_FIELDS: usize = 8;

/// Fields that are told elsewhere, or have no text.
const APART: [&str; 4] = ["startTime", "duration", "eventThread", "stackTrace"];

/// Something that happened.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    of: &'a Type,
    /// Behind moment and duration.
    fields: Input<'a>,
    values: Values<'a>,
    /// When it began: nanoseconds since 1970 by the wall clock.
    pub start_ns: i64,
    /// `None`: its type has no durations.
    pub length_ns: Option<u64>,
}

impl Event<'_> {
    /// The name of its type, such as `jdk.GarbageCollection`.
    pub fn name(&self) -> &str {
        &self.of.name
    }

    /// What its fields say, without moments, stacks and figures with units: `name G1New, cause Allocation Failure`. Texts are as
    /// they were recorded, whatever is in them.
    pub fn text(&self) -> String {
        let (mut said, mut thread) = (Vec::new(), None);
        self.each_field(|field, value| match (field.name.as_str(), value) {
            ("eventThread", value) => thread = Some(value),
            (name, _) if APART.contains(&name) => {}
            (_, Scalar::Integer(_) | Scalar::Real(_)) if !field.is_plain => {}
            (name, value) if said.len() < MOST_FIELDS => said.push(format!("{name} {value}")),
            _ => {}
        });
        said.extend(thread.map(|thread| format!("thread {thread}")));
        said.join(", ")
    }

    /// A field that is an integer.
    pub fn integer(&self, wanted: &str) -> Option<i64> {
        let mut found = None;
        self.each_field(|field, value| {
            if let (true, Scalar::Integer(value)) = (field.name == wanted, value) {
                found = Some(value);
            }
        });
        found
    }

    /// Shows the fields that are a number or a text, as far as they can be read.
    fn each_field(&self, mut take: impl FnMut(&super::types::Field, Scalar)) {
        let mut input = self.fields;
        let mut budget = Budget::of_event(input.left());
        for field in self.of.fields.iter().skip(if self.of.has_duration() { 2 } else { 1 }) {
            match self.values.field(&mut input, field, &mut budget) {
                Ok(Some(value)) => take(field, value),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }
}

impl Chunk {
    /// Calls `take` for each event whose type's name `wants` allows, in the order of the chunk, which need not be that of time.
    ///
    /// # Errors
    /// If the chunk is damaged.
    pub(super) fn events(
        &self,
        mut wants: impl FnMut(&str) -> bool,
        mut take: impl FnMut(&Event<'_>),
    ) -> Result<(), Damage> {
        let types: HashMap<u64, &Type> =
            self.types.iter().filter(|(_, of)| of.is_of_events() && wants(&of.name)).collect();
        let constants = self.constants(&types)?;
        let values = Values { chunk: &self.bytes, types: &self.types, constants: &constants };
        self.each(|id, fields| {
            if let Some(of) = types.get(&id) {
                take(&event(of, fields, values, &self.header)?);
            }
            Ok(())
        })
    }

    /// How many events there are of each type that has any, by name.
    ///
    /// # Errors
    /// If the chunk is damaged.
    pub(super) fn counts(&self) -> Result<Vec<(&str, u64)>, Damage> {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        self.each(|id, _| {
            *counts.entry(id).or_default() += 1;
            Ok(())
        })?;
        let named = |(id, count)| self.types.get(id).filter(|of| of.is_of_events()).map(|of| (of.name.as_str(), count));
        Ok(counts.into_iter().filter_map(named).collect())
    }

    /// All constants that these events can refer to.
    fn constants(&self, types: &HashMap<u64, &Type>) -> Result<Constants, Damage> {
        let needed = needed(&self.types, types);
        let mut budget = Budget::of_bytes(self.bytes.len());
        let mut constants = Constants::default();
        self.each(|id, fields| match id {
            CHECKPOINT => constants.take(fields, &self.types, |of| needed.contains(&of), &mut budget),
            _ => Ok(()),
        })?;
        Ok(constants)
    }

    /// Shows the type and the fields of everything in the chunk, constants and descriptions of types included.
    fn each<'a>(&'a self, mut take: impl FnMut(u64, Input<'a>) -> Result<(), Damage>) -> Result<(), Damage> {
        let mut at = SIZE;
        while at < self.bytes.len() {
            let (id, fields) = Input::event(&self.bytes, at)?;
            at = fields.end();
            take(id, fields)?;
        }
        Ok(())
    }
}

fn event<'a>(of: &'a Type, mut fields: Input<'a>, values: Values<'a>, header: &Header) -> Result<Event<'a>, Damage> {
    let start_ns = header.moment_ns(fields.natural()?.cast_signed());
    let length_ns = if of.has_duration() { Some(header.duration_ns(fields.natural()?.cast_signed())) } else { None };
    Ok(Event { of, fields, values, start_ns, length_ns })
}

/// Types whose constants these events can refer to, one through the other. Stacks are not needed, and are most of them.
fn needed(types: &Types, events: &HashMap<u64, &Type>) -> HashSet<u64> {
    let mut needed: HashSet<u64> = types.texts.into_iter().collect();
    let mut open: Vec<&Type> = events.values().copied().collect();
    while let Some(described) = open.pop() {
        for field in described.fields.iter().filter(|field| field.name != "stackTrace") {
            if needed.insert(field.of) {
                open.extend(types.get(field.of));
            }
        }
    }
    needed
}
