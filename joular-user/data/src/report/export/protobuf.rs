//! Writes the fields of a protocol buffer one at a time, so a file need not be in memory to be
//! written.

use std::io::{self, Write};

use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

/// A message that is a field of the message that the file is.
pub(super) fn message(out: &mut dyn Write, field: u32, message: &impl Message) -> io::Result<()> {
    bytes(out, field, &message.encode_to_vec())
}

/// A text, or a message encoded already.
pub(super) fn bytes(out: &mut dyn Write, field: u32, bytes: &[u8]) -> io::Result<()> {
    let mut head = Vec::with_capacity(12);
    encode_key(field, WireType::LengthDelimited, &mut head);
    encode_varint(bytes.len() as u64, &mut head);
    out.write_all(&head)?;
    out.write_all(bytes)
}

/// An integer of any of the types that are not zigzag.
pub(super) fn integer(out: &mut dyn Write, field: u32, value: i64) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(12);
    encode_key(field, WireType::Varint, &mut bytes);
    encode_varint(value.cast_unsigned(), &mut bytes);
    out.write_all(&bytes)
}
