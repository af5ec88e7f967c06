//! Reads what a chunk says of the types of its events and constants.
//!
//! It is a tree of elements with attributes, whose texts stand before it: `root > metadata > class > field > annotation`.

use std::collections::HashMap;

use super::{
    error::Damage,
    input::{Input, Text},
};

/// Bytes of a description. Those of JDK 25 have about 120 kB.
const MOST_BYTES: usize = 4 << 20;

/// Elements within each other. There are five.
const MOST_DEPTH: usize = 16;

/// Annotations that do not say that a number is a time, an address or a number of bytes.
const PLAIN: [&str; 5] =
    ["jdk.jfr.Label", "jdk.jfr.Description", "jdk.jfr.Name", "jdk.jfr.Experimental", "jdk.jfr.Unsigned"];

/// How values of a type are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Boolean,
    Byte,
    Char,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
    /// One field after the other.
    Fields,
}

/// A type of events or of what they are made of.
#[derive(Clone, Debug)]
pub struct Type {
    pub name: String,
    pub encoding: Encoding,
    pub fields: Vec<Field>,
}

/// A part of a value.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    /// Its type.
    pub of: u64,
    /// It is a number of a constant of that type.
    pub is_constant: bool,
    /// There are any number of them.
    pub is_array: bool,
    /// A number without a unit, as far as is known.
    pub is_plain: bool,
}

/// The types of a chunk, by number.
#[derive(Clone, Debug, Default)]
pub struct Types {
    by_number: HashMap<u64, Type>,
    /// The type of texts.
    pub texts: Option<u64>,
}

impl Types {
    /// Reads the event of a chunk that describes its types.
    ///
    /// # Errors
    /// If it is damaged or too large.
    pub fn read(chunk: &[u8], at: u64) -> Result<Self, Damage> {
        described(chunk, at, Self::of)
    }

    fn of(root: &Element<'_>) -> Result<Self, Damage> {
        let classes: Vec<&Element<'_>> = root.classes().collect();
        let names: HashMap<u64, &str> =
            classes.iter().filter_map(|class| Some((class.number("id")?, class.attribute("name")?))).collect();
        let mut types = Self::default();
        for class in classes {
            let number = class.number("id").ok_or(Damage::Types)?;
            let described = Type::of(class, &names)?;
            if described.encoding == Encoding::Text {
                types.texts = Some(number);
            }
            if types.by_number.insert(number, described).is_some() {
                return Err(Damage::Types);
            }
        }
        Ok(types)
    }

    pub fn get(&self, number: u64) -> Option<&Type> {
        self.by_number.get(&number)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Type)> {
        self.by_number.iter().map(|(number, described)| (*number, described))
    }
}

impl Type {
    fn of(class: &Element<'_>, names: &HashMap<u64, &str>) -> Result<Self, Damage> {
        let name = class.attribute("name").ok_or(Damage::Types)?;
        let field = |field: &Element<'_>| {
            let annotations = field.named("annotation").filter_map(|annotation| annotation.number("class"));
            let mut known = annotations.map(|of| names.get(&of).copied().unwrap_or_default());
            Ok::<_, Damage>(Field {
                name: field.attribute("name").ok_or(Damage::Types)?.to_owned(),
                of: field.number("class").ok_or(Damage::Types)?,
                is_constant: field.attribute("constantPool") == Some("true"),
                is_array: field.number("dimension").is_some_and(|dimension| dimension > 0),
                is_plain: known.all(|annotation| PLAIN.contains(&annotation)),
            })
        };
        let fields = class.named("field").map(field).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), encoding: Encoding::of(name), fields })
    }

    /// Whether it has moments: it is a type of events.
    pub(super) fn is_of_events(&self) -> bool {
        self.fields.first().is_some_and(|first| first.name == "startTime")
    }

    pub(super) fn has_duration(&self) -> bool {
        self.fields.get(1).is_some_and(|second| second.name == "duration")
    }
}

impl Encoding {
    fn of(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "byte" => Self::Byte,
            "char" => Self::Char,
            "short" => Self::Short,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "java.lang.String" => Self::Text,
            _ => Self::Fields,
        }
    }
}

/// Shows the tree that describes types to `take`.
///
/// # Errors
/// If it is damaged or too large.
pub fn described<T>(chunk: &[u8], at: u64, take: impl FnOnce(&Element<'_>) -> Result<T, Damage>) -> Result<T, Damage> {
    let (id, mut input) = Input::event(chunk, usize::try_from(at).map_err(|_| Damage::Offset)?)?;
    if id != 0 {
        return Err(Damage::Types);
    }
    if input.left() > MOST_BYTES {
        return Err(Damage::TypesTooLarge);
    }
    // Ticks, a length, and how many descriptions came before.
    for _ in 0..3 {
        input.natural()?;
    }
    let mut texts = Vec::new();
    for _ in 0..input.count()? {
        texts.push(match input.text()? {
            Text::Here(text) => text,
            Text::None => String::new(),
            Text::Constant(_) => return Err(Damage::Types),
        });
    }
    take(&Element::read(&mut input, &texts, 0)?)
}

/// A node of the tree.
pub struct Element<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    children: Vec<Self>,
}

impl<'a> Element<'a> {
    fn read(input: &mut Input<'_>, texts: &'a [String], depth: usize) -> Result<Self, Damage> {
        if depth > MOST_DEPTH {
            return Err(Damage::Nesting);
        }
        let text = |input: &mut Input<'_>| {
            let place = usize::try_from(input.natural()?).map_err(|_| Damage::Types)?;
            texts.get(place).map(String::as_str).ok_or(Damage::Types)
        };
        let name = text(input)?;
        let (mut attributes, mut children) = (Vec::new(), Vec::new());
        for _ in 0..input.count()? {
            attributes.push((text(input)?, text(input)?));
        }
        for _ in 0..input.count()? {
            children.push(Self::read(input, texts, depth + 1)?);
        }
        Ok(Self { name, attributes, children })
    }

    /// The types of a root.
    pub fn classes(&self) -> impl Iterator<Item = &Self> {
        self.named("metadata").flat_map(|metadata| metadata.named("class"))
    }

    /// Children of this name.
    pub fn named(&self, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub fn attribute(&self, key: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// An attribute that is a number from 0 on.
    pub fn number(&self, key: &str) -> Option<u64> {
        // Numbers of types are positive, and are written as Java's `long`.
        self.attribute(key)?.parse().ok()
    }
}
