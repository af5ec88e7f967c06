//! Reads recordings for tests, by what they say of themselves, with the reader that recordings of JVMs are read with. It checks
//! that every size adds up, and that every number of a constant has one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::report::flight::{
    header::Header,
    input::{Input, Text},
    types::{Element, Encoding, Field, Types, described},
};

/// An event, with its constants in their places.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) fields: Value,
}

impl Event {
    pub(super) fn natural(&self, field: &str) -> u64 {
        self.fields[field].as_u64().unwrap_or_else(|| panic!("{field} of {self:?}"))
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.fields[field].as_str().unwrap_or_else(|| panic!("{field} of {self:?}"))
    }
}

#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) start_ns: u64,
    pub(super) length_ns: u64,
    pub(super) start_ticks: u64,
    pub(super) events: Vec<Event>,
    /// How many constants there are of each type.
    pub(super) constants: BTreeMap<String, usize>,
}

/// All chunks of a recording.
pub(super) fn chunks(file: &[u8]) -> Vec<Chunk> {
    let (mut chunks, mut rest) = (Vec::new(), file);
    while !rest.is_empty() {
        let (chunk, size) = chunk(rest);
        chunks.push(chunk);
        rest = &rest[size..];
    }
    chunks
}

fn chunk(bytes: &[u8]) -> (Chunk, usize) {
    assert_eq!(&bytes[4..8], [0, 2, 0, 1]);
    let header = Header::read(bytes).unwrap();
    assert_eq!((header.ticks_per_second, &bytes[64..68]), (1_000_000_000, &[0, 0, 0, 1][..]));
    let constants_at = u64::from_be_bytes(bytes[16..24].try_into().unwrap());
    let size = usize::try_from(header.size).unwrap();
    let bytes = &bytes[..size];

    let types = Types::read(bytes, header.metadata_at).unwrap();
    described(bytes, header.metadata_at, |root| {
        check(root, &types);
        Ok(())
    })
    .unwrap();
    let (id, mut input) = Input::event(bytes, usize::try_from(constants_at).unwrap()).unwrap();
    assert_eq!(id, 1);
    let mut reader = Reader { types: &types, constants: BTreeMap::new(), used: Vec::new() };
    reader.read_constants(&mut input);
    let constants = reader.constants.iter().map(|(of, all)| (reader.name(*of).to_owned(), all.len())).collect();

    let (mut events, mut at) = (Vec::new(), 68);
    while at < bytes.len() {
        let (id, mut input) = Input::event(bytes, at).unwrap();
        at = input.end();
        if id > 1 {
            events.push(reader.event(id, &mut input));
        }
    }
    assert_eq!(at, bytes.len(), "the events' sizes add up to the chunk's");
    assert!(constants_at < header.metadata_at, "JMC reads no event behind what describes them");
    let [start_ns, start_ticks] = [header.start_ns, header.start_ticks].map(i64::cast_unsigned);
    (Chunk { start_ns, length_ns: header.length_ns, start_ticks, events, constants }, size)
}

fn check(root: &Element<'_>, types: &Types) {
    assert_eq!(root.named("region").next().unwrap().number("gmtOffset"), Some(0));
    for class in root.classes() {
        let fields: Vec<&Element<'_>> = class.named("field").collect();
        let annotations = fields.iter().flat_map(|field| field.named("annotation")).chain(class.named("annotation"));
        for element in annotations.chain(fields.iter().copied()) {
            assert!(types.get(element.number("class").unwrap()).is_some(), "a type that is not described");
        }
        let is_of_events = fields.first().is_some_and(|first| first.attribute("name") == Some("startTime"));
        assert_eq!(
            is_of_events,
            class.attribute("superType") == Some("jdk.jfr.Event"),
            "{:?}",
            class.attribute("name")
        );
    }
}

struct Reader<'a> {
    types: &'a Types,
    /// By type and number.
    constants: BTreeMap<u64, BTreeMap<u64, Value>>,
    /// Types and numbers that constants refer to.
    used: Vec<(u64, u64)>,
}

impl<'a> Reader<'a> {
    fn name(&self, of: u64) -> &'a str {
        &self.types.get(of).unwrap().name
    }

    fn read_constants(&mut self, input: &mut Input<'_>) {
        let [_ticks, length, before] = std::array::from_fn(|_| input.natural().unwrap());
        assert_eq!((length, before, input.byte().unwrap()), (0, 0, 1));
        for _ in 0..input.natural().unwrap() {
            let (of, count) = (input.natural().unwrap(), input.natural().unwrap());
            assert!(count > 0, "readers refuse an empty pool");
            for _ in 0..count {
                let number = input.natural().unwrap();
                let value = self.value(of, input);
                let before = self.constants.entry(of).or_default().insert(number, value);
                assert!(before.is_none(), "{number} of {} comes twice", self.name(of));
            }
        }
        assert!(input.is_at_end());
        for (of, number) in std::mem::take(&mut self.used) {
            self.expect(of, number);
        }
    }

    /// 0 is nothing, unless it is the number of a constant.
    fn expect(&self, of: u64, number: u64) {
        let is_there = number == 0 || self.constants.get(&of).is_some_and(|all| all.contains_key(&number));
        assert!(is_there, "there is no {number} of {}", self.name(of));
    }

    fn event(&mut self, id: u64, input: &mut Input<'_>) -> Event {
        let name = self.name(id).to_owned();
        assert_eq!(self.types.get(id).unwrap().fields[0].name, "startTime");
        let fields = self.value(id, input);
        assert!(input.is_at_end(), "{name} has other fields than are described");
        Event { name, fields: self.resolved(id, fields) }
    }

    /// Constants are numbers in it.
    fn value(&mut self, of: u64, input: &mut Input<'_>) -> Value {
        let described = self.types.get(of).unwrap();
        match described.encoding {
            Encoding::Boolean => json!(input.byte().unwrap() != 0),
            Encoding::Int | Encoding::Long => json!(input.natural().unwrap()),
            Encoding::Double => json!(f64::from_be_bytes(input.take(8).unwrap().try_into().unwrap())),
            Encoding::Text => match input.text().unwrap() {
                Text::None => Value::Null,
                Text::Here(text) => json!(text),
                Text::Constant(_) => panic!("texts are not written as constants"),
            },
            Encoding::Fields => {
                let field = |field: &Field| {
                    let count = if field.is_array { input.natural().unwrap() } else { 1 };
                    let one = |_| {
                        if !field.is_constant {
                            return self.value(field.of, input);
                        }
                        let number = input.natural().unwrap();
                        self.used.push((field.of, number));
                        json!(number)
                    };
                    let mut all: Vec<Value> = (0..count).map(one).collect();
                    let value = if field.is_array { Value::Array(all) } else { all.remove(0) };
                    (field.name.clone(), value)
                };
                Value::Object(described.fields.iter().map(field).collect())
            }
            other => panic!("{other:?} is not written"),
        }
    }

    /// The value with constants in place of their numbers.
    fn resolved(&self, of: u64, value: Value) -> Value {
        let Value::Object(mut values) = value else { return value };
        let mut fields = Map::new();
        for field in &self.types.get(of).unwrap().fields {
            let one = |value: Value| {
                if !field.is_constant {
                    return self.resolved(field.of, value);
                }
                let number = value.as_u64().unwrap();
                self.expect(field.of, number);
                let constant = self.constants.get(&field.of).and_then(|all| all.get(&number));
                constant.map_or(Value::Null, |constant| self.resolved(field.of, constant.clone()))
            };
            let value = match values.remove(&field.name).unwrap() {
                Value::Array(all) => all.into_iter().map(one).collect(),
                value => one(value),
            };
            fields.insert(field.name.clone(), value);
        }
        Value::Object(fields)
    }
}
