//! Which method an interpreted frame is of.
//!
//! Its word has the address of the `Method`, whose memory may be another method's
//! when a class has been unloaded. So what makes a method the one that it is, its
//! class's name and its own in the class file, is mixed into the hash of the stack:
//! frames of two methods that had the same memory make two stacks. User space, which
//! gets the words a moment later, reads the same and computes the hash anew: if it is
//! the stack's, the memory is still that of the methods that ran.

use super::Memory;
use crate::abi::{FrameWord, JvmUnwind, StackId};

/// Addresses of a method's parts, and what tells it from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodIdentity {
    /// 0: it could not be read, and the rest neither.
    pub const_method: u64,
    /// Number of the name and of the signature in the class's constant pool, as they
    /// stand beside each other.
    names: u64,
    /// The symbol of the class's name.
    class_name: u64,
}

impl MethodIdentity {
    /// As far as it can be read.
    #[inline(always)]
    pub fn read(memory: &impl Memory, jvm: &JvmUnwind, method: u64) -> Self {
        let at = |base: u64, offset: u16| base.wrapping_add(offset as u64);
        let mut identity = Self::default();
        let Ok(const_method) = memory.word(at(method, jvm.const_method.offset)) else { return identity };
        identity.const_method = const_method;
        let Ok(names) = memory.word(at(const_method, jvm.method_names.offset)) else { return identity };
        identity.names = names;
        let Ok(pool) = memory.word(at(const_method, jvm.constants.offset)) else { return identity };
        let Ok(holder) = memory.word(at(pool, jvm.pool_holder.offset)) else { return identity };
        identity.class_name = memory.word(at(holder, jvm.klass_name.offset)).unwrap_or(0);
        identity
    }

    /// Mixed into the hash behind the frame's word.
    #[inline(always)]
    pub const fn mixed(self) -> u64 {
        self.names.rotate_left(17) ^ self.class_name
    }
}

/// The part of a process's generation that is mixed into its stacks' hashes.
#[inline(always)]
pub const fn mixed_generation(generation: u32) -> u8 {
    (generation & 0xff) as u8
}

/// Hash of a stack that was walked, from the leaf on: words, with the identity of
/// those that are methods by their address.
pub fn hash_words(
    generation: u8,
    words: impl Iterator<Item = (FrameWord, Option<MethodIdentity>)>,
    end: u8,
) -> StackId {
    let start = StackId::mix(StackId::seed(0), generation as u64);
    let hash = words.fold(start, |hash, (word, identity)| {
        let hash = StackId::mix(hash, word.0);
        identity.map_or(hash, |identity| StackId::mix(hash, identity.mixed()))
    });
    StackId::finish(StackId::mix(hash, end as u64))
}
