//! Reads recordings for tests, by what they say of themselves. It checks that every size adds up, and that every number of a
//! constant has one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Bytes, and how far they are read.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        self.at += length;
        &self.bytes[self.at - length..self.at]
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(super) fn natural(&mut self) -> u64 {
        let mut value = 0;
        for place in 0..8 {
            let byte = u64::from(self.byte());
            value |= (byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return value;
            }
        }
        value | u64::from(self.byte()) << 56
    }

    pub(super) fn text(&mut self) -> Option<String> {
        match self.byte() {
            0 => None,
            1 => Some(String::new()),
            3 => {
                let length = usize::try_from(self.natural()).unwrap();
                Some(String::from_utf8(self.take(length).to_vec()).unwrap())
            }
            kind => panic!("texts of kind {kind} are not written"),
        }
    }
}

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

#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) name: String,
    parent: Option<String>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    of: u64,
    is_constant: bool,
    is_many: bool,
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
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(&bytes[..8], b"FLR\0\0\x02\0\x01");
    let place = |at: usize| usize::try_from(number(at)).unwrap();
    let (size, constants_at, metadata_at) = (place(8), place(16), place(24));
    assert_eq!((number(56), &bytes[64..68]), (1_000_000_000, &[0, 0, 0, 1][..]));
    let bytes = &bytes[..size];

    let (id, mut metadata) = sized(&bytes[metadata_at..]);
    assert_eq!(id, 0);
    let types = types(&mut metadata);
    let (id, mut input) = sized(&bytes[constants_at..]);
    assert_eq!(id, 1);
    let mut reader = Reader { types: &types, constants: BTreeMap::new(), used: Vec::new() };
    reader.read_constants(&mut input);
    let constants = reader.constants.iter().map(|(of, all)| (types[of].name.clone(), all.len())).collect();

    let (mut events, mut at) = (Vec::new(), 68);
    while at < bytes.len() {
        let (id, mut input) = sized(&bytes[at..]);
        at += input.bytes.len();
        if id > 1 {
            events.push(reader.event(id, &mut input));
        }
    }
    assert_eq!(at, bytes.len(), "the events' sizes add up to the chunk's");
    assert!(constants_at < metadata_at, "JMC reads no event behind what describes them");
    let (start_ns, length_ns, start_ticks) = (number(32), number(40), number(48));
    (Chunk { start_ns, length_ns, start_ticks, events, constants }, size)
}

/// An event's type, and its bytes, of which size and type are read.
fn sized(bytes: &[u8]) -> (u64, Input<'_>) {
    let length = usize::try_from(Input::of(bytes).natural()).unwrap();
    let mut input = Input::of(&bytes[..length]);
    input.natural();
    (input.natural(), input)
}

/// A node of the tree that describes types.
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    children: Vec<Self>,
}

impl Element {
    fn read(input: &mut Input<'_>, strings: &[String]) -> Self {
        let text = |input: &mut Input<'_>| strings[usize::try_from(input.natural()).unwrap()].clone();
        let name = text(input);
        let attributes = (0..input.natural()).map(|_| (text(input), text(input))).collect();
        let children = (0..input.natural()).map(|_| Self::read(input, strings)).collect();
        Self { name, attributes, children }
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn number(&self, key: &str) -> u64 {
        self.attributes[key].parse().unwrap()
    }
}

fn types(input: &mut Input<'_>) -> BTreeMap<u64, Type> {
    let [_ticks, length, _number] = std::array::from_fn(|_| input.natural());
    assert_eq!(length, 0);
    let strings: Vec<String> = (0..input.natural()).map(|_| input.text().unwrap()).collect();
    let root = Element::read(input, &strings);
    assert!(input.is_at_end());
    let region = root.named("region").next().unwrap();
    assert_eq!(region.number("gmtOffset"), 0);
    let classes: Vec<&Element> = root.named("metadata").flat_map(|metadata| metadata.named("class")).collect();
    let types: BTreeMap<u64, Type> = classes.iter().map(|class| (class.number("id"), type_of(class))).collect();
    assert_eq!(types.len(), classes.len(), "no two types have one number");
    for class in classes {
        let fields: Vec<&Element> = class.named("field").collect();
        let annotations = fields.iter().flat_map(|field| field.named("annotation")).chain(class.named("annotation"));
        for element in annotations.chain(fields.iter().copied()) {
            assert!(types.contains_key(&element.number("class")), "a type that is not described");
        }
    }
    types
}

fn type_of(class: &Element) -> Type {
    let field = |field: &Element| Field {
        name: field.attributes["name"].clone(),
        of: field.number("class"),
        is_constant: field.attributes.contains_key("constantPool"),
        is_many: field.attributes.contains_key("dimension"),
    };
    Type {
        name: class.attributes["name"].clone(),
        parent: class.attributes.get("superType").cloned(),
        fields: class.named("field").map(field).collect(),
    }
}

struct Reader<'a> {
    types: &'a BTreeMap<u64, Type>,
    /// By type and number.
    constants: BTreeMap<u64, BTreeMap<u64, Value>>,
    /// Types and numbers that constants refer to.
    used: Vec<(u64, u64)>,
}

impl Reader<'_> {
    fn read_constants(&mut self, input: &mut Input<'_>) {
        let [_ticks, length, before] = std::array::from_fn(|_| input.natural());
        assert_eq!((length, before, input.byte()), (0, 0, 1));
        for _ in 0..input.natural() {
            let (of, count) = (input.natural(), input.natural());
            assert!(count > 0, "readers refuse an empty pool");
            for _ in 0..count {
                let number = input.natural();
                let value = self.value(of, input);
                let before = self.constants.entry(of).or_default().insert(number, value);
                assert!(before.is_none(), "{number} of {} comes twice", self.types[&of].name);
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
        assert!(is_there, "there is no {number} of {}", self.types[&of].name);
    }

    fn event(&mut self, id: u64, input: &mut Input<'_>) -> Event {
        let of = &self.types[&id];
        assert_eq!(of.parent.as_deref(), Some("jdk.jfr.Event"));
        assert_eq!(of.fields[0].name, "startTime");
        let fields = self.value(id, input);
        assert!(input.is_at_end(), "{} has other fields than are described", of.name);
        Event { name: of.name.clone(), fields: self.resolved(id, fields) }
    }

    /// Constants are numbers in it.
    fn value(&mut self, of: u64, input: &mut Input<'_>) -> Value {
        let types = self.types;
        match types[&of].name.as_str() {
            "boolean" => json!(input.byte() != 0),
            "int" | "long" => json!(input.natural()),
            "double" => json!(f64::from_be_bytes(input.take(8).try_into().unwrap())),
            "java.lang.String" => json!(input.text()),
            _ => {
                let field = |field: &Field| {
                    let count = if field.is_many { input.natural() } else { 1 };
                    let one = |_| {
                        if !field.is_constant {
                            return self.value(field.of, input);
                        }
                        let number = input.natural();
                        self.used.push((field.of, number));
                        json!(number)
                    };
                    let mut all: Vec<Value> = (0..count).map(one).collect();
                    let value = if field.is_many { Value::Array(all) } else { all.remove(0) };
                    (field.name.clone(), value)
                };
                Value::Object(types[&of].fields.iter().map(field).collect())
            }
        }
    }

    /// The value with constants in place of their numbers.
    fn resolved(&self, of: u64, value: Value) -> Value {
        let Value::Object(mut values) = value else { return value };
        let mut fields = Map::new();
        for field in &self.types[&of].fields {
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
