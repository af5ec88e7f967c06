//! Gives interpreted methods numbers that stay theirs.
//!
//! The kernel side knows them by addresses, whose memory may be another method's once a class is
//! unloaded. So when a stack arrives, right after its first sample, each method gets a number that
//! stays its own ([`Pinned`]), provided that its memory is still what it was when the stack was
//! hashed (see `joular_ebpf::walk::identity`). From then on words have the number in place of the
//! address.

use std::{collections::HashMap, sync::Arc};

use joular_data::model::units::Address;
use joular_ebpf::{
    abi::{FrameRef, FrameWord, StackId},
    walk::identity::{MethodIdentity, hash_words},
};

use super::method::Method;

/// Limit of methods held: with their names and lines some megabytes.
const MAX_METHODS: usize = 1 << 14;

/// Methods whose names were read while they certainly existed.
#[derive(Debug, Default)]
pub struct Pinned {
    /// Numbers by address and identity. Several may be held for one address.
    numbers: HashMap<(u64, MethodIdentity), u64>,
    methods: HashMap<u64, Arc<Method>>,
    last: u64,
}

impl Pinned {
    /// The number of the method at an address; `read` says which method it is. None when the limit
    /// is reached, until [`Self::bound`].
    pub fn number(
        &mut self,
        address: u64,
        identity: MethodIdentity,
        read: impl FnOnce() -> Option<Arc<Method>>,
    ) -> Option<u64> {
        if let Some(&known) = self.numbers.get(&(address, identity)) {
            return Some(known);
        }
        if self.methods.len() >= MAX_METHODS {
            return None;
        }
        let method = read()?;
        self.last += 1;
        self.numbers.insert((address, identity), self.last);
        self.methods.insert(self.last, method);
        Some(self.last)
    }

    pub fn method(&self, number: u64) -> Option<&Arc<Method>> {
        self.methods.get(&number)
    }

    /// Drops all methods if there are too many, and returns whether it did. Numbers are never
    /// reused, so words with dropped numbers have no name from then on.
    pub fn bound(&mut self) -> bool {
        let is_full = self.methods.len() >= MAX_METHODS;
        if is_full {
            self.numbers.clear();
            self.methods.clear();
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

    /// Puts numbers in the place of methods. If the methods' memory is not what it was when the stack was
    /// hashed, they have no names.
    pub fn pin(self, identities: &HashMap<u64, MethodIdentity>, mut number: impl FnMut(u64, MethodIdentity) -> u64) {
        if self.methods().next().is_none() {
            return;
        }
        let identity = |method: Option<u64>| method.and_then(|method| identities.get(&method)).copied();
        let of_word = |word: &Address| (FrameWord(word.0), identity(method_of(FrameWord(word.0))));
        let is_unchanged = hash_words(self.generation, self.words.iter().map(of_word), self.end) == self.id;
        for word in self.words {
            let was = FrameWord(word.0);
            if let Some(method) = method_of(was)
                && let Some(identity) = identity(Some(method))
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
        assert_eq!(pinned.methods.len(), MAX_METHODS);
        assert_eq!((held(&mut pinned, 8), held(&mut pinned, 1)), (Some(1), None), "it is full");
        assert!(pinned.method(1).is_some() && pinned.bound() && !pinned.bound());
        assert!(pinned.method(1).is_none());
        assert!(held(&mut pinned, 1) > Some(MAX_METHODS as u64));
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
