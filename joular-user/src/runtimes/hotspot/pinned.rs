//! Gives interpreted methods numbers that stay theirs.
//!
//! The kernel side knows them by addresses, whose memory may be another method's once a class is
//! unloaded. So when a stack arrives, right after its first sample, each method gets a number that
//! stays its own ([`Pinned`]), provided that its memory is still what it was when the stack was
//! hashed (see `joular_ebpf::walk::identity`). From then on words have the number in place of the
//! address. Most methods of a stack are known from earlier ones; then nothing is read.

use std::{collections::HashMap, sync::Arc};

use joular_data::model::units::Address;
use joular_ebpf::{
    abi::{FrameRef, FrameWord, StackId},
    walk::identity::{MethodIdentity, hash_words},
};

use super::method::Method;

use crate::bounds::Bound;

/// New methods of a window that are certainly held: with their names and lines some megabytes.
const NEW_METHODS: usize = 1 << 13;
/// Limit of each half. A window begins with fewer than [`NEW_METHODS`] in the young one.
const MAX_METHODS: usize = 2 * NEW_METHODS;

pub static METHODS: Bound = Bound::new(
    "interpreted_methods_not_held",
    NEW_METHODS as u64,
    "interpreted methods of a JVM that are new in a window",
    "frames of the rest are `[evicted]`",
);

/// Methods whose names were read while they certainly existed.
///
/// There are two halves. When the young half is full, it becomes the old one, and methods that were in the old one are
/// forgotten. All stacks are sent again then, and the methods of those that come move to the young half with
/// the numbers that they have. So a method whose stacks are still seen is never forgotten.
#[derive(Debug, Default)]
pub struct Pinned {
    young: Half,
    old: Half,
    /// What was last at an address, since the young half was empty.
    latest: HashMap<u64, (MethodIdentity, u64)>,
    last: u64,
}

#[derive(Debug, Default)]
struct Half {
    /// By address and identity. Several may be held for one address.
    numbers: HashMap<(u64, MethodIdentity), u64>,
    methods: HashMap<u64, Arc<Method>>,
}

impl Half {
    fn put(&mut self, key: (u64, MethodIdentity), number: u64, method: Arc<Method>) {
        self.numbers.insert(key, number);
        self.methods.insert(number, method);
    }

    fn take(&mut self, key: (u64, MethodIdentity)) -> Option<(u64, Arc<Method>)> {
        let number = self.numbers.remove(&key)?;
        Some((number, self.methods.remove(&number)?))
    }
}

impl Pinned {
    /// The number of the method at an address; `read` says which method it is. None when the limit
    /// is reached, until [`Self::end_window`].
    pub fn number(
        &mut self,
        address: u64,
        identity: MethodIdentity,
        read: impl FnOnce() -> Option<Arc<Method>>,
    ) -> Option<u64> {
        let key = (address, identity);
        if let Some(&known) = self.young.numbers.get(&key) {
            self.latest.insert(address, (identity, known));
            return Some(known);
        }
        if self.young.methods.len() >= MAX_METHODS {
            // What the old half has is known for this window all the same.
            let known = self.old.numbers.get(&key).copied();
            METHODS.cut(u64::from(known.is_none()));
            return known;
        }
        let (number, method) = match self.old.take(key) {
            Some(known) => known,
            None => {
                let method = read()?;
                self.last += 1;
                (self.last, method)
            }
        };
        self.young.put(key, number, method);
        self.latest.insert(address, (identity, number));
        Some(number)
    }

    pub fn method(&self, number: u64) -> Option<&Arc<Method>> {
        self.young.methods.get(&number).or_else(|| self.old.methods.get(&number))
    }

    /// Forgets methods that have not been seen for long if there are too many, and returns whether it did: then all stacks
    /// must be sent again. Numbers are never reused, so words with numbers of forgotten methods have no name.
    pub fn end_window(&mut self) -> bool {
        let is_full = self.young.methods.len() >= NEW_METHODS;
        if is_full {
            self.old = std::mem::take(&mut self.young);
            self.latest.clear();
        }
        is_full
    }
}

/// A stack that has just arrived, as it was hashed.
#[derive(Debug)]
pub struct ArrivedStack<'a> {
    pub id: StackId,
    pub generation: u8,
    /// How the walk ended ([`joular_ebpf::abi::walk_end`]).
    pub end: u8,
    /// Frame words, leaf first.
    pub words: &'a mut [Address],
}

impl ArrivedStack<'_> {
    /// Addresses of the methods in it that are to have numbers.
    pub fn methods(&self) -> impl Iterator<Item = u64> {
        self.words.iter().filter_map(|word| method_of(FrameWord(word.0)))
    }

    /// Puts numbers in the place of methods if all are known and were still there when the stack was hashed;
    /// returns whether they were. Reads no memory.
    pub fn pin_known(self, pinned: &Pinned) -> bool {
        let known = |method| pinned.latest.get(&method).copied();
        if self.methods().next().is_none() {
            return true;
        }
        let is_known = self.methods().all(|method| known(method).is_some())
            && self.is_hashed_with(|method| known(method).map(|(identity, _)| identity));
        if is_known {
            for word in self.words {
                let was = FrameWord(word.0);
                if let Some((_, number)) = method_of(was).and_then(known) {
                    word.0 = with_number(was, number).0;
                }
            }
        }
        is_known
    }

    /// Whether these are the identities that its methods had when it was hashed.
    fn is_hashed_with(&self, identity: impl Fn(u64) -> Option<MethodIdentity>) -> bool {
        let words = self.words.iter().map(|word| FrameWord(word.0));
        let identified = words.map(|word| (word, method_of(word).and_then(&identity)));
        hash_words(self.generation, identified, self.end) == self.id
    }

    /// Puts numbers in the place of methods. If the methods' memory is not what it was when the stack was
    /// hashed, they have no names.
    pub fn pin(self, identities: &HashMap<u64, MethodIdentity>, mut number: impl FnMut(u64, MethodIdentity) -> u64) {
        if self.methods().next().is_none() {
            return;
        }
        let identity = |method: u64| identities.get(&method).copied();
        let is_unchanged = self.is_hashed_with(identity);
        for word in self.words {
            let was = FrameWord(word.0);
            if let Some(method) = method_of(was)
                && let Some(identity) = identity(method)
            {
                word.0 = with_number(was, if is_unchanged { number(method, identity) } else { 0 }).0;
            }
        }
    }
}

/// The word with a method's number in place of its address; 0 is nobody's.
pub const fn with_number(word: FrameWord, number: u64) -> FrameWord {
    match word.decode() {
        FrameRef::Interpreted { bci, .. } => FrameWord::interpreted(number << 3, bci),
        FrameRef::Compiling { .. } => FrameWord::compiling(number << 3),
        _ => word,
    }
}

/// The `Method*`, or later the number, of a word that has one.
pub const fn method_of(word: FrameWord) -> Option<u64> {
    match word.decode() {
        FrameRef::Interpreted { method, .. } | FrameRef::Compiling { method } => Some(method),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pinned: &mut Pinned, address: u64) -> Option<u64> {
        pinned.number(address, MethodIdentity::default(), || Some(Arc::new(Method::of_test())))
    }

    #[test]
    fn a_number_is_never_given_again() {
        let mut pinned = Pinned::default();
        assert_eq!((held(&mut pinned, 8), held(&mut pinned, 16), held(&mut pinned, 8)), (Some(1), Some(2), Some(1)));
        assert_eq!(pinned.number(24, MethodIdentity::default(), || None), None);
        for address in 0..MAX_METHODS as u64 {
            held(&mut pinned, address * 8);
        }
        assert_eq!(pinned.young.methods.len(), MAX_METHODS);
        assert_eq!((held(&mut pinned, 8), held(&mut pinned, 1)), (Some(1), None), "it is full");
        assert!(pinned.end_window() && !pinned.end_window());
        assert!(held(&mut pinned, 1) > Some(MAX_METHODS as u64));
        for address in 0..MAX_METHODS as u64 {
            held(&mut pinned, (1 << 32) + address * 8);
        }
        assert_eq!((held(&mut pinned, 8), held(&mut pinned, 2)), (Some(1), None), "it is full, with an old half");
    }

    /// A JVM that makes new classes all the time, as much as fits into a window.
    #[test]
    fn methods_that_are_seen_keep_their_numbers_however_many_are_new() {
        let mut pinned = Pinned::default();
        let seen = held(&mut pinned, 8);
        let mut of_last_window = Vec::new();
        for window in 1..20_u64 {
            let new = (0..NEW_METHODS as u64).map(|method| held(&mut pinned, (window << 32) + 8 * method));
            let new: Vec<u64> = new.map(|number| number.expect("there is room")).collect();
            assert_eq!(held(&mut pinned, 8), seen);
            assert!(pinned.end_window(), "as many as a half has");
            // Stacks that arrived shortly before are named shortly after.
            let has_name = |number: &u64| pinned.method(*number).is_some();
            assert!(new.iter().all(has_name) && !of_last_window.iter().any(has_name));
            of_last_window = new;
        }
    }

    #[test]
    fn what_is_known_needs_no_memory_if_it_is_what_was_hashed() {
        let identity = |name| MethodIdentity { const_method: 1, name, ..MethodIdentity::default() };
        let words =
            [FrameWord::interpreted(0x1000, 3), FrameWord::compiled_at(7, 8), FrameWord::interpreted(0x2000, 5)];
        let hashed = |of_second| {
            let identities = [Some(identity(1)), None, Some(of_second)];
            hash_words(1, words.into_iter().zip(identities), 2)
        };
        let pin = |pinned: &Pinned, id| {
            let mut words = words.map(|word| Address(word.0));
            let is_pinned = ArrivedStack { id, generation: 1, end: 2, words: &mut words }.pin_known(pinned);
            (is_pinned, words.map(|word| method_of(FrameWord(word.0))))
        };
        let (was, numbers) = ([Some(0x1000), None, Some(0x2000)], [Some(8), None, Some(16)]);
        let mut pinned = Pinned::default();
        pinned.number(0x1000, identity(1), || Some(Arc::new(Method::of_test())));
        assert_eq!(pin(&pinned, hashed(identity(2))), (false, was), "one method is not known");
        pinned.number(0x2000, identity(2), || Some(Arc::new(Method::of_test())));
        assert_eq!(pin(&pinned, hashed(identity(2))), (true, numbers));
        assert_eq!(pin(&pinned, hashed(identity(3))), (false, was), "another method has its memory now");
        pinned.number(0x2000, identity(3), || Some(Arc::new(Method::of_test())));
        assert_eq!(pin(&pinned, hashed(identity(3))), (true, [Some(8), None, Some(24)]));
        let mut none = [Address(0x5000)];
        let stack = ArrivedStack { id: StackId(1), generation: 1, end: 2, words: &mut none };
        assert!(stack.pin_known(&pinned), "without methods there is nothing to fix, whatever it was hashed with");
    }

    #[test]
    fn words_keep_their_bytecode() {
        let word = FrameWord::interpreted(0x7fff_1230, 7);
        assert_eq!(with_number(word, 5).decode(), FrameRef::Interpreted { method: 40, bci: 7 });
        assert_eq!(with_number(FrameWord::compiling(8), 5).decode(), FrameRef::Compiling { method: 40 });
        let compiled = FrameWord::compiled_at(1, 2);
        assert_eq!((with_number(compiled, 5), method_of(compiled)), (compiled, None));
        assert_eq!(method_of(word), Some(0x7fff_1230));
    }
}
