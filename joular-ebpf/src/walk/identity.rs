//! Identifies the method of an interpreted frame.
//!
//! The frame's word has the address of the `Method`, whose memory may be another method's when a
//! class has been unloaded. So the method's identity, its class's name and its own in the class
//! file, is mixed into the hash of the stack. Frames of two methods that had the same memory make
//! two stacks. User space gets the words a moment later, reads the same and computes the hash
//! anew. If it is the stack's, the memory is still that of the methods that ran. The identities that it
//! read for an earlier stack do as well: if the hash is that of those, the methods are the same.

use super::Memory;
use crate::abi::{FrameWord, JvmUnwind, StackId};

/// Addresses of a method's parts, and what tells it from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodIdentity {
    /// 0: it could not be read, and neither could the rest.
    pub const_method: u64,
    /// Number of the name and of the signature in the class's constant pool, as they
    /// stand beside each other.
    pub numbers: u64,
    /// Symbols of the class's name and of its own.
    pub class_name: u64,
    pub name: u64,
}

impl MethodIdentity {
    /// Reads the identity as far as possible.
    #[inline(always)]
    pub fn read(memory: &impl Memory, jvm: &JvmUnwind, method: u64) -> Self {
        let at = |base: u64, offset: u16| base.wrapping_add(offset as u64);
        let mut identity = Self::default();
        let Ok(const_method) = memory.word(at(method, jvm.const_method.offset)) else { return identity };
        identity.const_method = const_method;
        let Ok(numbers) = memory.word(at(const_method, jvm.name_index.offset & !7)) else { return identity };
        identity.numbers = numbers;
        let Ok(pool) = memory.word(at(const_method, jvm.constants.offset)) else { return identity };
        let name_index = numbers >> (jvm.name_index.offset % 8 * 8) & 0xffff;
        let entry = pool.wrapping_add(jvm.pool_size as u64).wrapping_add(name_index * 8);
        identity.name = memory.word(entry).unwrap_or(0);
        let Ok(holder) = memory.word(at(pool, jvm.pool_holder.offset)) else { return identity };
        identity.class_name = memory.word(at(holder, jvm.klass_name.offset)).unwrap_or(0);
        identity
    }

    /// Mixed into the hash behind the frame's word.
    #[inline(always)]
    pub const fn mixed(self) -> u64 {
        self.numbers.rotate_left(17) ^ self.class_name ^ self.name.rotate_left(32) ^ self.const_method.rotate_left(48)
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
