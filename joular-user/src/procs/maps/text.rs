//! Reads the text of `/proc/PID/maps` line by line, and takes in those of code.

use std::io::{self, BufRead as _, BufReader, Read};

use joular_data::model::units::Address;

use super::{Kept, Name, Range};

/// Read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest line with its name; a path that the kernel takes has up to 4095 bytes, each of which may be escaped.
const MAX_LINE_BYTES: u64 = 17 << 10;

/// Takes in all mappings of code. Only a line with its end counts: another one may be cut anywhere.
pub(super) fn read(text: impl Read, kept: &mut Kept) -> io::Result<()> {
    let mut text = BufReader::with_capacity(BUFFER_BYTES, text);
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_whole = line.pop_if(|last| *last == b'\n').is_some();
        if !is_whole {
            text.skip_until(b'\n')?;
        }
        if line.is_empty() || is_without_code(&line) {
            continue;
        }
        let has_end = is_whole || line.len() as u64 == MAX_LINE_BYTES;
        if !has_end || take_in(&line, is_whole, kept).is_none() {
            kept.left_out.lines += 1;
        }
    }
}

/// Whether these are the permissions of a mapping without code, which most lines have.
fn is_without_code(line: &[u8]) -> bool {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    fields.nth(1).is_some_and(|permissions| permissions.len() == 4 && permissions[2] == b'-')
}

/// `start-end perms offset major:minor inode   path`
fn take_in(line: &[u8], is_whole: bool, kept: &mut Kept) -> Option<()> {
    let mut rest = line;
    let range = next_field(&mut rest)?;
    let permissions = next_field(&mut rest)?;
    let offset = hex(next_field(&mut rest)?)?;
    let device = next_field(&mut rest)?;
    let inode = std::str::from_utf8(next_field(&mut rest)?).ok()?.parse().ok()?;
    let (start, end) = split_hex(range, b'-')?;
    if start >= end || permissions.len() != 4 || permissions[2] != b'x' {
        return None;
    }
    let (major, minor) = split_hex(device, b':')?;
    let device = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    let name = if is_whole { Name::Escaped(rest.trim_ascii_start()) } else { Name::TooLong };
    kept.add(Range { start: Address(start), end: Address(end), offset }, device, inode, name);
    Some(())
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    let (field, tail) = text.split_at(end);
    *rest = tail;
    (!field.is_empty()).then_some(field)
}

fn split_hex(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    // `from_str_radix` takes a sign; the kernel never writes one.
    if text.starts_with('+') { None } else { u64::from_str_radix(text, 16).ok() }
}
