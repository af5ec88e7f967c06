//! Holds what is secret in a text, and puts the marker in its place.

use std::{borrow::Cow, ops::Range};

use super::MARKER;

/// A part of a text that is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) why: Why,
}

/// Why a part of a text is taken for a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The name before it, as it is written.
    Name(String),
    /// It says who logs in, before the host of a URL or of a JDBC string.
    UserInfo,
    /// A pattern of the user's, by its number from 0.
    Pattern(usize),
    /// It stands elsewhere under a name that tells.
    Repeated,
}

/// Brings ranges in order and makes one of those that overlap or touch. What is the marker already, or nothing, is left
/// out.
pub(super) fn in_order(text: &str, mut found: Vec<Found>) -> Vec<Found> {
    found.retain(|found| !text.get(found.range.clone()).unwrap_or_default().is_empty());
    found.sort_by_key(|found| found.range.start);
    let mut merged: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match merged.last_mut() {
            Some(last) if next.range.start <= last.range.end => last.range.end = last.range.end.max(next.range.end),
            _ => merged.push(next),
        }
    }
    merged.retain(|found| text.get(found.range.clone()) != Some(MARKER));
    merged
}

/// The text with the marker in place of what was found, which is in order.
pub(super) fn replaced<'a>(text: &'a str, found: &[Found]) -> Cow<'a, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut made, mut at) = (String::with_capacity(text.len()), 0);
    for Found { range, .. } in found {
        made.push_str(text.get(at..range.start).unwrap_or_default());
        made.push_str(MARKER);
        at = range.end;
    }
    made.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(made)
}
