//! Makes chunks for tests, good ones and bad ones.

use super::header::SIZE;

/// The clock of a made chunk has so many ticks a second, and begins at tick 1000.
pub const TICKS_PER_SECOND: u64 = 1_000;
pub const START_TICKS: u64 = 1_000;
/// A second after 1970.
pub const START_NS: i64 = 1_000_000_000;

/// A type: its number, its name and its fields.
pub type MadeType<'a> = (u64, &'a str, &'a [MadeField<'a>]);

/// A field of a type.
#[derive(Clone, Copy)]
pub struct MadeField<'a> {
    pub name: &'a str,
    pub of: u64,
    pub is_constant: bool,
    pub is_array: bool,
    /// Type of an annotation.
    pub annotation: Option<u64>,
}

pub const fn field(name: &str, of: u64) -> MadeField<'_> {
    MadeField { name, of, is_constant: false, is_array: false, annotation: None }
}

pub const fn constant(name: &str, of: u64) -> MadeField<'_> {
    MadeField { is_constant: true, ..field(name, of) }
}

pub fn natural(value: u64) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), value);
    for _ in 0..8 {
        let [low, ..] = rest.to_le_bytes();
        if rest < 0x80 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
        rest >>= 7;
    }
    bytes.push(rest.to_le_bytes()[0]);
    bytes
}

pub fn naturals(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| natural(*value)).collect()
}

pub fn text(text: &str) -> Vec<u8> {
    [&[3][..], &natural(text.len() as u64), text.as_bytes()].concat()
}

/// With its size before it, in four bytes as the JVM writes it.
pub fn sized(of: u64, fields: &[u8]) -> Vec<u8> {
    let body = [natural(of), fields.to_vec()].concat();
    let size = body.len() as u64 + 4;
    let low = |place: u32| u8::try_from(size >> (7 * place) & 0x7f).unwrap();
    [&[low(0) | 0x80, low(1) | 0x80, low(2) | 0x80, low(3)][..], &body].concat()
}

/// Constants of one type: the type, and number and value of each.
pub type Pool<'a> = (u64, &'a [(u64, Vec<u8>)]);

pub fn checkpoint(pools: &[Pool<'_>]) -> Vec<u8> {
    let mut fields = naturals(&[0, 0, 0]);
    fields.push(0);
    fields.extend(natural(pools.len() as u64));
    for (of, constants) in pools {
        fields.extend(naturals(&[*of, constants.len() as u64]));
        for (number, value) in *constants {
            fields.extend(natural(*number));
            fields.extend(value);
        }
    }
    sized(1, &fields)
}

/// A chunk of these events, which describes these types.
pub fn chunk(types: &[MadeType<'_>], events: &[Vec<u8>]) -> Vec<u8> {
    let events = events.concat();
    let described = sized(0, &description(types));
    let mut chunk = Vec::new();
    chunk.extend(b"FLR\0\0\x02\0\x01");
    let metadata_at = SIZE + events.len();
    for number in [
        (metadata_at + described.len()) as u64,
        0,
        metadata_at as u64,
        START_NS.cast_unsigned(),
        10_000_000_000,
        START_TICKS,
        TICKS_PER_SECOND,
    ] {
        chunk.extend(number.to_be_bytes());
    }
    chunk.extend([0, 0, 0, 1]);
    chunk.extend(events);
    chunk.extend(described);
    chunk
}

fn description(types: &[MadeType<'_>]) -> Vec<u8> {
    let mut tree = Tree::default();
    let mut classes = Vec::new();
    for (id, name, fields) in types {
        let mut children = Vec::new();
        for made in *fields {
            let mut attributes = vec![("name", made.name.to_owned()), ("class", made.of.to_string())];
            attributes.extend(made.is_constant.then(|| ("constantPool", "true".to_owned())));
            attributes.extend(made.is_array.then(|| ("dimension", "1".to_owned())));
            let annotation = made.annotation.map(|of| tree.element("annotation", &[("class", of.to_string())], &[]));
            let annotations: Vec<Vec<u8>> = annotation.into_iter().collect();
            children.push(tree.element("field", &attributes, &annotations));
        }
        classes.push(tree.element("class", &[("id", id.to_string()), ("name", (*name).to_owned())], &children));
    }
    let metadata = tree.element("metadata", &[], &classes);
    let root = tree.element("root", &[], &[metadata]);
    let mut fields = naturals(&[0, 0, 1, tree.texts.len() as u64]);
    tree.texts.iter().for_each(|each| fields.extend(text(each)));
    fields.extend(root);
    fields
}

#[derive(Default)]
struct Tree {
    texts: Vec<String>,
}

impl Tree {
    fn place(&mut self, text: &str) -> Vec<u8> {
        let known = self.texts.iter().position(|each| each == text);
        let place = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        natural(place as u64)
    }

    fn element(&mut self, name: &str, attributes: &[(&str, String)], children: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.place(name);
        bytes.extend(natural(attributes.len() as u64));
        for (key, value) in attributes {
            bytes.extend(self.place(key));
            bytes.extend(self.place(value));
        }
        bytes.extend(natural(children.len() as u64));
        bytes.extend(children.concat());
        bytes
    }
}
