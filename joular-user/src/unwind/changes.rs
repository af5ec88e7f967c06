//! Finds what a process's mappings of code say, and what changes of them mean.

use super::code::TableKey;
use crate::symbols::mapped_code::{CodeOwner, MappedCode};

pub const fn table_of(code: &MappedCode) -> Option<TableKey> {
    match code.owner {
        CodeOwner::File(file) => Some(TableKey::File(file)),
        CodeOwner::RunTime(id) => Some(TableKey::RunTime(id)),
        CodeOwner::Unreadable | CodeOwner::Generated => None,
    }
}

/// Whether any address means something else now. Both lists are sorted.
pub fn any_replaced(old: &[MappedCode], new: &[MappedCode]) -> bool {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    while let (Some(before), Some(after)) = (old.peek(), new.peek()) {
        if is_replaced(before, after) {
            return true;
        }
        if before.end <= after.end {
            old.next()
        } else {
            new.next()
        };
    }
    false
}

/// Whether an address of a file's code means something else now. Memory in which code is made
/// changes all the time; the code that names it handles that.
fn is_replaced(old: &MappedCode, new: &MappedCode) -> bool {
    let overlap = old.start < new.end && new.start < old.end;
    let same_place = old.start.0.wrapping_sub(old.offset) == new.start.0.wrapping_sub(new.offset);
    let is_generated = |code: &MappedCode| matches!(code.owner, CodeOwner::Generated | CodeOwner::RunTime(_));
    let both_generated = is_generated(old) && is_generated(new);
    overlap && !both_generated && (old.owner != new.owner || !same_place)
}
