//! Finds what a process's mappings of code say, and what changes of them mean.

use crate::symbols::{
    mapped_code::{CodeOwner, MappedCode},
    native::FileKey,
};

pub const fn file_of(code: &MappedCode) -> Option<FileKey> {
    match code.owner {
        CodeOwner::File(file) => Some(file),
        _ => None,
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
    let both_generated = old.owner == CodeOwner::Generated && new.owner == CodeOwner::Generated;
    overlap && !both_generated && (old.owner != new.owner || !same_place)
}
