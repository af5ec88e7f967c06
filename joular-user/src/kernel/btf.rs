//! Finds where the running kernel keeps the fields that our programs read.
//!
//! BTF (`/sys/kernel/btf/vmlinux`) describes every kernel type. This walker answers one question:
//! the byte offset of a member of a struct. It scans the type section once without building a
//! table, so it needs no memory beyond the file. Format: kernel documentation, `bpf/btf.rst`.
//!
//! aya needs BTF too, to find the ids of tracepoints and functions, and builds a table of every type for it. With
//! that table beside the loaded object the peak of memory was 40 MB, without it 26 MB.
//! [`KernelTypes::attachable_only`] gives aya a copy in which all other types are empty
//! placeholders, so that the ids stay what they are.

use std::collections::BTreeMap;

use thiserror::Error;

/// Path of the running kernel's BTF.
pub const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BtfError {
    #[error("kernel BTF is cut off or malformed at byte {0}")]
    Malformed(usize),
    #[error("kernel BTF has no `struct {0}`")]
    NoStruct(String),
    #[error("kernel BTF: `struct {structure}` has no member `{member}`")]
    NoMember { structure: String, member: String },
}

const MAGIC: u16 = 0xeb9f;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_FWD: u32 = 7;
const KIND_TYPEDEF: u32 = 8;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
/// The kernel's prefix of a tracepoint's typedef.
const TRACEPOINT_PREFIX: &str = "btf_trace_";
/// Anonymous members nest; the kernel itself stays below 10 levels.
const MAX_NESTING: u32 = 16;
/// Of a parameter of a function's prototype.
const PARAMETER_BYTES: usize = 8;

/// A parsed header over the raw bytes.
#[derive(Debug, Clone, Copy)]
pub struct KernelTypes<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    kind_flag: bool,
    /// The type that this one is made of, or a size.
    refers_to: u32,
    /// Kind-specific bytes after the common 12.
    tail: &'a [u8],
}

impl<'a> KernelTypes<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let magic = bytes.get(..2).ok_or(BtfError::Malformed(0))?;
        if magic != MAGIC.to_ne_bytes() {
            return Err(BtfError::Malformed(0));
        }
        let header_len = word(bytes, 4)?;
        let section = |at: usize| -> Result<&'a [u8], BtfError> {
            let start = header_len as usize + word(bytes, at)? as usize;
            let end = start + word(bytes, at + 4)? as usize;
            bytes.get(start..end).ok_or(BtfError::Malformed(at))
        };
        Ok(Self { types: section(8)?, strings: section(16)? })
    }

    /// Byte offset of `member` in `struct structure`, looking through
    /// anonymous structs and unions.
    pub fn member_offset(&self, structure: &str, member: &str) -> Result<u32, BtfError> {
        let found = self
            .types()
            .filter_map(Result::ok)
            .find(|found| found.kind == KIND_STRUCT && self.name_is(found.name, structure))
            .ok_or_else(|| BtfError::NoStruct(structure.to_owned()))?;
        let bits = self.find_member(found, member, 0)?;
        bits.map(|bits| bits / 8)
            .ok_or_else(|| BtfError::NoMember { structure: structure.to_owned(), member: member.to_owned() })
    }

    /// How many arguments functions have that the kernel has.
    pub fn argument_counts<'n>(&self, functions: &[&'n str]) -> BTreeMap<&'n str, usize> {
        let mut prototypes: BTreeMap<usize, Vec<&'n str>> = BTreeMap::new();
        for found in self.types().filter_map(Result::ok).filter(|found| found.kind == KIND_FUNC) {
            let name = functions.iter().find(|function| self.name_is(found.name, function));
            if let (Some(name), Some(index)) = (name, (found.refers_to as usize).checked_sub(1)) {
                prototypes.entry(index).or_default().push(name);
            }
        }
        let mut counts = BTreeMap::new();
        for (index, found) in self.types().enumerate() {
            if let (Ok(Type { kind: KIND_FUNC_PROTO, tail, .. }), Some(names)) = (found, prototypes.get(&index)) {
                counts.extend(names.iter().map(|name| (*name, tail.len() / PARAMETER_BYTES)));
            }
        }
        counts
    }

    /// BTF with the same ids in which only the typedefs of tracepoints and these functions have
    /// names, and no type has members.
    pub fn attachable_only(&self, functions: &[&str]) -> Vec<u8> {
        let mut types = Vec::new();
        let mut strings = vec![0_u8];
        for found in self.types().filter_map(Result::ok) {
            let mut words = [0, KIND_FWD << 24, 0];
            let is_wanted = |name: &&[u8]| match found.kind {
                KIND_TYPEDEF => name.starts_with(TRACEPOINT_PREFIX.as_bytes()),
                KIND_FUNC => functions.iter().any(|function| function.as_bytes() == *name),
                _ => false,
            };
            if let Some(name) = self.name(found.name).filter(is_wanted) {
                words[0] = u32::try_from(strings.len()).unwrap_or(0);
                words[1] = found.kind << 24;
                strings.extend_from_slice(name);
                strings.push(0);
            }
            words.iter().for_each(|word| types.extend(word.to_ne_bytes()));
        }
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(0);
        let mut image = Vec::with_capacity(24 + types.len() + strings.len());
        image.extend(MAGIC.to_ne_bytes());
        image.extend([1, 0]); // version, flags
        for word in [24, 0, len(&types), len(&types), len(&strings)] {
            image.extend(word.to_ne_bytes());
        }
        image.extend(types);
        image.extend(strings);
        image
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        self.strings.get(at as usize..)?.split(|byte| *byte == 0).next()
    }

    fn find_member(&self, structure: Type<'a>, member: &str, depth: u32) -> Result<Option<u32>, BtfError> {
        for entry in structure.tail.chunks_exact(12) {
            let (name, type_id, offset) = (word(entry, 0)?, word(entry, 4)?, word(entry, 8)?);
            let bits = if structure.kind_flag { offset & 0xff_ffff } else { offset };
            if name != 0 && self.name_is(name, member) {
                return Ok(Some(bits));
            }
            if name == 0
                && depth < MAX_NESTING
                && let Some(inner) = self.anonymous_aggregate(type_id)
                && let Some(inner_bits) = self.find_member(inner, member, depth + 1)?
            {
                return Ok(Some(bits.saturating_add(inner_bits)));
            }
        }
        Ok(None)
    }

    /// Type ids start at 1, in file order.
    fn anonymous_aggregate(&self, type_id: u32) -> Option<Type<'a>> {
        let index = (type_id as usize).checked_sub(1)?;
        let found = self.types().nth(index)?.ok()?;
        matches!(found.kind, KIND_STRUCT | KIND_UNION).then_some(found)
    }

    fn name_is(&self, at: u32, name: &str) -> bool {
        self.name(at) == Some(name.as_bytes())
    }

    fn types(&self) -> impl Iterator<Item = Result<Type<'a>, BtfError>> + use<'a> {
        let types = self.types;
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= types.len() {
                return None;
            }
            let parsed = parse_type(types, at);
            // A malformed type has no known length: stop there.
            at = parsed.as_ref().map_or(types.len(), |(_, next)| *next);
            Some(parsed.map(|(parsed, _)| parsed))
        })
    }
}

fn parse_type(types: &[u8], at: usize) -> Result<(Type<'_>, usize), BtfError> {
    let info = word(types, at + 4)?;
    let (kind, vlen) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
    let tail_len = match kind {
        1 | 14 | 17 => 4,                           // INT, VAR, DECL_TAG
        2 | KIND_FWD..=12 | 16 | 18 => 0,           // PTR, FWD … FUNC, FLOAT, TYPE_TAG
        3 => 12,                                    // ARRAY
        KIND_STRUCT | KIND_UNION | 15 => vlen * 12, // members; DATASEC
        6 | 13 => vlen * 8,                         // ENUM, FUNC_PROTO
        19 => vlen * 12,                            // ENUM64
        _ => return Err(BtfError::Malformed(at)),
    };
    let start = at + 12;
    let tail = types.get(start..start + tail_len).ok_or(BtfError::Malformed(at))?;
    let (name, refers_to) = (word(types, at)?, word(types, at + 8)?);
    Ok((Type { name, kind, kind_flag: info >> 31 == 1, refers_to, tail }, start + tail_len))
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let end = at.checked_add(4).ok_or(BtfError::Malformed(at))?;
    let found = bytes.get(at..end).and_then(|bytes| bytes.try_into().ok()).ok_or(BtfError::Malformed(at))?;
    Ok(u32::from_ne_bytes(found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `struct outer { u32 a @0; union { u32 inner @0 } @64 bits; b @128 bits }`, and `int inner(int, int)`.
    fn image() -> Vec<u8> {
        let strings = b"\0outer\0a\0inner\0b\0";
        let mut types = Vec::new();
        let mut push = |words: &[u32]| words.iter().for_each(|word| types.extend(word.to_ne_bytes()));
        push(&[0, 1 << 24, 4, 32]); // 1: int
        push(&[0, (KIND_UNION << 24) | 1, 4, 9, 1, 0]); // 2: anonymous union
        push(&[1, (KIND_STRUCT << 24) | 3, 24, 7, 1, 0, 0, 2, 64, 15, 1, 128]); // 3: outer
        push(&[9, KIND_FUNC << 24, 5]); // 4: inner
        push(&[0, (KIND_FUNC_PROTO << 24) | 2, 1, 0, 1, 0, 1]); // 5: its prototype
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let (types_len, strings_len) = (u32::try_from(types.len()).unwrap(), u32::try_from(strings.len()).unwrap());
        for word in [24, 0, types_len, types_len, strings_len] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_are_found_through_anonymous_unions() {
        let image = image();
        let types = KernelTypes::parse(&image).unwrap();
        for (member, offset) in [("a", 0), ("inner", 8), ("b", 16)] {
            assert_eq!(types.member_offset("outer", member), Ok(offset), "{member}");
        }
        assert!(matches!(types.member_offset("outer", "c"), Err(BtfError::NoMember { .. })));
        assert!(matches!(types.member_offset("oute", "a"), Err(BtfError::NoStruct(_))));
    }

    #[test]
    fn pruned_types_keep_their_ids() {
        let image = image();
        for (wanted, names) in [(&["outer", "other"][..], vec![]), (&["inner"], vec![(3, &b"inner"[..])])] {
            let pruned = KernelTypes::parse(&image).unwrap().attachable_only(wanted);
            let pruned = KernelTypes::parse(&pruned).unwrap();
            assert_eq!(pruned.types().count(), 5);
            assert!(pruned.member_offset("outer", "a").is_err());
            let named = pruned.types().map(|found| pruned.name(found.unwrap().name).unwrap()).enumerate();
            assert_eq!(named.filter(|(_, name)| !name.is_empty()).collect::<Vec<_>>(), names);
        }
    }

    #[test]
    fn functions_have_as_many_arguments_as_their_prototypes() {
        let image = image();
        let counts = KernelTypes::parse(&image).unwrap().argument_counts(&["outer", "inner", "a"]);
        assert_eq!(counts, BTreeMap::from([("inner", 2)]));
    }

    proptest! {
        #[test]
        fn damaged_images_are_errors(cut in 0_usize..170, at in 0_usize..170, byte: u8) {
            let mut image = image();
            image.truncate(cut);
            if let Some(target) = image.get_mut(at) { *target = byte; }
            if let Ok(types) = KernelTypes::parse(&image) {
                let _ = types.member_offset("outer", "b");
                let _ = types.argument_counts(&["inner"]);
            }
        }
    }
}
