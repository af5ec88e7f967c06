//! Describes types: what a recording says of itself, by which readers understand every event in it.

use super::values::Values;
use crate::report::export::dictionary::Strings;

/// Type of the event that holds all descriptions.
const METADATA: u64 = 0;

/// Readers keep what they know of a description with the same number. All chunks have the same one.
const NUMBER: u64 = 1;

/// Types of annotations.
mod annotation {
    pub(super) const LABEL: u64 = 200;
    pub(super) const DESCRIPTION: u64 = 201;
    pub(super) const CATEGORY: u64 = 202;
    pub(super) const CONTENT_TYPE: u64 = 203;
    pub(super) const TIMESTAMP: u64 = 204;
    pub(super) const TIMESPAN: u64 = 205;
    pub(super) const DATA_AMOUNT: u64 = 206;
    pub(super) const UNSIGNED: u64 = 207;
    pub(super) const UNIT: u64 = 208;
}

/// Types of plain values.
pub(super) mod plain {
    pub(in super::super) const BOOLEAN: u64 = 4;
    pub(in super::super) const DOUBLE: u64 = 7;
    pub(in super::super) const INT: u64 = 10;
    pub(in super::super) const LONG: u64 = 11;
    pub(in super::super) const TEXT: u64 = 20;
}

/// A type of events or of the values in them.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) label: &'static str,
    /// Empty: there is nothing to say.
    pub(super) description: &'static str,
    pub(super) fields: &'static [Field],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Value,
    /// It has one field, and is shown as that.
    Simple,
    Annotation,
    /// Of this category, the widest first.
    Event(&'static [&'static str]),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Id of a type.
    pub(super) of: u64,
    pub(super) shape: Shape,
    pub(super) label: &'static str,
    pub(super) description: &'static str,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The value itself.
    One,
    /// Its number in the constant pool.
    Constant,
    /// How many there are, and then each.
    Many,
}

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    /// A point in time by the chunk's clock.
    Ticks,
    /// A length of time by that clock.
    TicksLong,
    NanosecondsLong,
    MillisecondsSinceEpoch,
    Bytes,
    Unsigned,
    /// In this unit, for which the format has no annotation.
    In(&'static str),
}

impl Field {
    pub(super) const fn one(name: &'static str, of: u64, label: &'static str) -> Self {
        Self { name, of, shape: Shape::One, label, description: "", meaning: Meaning::Plain }
    }

    pub(super) const fn constant(name: &'static str, of: u64, label: &'static str) -> Self {
        Self { shape: Shape::Constant, ..Self::one(name, of, label) }
    }

    pub(super) const fn many(name: &'static str, of: u64, label: &'static str) -> Self {
        Self { shape: Shape::Many, ..Self::one(name, of, label) }
    }

    pub(super) const fn meaning(self, meaning: Meaning) -> Self {
        Self { meaning, ..self }
    }

    pub(super) const fn about(self, description: &'static str) -> Self {
        Self { description, ..self }
    }
}

const fn plain_type(id: u64, name: &'static str) -> Type {
    Type { id, name, kind: Kind::Value, label: "", description: "", fields: &[] }
}

const fn annotation_type(id: u64, name: &'static str, fields: &'static [Field]) -> Type {
    Type { id, name, kind: Kind::Annotation, label: "", description: "", fields }
}

const VALUE: &[Field] = &[Field::one("value", plain::TEXT, "")];

const OWN: &[Type] = &[
    plain_type(plain::BOOLEAN, "boolean"),
    plain_type(plain::DOUBLE, "double"),
    plain_type(plain::INT, "int"),
    plain_type(plain::LONG, "long"),
    plain_type(plain::TEXT, "java.lang.String"),
    annotation_type(annotation::LABEL, "jdk.jfr.Label", VALUE),
    annotation_type(annotation::DESCRIPTION, "jdk.jfr.Description", VALUE),
    annotation_type(annotation::CATEGORY, "jdk.jfr.Category", &[Field::many("value", plain::TEXT, "")]),
    annotation_type(annotation::CONTENT_TYPE, "jdk.jfr.ContentType", &[]),
    annotation_type(annotation::TIMESTAMP, "jdk.jfr.Timestamp", VALUE),
    annotation_type(annotation::TIMESPAN, "jdk.jfr.Timespan", VALUE),
    annotation_type(annotation::DATA_AMOUNT, "jdk.jfr.DataAmount", VALUE),
    annotation_type(annotation::UNSIGNED, "jdk.jfr.Unsigned", &[]),
    annotation_type(annotation::UNIT, "joular.Unit", VALUE),
];

/// The event that describes `types` and what they need, `ticks` after the clock began.
pub(super) fn event(types: &[&[Type]], ticks: u64) -> Values {
    let mut strings = Strings::new();
    let all = [OWN].into_iter().chain(types.iter().copied()).flatten();
    let mut root = Element::new(&mut strings, "root");
    let mut metadata = Element::new(&mut strings, "metadata");
    metadata.children = all.map(|of| type_element(&mut strings, of)).collect();
    let region =
        Element::new(&mut strings, "region").with(&mut strings, "locale", "en_US").with(&mut strings, "gmtOffset", "0");
    root.children = vec![metadata, region];

    let mut values = Values::default();
    for natural in [METADATA, ticks, 0, NUMBER, strings.texts().len() as u64] {
        values.natural(natural);
    }
    strings.texts().iter().for_each(|text| values.text(Some(text)));
    root.write(&mut values);
    values
}

fn type_element(strings: &mut Strings, of: &Type) -> Element {
    let mut element = Element::new(strings, "class").with(strings, "name", of.name);
    let parent = match of.kind {
        Kind::Value | Kind::Simple => None,
        Kind::Annotation => Some("java.lang.annotation.Annotation"),
        Kind::Event(_) => Some("jdk.jfr.Event"),
    };
    if let Some(parent) = parent {
        element = element.with(strings, "superType", parent);
    }
    if matches!(of.kind, Kind::Simple) {
        element = element.with(strings, "simpleType", "true");
    }
    element = element.with(strings, "id", &of.id.to_string());
    element.annotate(strings, of.label, of.description);
    if let Kind::Event(category) = of.kind {
        let mut annotation = Element::annotation(strings, annotation::CATEGORY);
        for (place, part) in category.iter().enumerate() {
            annotation = annotation.with(strings, &format!("value-{place}"), part);
        }
        element.children.push(annotation);
    }
    if of.id == annotation::UNIT {
        element.children.push(Element::annotation(strings, annotation::CONTENT_TYPE));
    }
    let fields: Vec<Element> = of.fields.iter().map(|field| field_element(strings, field)).collect();
    element.children.extend(fields);
    element
}

fn field_element(strings: &mut Strings, field: &Field) -> Element {
    let mut element = Element::new(strings, "field").with(strings, "name", field.name);
    element = element.with(strings, "class", &field.of.to_string());
    match field.shape {
        Shape::One => {}
        Shape::Constant => element = element.with(strings, "constantPool", "true"),
        Shape::Many => element = element.with(strings, "dimension", "1"),
    }
    element.annotate(strings, field.label, field.description);
    let (id, value) = match field.meaning {
        Meaning::Plain => return element,
        Meaning::Ticks => (annotation::TIMESTAMP, Some("TICKS")),
        Meaning::TicksLong => (annotation::TIMESPAN, Some("TICKS")),
        Meaning::NanosecondsLong => (annotation::TIMESPAN, Some("NANOSECONDS")),
        Meaning::MillisecondsSinceEpoch => (annotation::TIMESTAMP, Some("MILLISECONDS_SINCE_EPOCH")),
        Meaning::Bytes => (annotation::DATA_AMOUNT, Some("BYTES")),
        Meaning::Unsigned => (annotation::UNSIGNED, None),
        Meaning::In(unit) => (annotation::UNIT, Some(unit)),
    };
    let mut annotation = Element::annotation(strings, id);
    if let Some(value) = value {
        annotation = annotation.with(strings, "value", value);
    }
    element.children.push(annotation);
    element
}

/// A node of the tree of descriptions. Texts are numbers of strings.
struct Element {
    name: u32,
    attributes: Vec<(u32, u32)>,
    children: Vec<Self>,
}

impl Element {
    fn new(strings: &mut Strings, name: &str) -> Self {
        Self { name: strings.number(name), attributes: Vec::new(), children: Vec::new() }
    }

    fn annotation(strings: &mut Strings, id: u64) -> Self {
        Self::new(strings, "annotation").with(strings, "class", &id.to_string())
    }

    fn with(mut self, strings: &mut Strings, key: &str, value: &str) -> Self {
        self.attributes.push((strings.number(key), strings.number(value)));
        self
    }

    /// Says what it is called and what it is, if anything.
    fn annotate(&mut self, strings: &mut Strings, label: &str, description: &str) {
        for (id, text) in [(annotation::LABEL, label), (annotation::DESCRIPTION, description)] {
            if !text.is_empty() {
                self.children.push(Self::annotation(strings, id).with(strings, "value", text));
            }
        }
    }

    fn write(&self, values: &mut Values) {
        values.natural(self.name.into());
        values.natural(self.attributes.len() as u64);
        for (key, value) in &self.attributes {
            values.natural((*key).into());
            values.natural((*value).into());
        }
        values.natural(self.children.len() as u64);
        self.children.iter().for_each(|child| child.write(values));
    }
}
