//! Decodes fields by what a chunk says of their types, or goes past them.

use super::{
    constants::Constants,
    error::Damage,
    input::{Input, Text},
    types::{Encoding, Field, Type, Types},
};

/// Values within each other. Types of the JDK have three.
const MOST_DEPTH: usize = 16;

/// Constants that refer to each other, until a text is there: an event's thread, a class, its name.
const MOST_HOPS: usize = 4;

/// Fields by which something is best named, the best one first.
const NAMES: [&str; 4] = ["javaName", "name", "string", "osName"];

/// How many more values may be read. A value has a byte at least; but one without fields has none, and types without fields can
/// be in each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// Enough for all values of so many bytes.
    pub(super) const fn of_bytes(bytes: usize) -> Self {
        Self(bytes.saturating_mul(8).saturating_add(1 << 16))
    }

    /// Enough for the fields of an event, and for what a few constants say.
    pub(super) const fn of_event(bytes: usize) -> Self {
        Self(bytes.saturating_mul(8).saturating_add(1 << 12))
    }

    fn spend(&mut self) -> Result<(), Damage> {
        self.0 = self.0.checked_sub(1).ok_or(Damage::Nesting)?;
        Ok(())
    }
}

/// Goes past a value of a type.
///
/// # Errors
/// If it is not whole, or its type is not described.
pub(super) fn skip(input: &mut Input<'_>, types: &Types, of: u64, budget: &mut Budget) -> Result<(), Damage> {
    skip_within(input, types, of, budget, 0)
}

fn skip_within(input: &mut Input<'_>, types: &Types, of: u64, budget: &mut Budget, depth: usize) -> Result<(), Damage> {
    budget.spend()?;
    if depth > MOST_DEPTH {
        return Err(Damage::Nesting);
    }
    let described = types.get(of).ok_or(Damage::ConstantType)?;
    match described.encoding {
        Encoding::Boolean | Encoding::Byte => input.byte().map(drop),
        Encoding::Char | Encoding::Short | Encoding::Int | Encoding::Long => input.natural().map(drop),
        Encoding::Float => input.take(4).map(drop),
        Encoding::Double => input.take(8).map(drop),
        Encoding::Text => input.text().map(drop),
        Encoding::Fields => {
            described.fields.iter().try_for_each(|field| skip_field(input, types, field, budget, depth + 1))
        }
    }
}

fn skip_field(
    input: &mut Input<'_>,
    types: &Types,
    field: &Field,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), Damage> {
    let count = if field.is_array { input.count()? } else { 1 };
    for _ in 0..count {
        if field.is_constant {
            input.natural()?;
        } else {
            skip_within(input, types, field.of, budget, depth)?;
        }
    }
    Ok(())
}

/// A field that is one number or one text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Truth(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

/// What is needed to read values of a chunk.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) chunk: &'a [u8],
    pub(super) types: &'a Types,
    pub(super) constants: &'a Constants,
}

impl Values<'_> {
    /// Reads the next field, and goes past it. `None`: it is nothing, or more than one number or text.
    pub(super) fn field(
        self,
        input: &mut Input<'_>,
        field: &Field,
        budget: &mut Budget,
    ) -> Result<Option<Scalar>, Damage> {
        if field.is_array {
            skip_field(input, self.types, field, budget, 0)?;
            return Ok(None);
        }
        if field.is_constant {
            let number = input.natural()?;
            // What a constant says is worth less than the event: if it is damaged, it has no name.
            return Ok(self.constant(field.of, number, MOST_HOPS, budget).map(Scalar::Text));
        }
        let described = self.types.get(field.of).ok_or(Damage::ConstantType)?;
        if described.encoding == Encoding::Fields {
            skip_field(input, self.types, field, budget, 0)?;
            return Ok(None);
        }
        self.scalar(input, described.encoding)
    }

    #[allow(clippy::cast_possible_truncation, reason = "Java's narrower integers are the lowest bits")]
    fn scalar(self, input: &mut Input<'_>, encoding: Encoding) -> Result<Option<Scalar>, Damage> {
        let bytes = |taken: &[u8]| taken.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        Ok(Some(match encoding {
            Encoding::Boolean => Scalar::Truth(input.byte()? != 0),
            Encoding::Byte => Scalar::Integer(input.byte()?.cast_signed().into()),
            Encoding::Char => Scalar::Text(String::from_utf16_lossy(&[input.natural()? as u16])),
            Encoding::Short => Scalar::Integer((input.natural()? as i16).into()),
            Encoding::Int => Scalar::Integer((input.natural()? as i32).into()),
            Encoding::Long => Scalar::Integer(input.natural()?.cast_signed()),
            Encoding::Float => Scalar::Real(f32::from_bits(bytes(input.take(4)?) as u32).into()),
            Encoding::Double => Scalar::Real(f64::from_bits(bytes(input.take(8)?))),
            Encoding::Text => return Ok(self.text(input.text()?).map(Scalar::Text)),
            Encoding::Fields => return Ok(None),
        }))
    }

    fn text(self, text: Text) -> Option<String> {
        match text {
            Text::None => None,
            Text::Here(text) => Some(text),
            Text::Constant(number) => {
                let place = self.constants.place(self.types.texts?, number)?;
                // A constant that is another constant has no end.
                match Input::from(self.chunk, place).ok()?.text().ok()? {
                    Text::Here(text) => Some(text),
                    Text::None | Text::Constant(_) => None,
                }
            }
        }
    }

    /// The text that names a constant best.
    fn constant(self, of: u64, number: u64, hops: usize, budget: &mut Budget) -> Option<String> {
        budget.spend().ok()?;
        let hops = hops.checked_sub(1)?;
        let (described, place) = (self.types.get(of)?, self.constants.place(of, number)?);
        let mut input = Input::from(self.chunk, place).ok()?;
        if described.encoding != Encoding::Fields {
            return self.scalar(&mut input, described.encoding).ok()?.map(|scalar| scalar.to_string());
        }
        let mut name = |wanted: &str| self.named(input, described, wanted, hops, budget);
        if described.name == "jdk.types.Method" {
            return Some(format!("{}.{}", name("type")?, name("name")?));
        }
        let known = NAMES.into_iter().find_map(&mut name).filter(|text| !text.is_empty());
        // Causes, states and kinds have one text, whatever its name.
        let text = known.or_else(|| match &described.fields[..] {
            [only] => name(&only.name),
            _ => None,
        })?;
        // Classes have the names that class files have.
        Some(if described.name == "java.lang.Class" { text.replace('/', ".") } else { text })
    }

    /// The field of a constant that has this name.
    fn named(
        self,
        mut input: Input<'_>,
        described: &Type,
        wanted: &str,
        hops: usize,
        budget: &mut Budget,
    ) -> Option<String> {
        for field in &described.fields {
            if field.name != wanted {
                skip_field(&mut input, self.types, field, budget, 0).ok()?;
            } else if field.is_constant && !field.is_array {
                return self.constant(field.of, input.natural().ok()?, hops, budget);
            } else {
                return self.field(&mut input, field, budget).ok()?.map(|scalar| scalar.to_string());
            }
        }
        None
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truth(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(value) => f.write_str(value),
        }
    }
}
