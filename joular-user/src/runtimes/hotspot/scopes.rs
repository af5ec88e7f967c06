//! Reads which methods were inlined where, as compilers write it: a chain of scopes.
//!
//! A scope says where its sender (the method that it was inlined into) stands, which method it is
//! (by its place among the code's metadata), and at which bytecode.

use super::unsigned5::Unsigned5;

use crate::bounds::Bound;

/// Longest form of the three numbers of a scope that are needed.
pub const SCOPE_BYTES: usize = 15;
/// Chains are as long as inlining is deep: HotSpot stops at 15 but for recursion
/// and method handles.
const MAX_SCOPES: usize = 64;

pub static INLINED: Bound = Bound::new(
    "inlined_callers_not_read",
    MAX_SCOPES as u64,
    "methods that are inlined into each other at one place of compiled code",
    "the outer ones, and the compiled method itself, are missing in the stack",
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Place of the sender's scope; 0: there is none.
    pub sender: u32,
    /// Counted from 1; 0: none.
    pub method_index: u32,
    /// -1 (before the first bytecode, e.g. while entering a monitor) becomes 0.
    pub bci: u16,
}

impl Scope {
    pub fn decode(bytes: &[u8], excludes_zero: bool) -> Option<Self> {
        let mut reader = Unsigned5::new(bytes, excludes_zero);
        let sender = reader.unsigned()?;
        let method_index = reader.unsigned()?;
        // Stored one higher, so that 0 stands for -1.
        let bci = reader.unsigned()?.saturating_sub(1);
        Some(Self { sender, method_index, bci: u16::try_from(bci).ok()? })
    }
}

/// The scope at `start` and its senders, innermost first, as far as they make sense:
/// a sender was written before those that it calls.
///
/// # Errors
/// If one cannot be read: what is missing would be callers.
pub fn chain<E>(start: u32, read: impl Fn(u32) -> Result<Option<Scope>, E>) -> Result<Vec<Scope>, E> {
    let mut scopes = Vec::new();
    let mut at = start;
    while at != 0 {
        if scopes.len() >= MAX_SCOPES {
            INLINED.cut(1);
            break;
        }
        let Some(scope) = read(at)? else { break };
        scopes.push(scope);
        if scope.sender >= at {
            break;
        }
        at = scope.sender;
    }
    Ok(scopes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATA: [u8; 12] = [9, 9, 9, 0, 1, 1, 3, 2, 6, 9, 1, 0];

    fn chain_in(data: &[u8], start: u32) -> Vec<Scope> {
        let scope = |at: u32| Scope::decode(data.get(at as usize..)?, false);
        chain(start, |at| Ok::<_, ()>(scope(at))).unwrap()
    }

    #[test]
    fn scopes_lead_to_their_senders() {
        let outer = Scope { sender: 0, method_index: 1, bci: 0 };
        let inner = Scope { sender: 3, method_index: 2, bci: 5 };
        assert_eq!(chain_in(&DATA, 6), [inner, outer]);
        assert_eq!(chain_in(&DATA, 3), [outer]);
        assert_eq!(chain_in(&DATA, 0), []);
    }

    #[test]
    fn a_sender_that_is_not_before_ends_the_chain() {
        assert_eq!(chain_in(&DATA, 9).len(), 1, "it names itself");
        assert_eq!(chain_in(&DATA, 11), [], "it is cut off");
    }

    proptest! {
        #[test]
        fn never_loops(data: Vec<u8>, start: u32) {
            let length = chain_in(&data, start % 256).len();
            prop_assert!(length <= MAX_SCOPES);
        }
    }
}
