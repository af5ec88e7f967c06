//! Defines what a walk through a HotSpot JVM's code cache needs to know: where it is, and where
//! things stand in the JVM's structures. User space reads all of it from the JVM's own tables once.
//! The code cache's reserved ranges never change, so compilation costs nothing here.

/// A code cache has three segments, or one.
pub const MAX_CODE_HEAPS: usize = 4;
/// Most bytes read of a `CodeBlob` or `nmethod`: every field below stands within.
pub const MAX_BLOB_BYTES: usize = 512;

/// A range of addresses; empty if both are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressRange {
    pub start: u64,
    /// First address behind it.
    pub end: u64,
}

impl AddressRange {
    #[inline(always)]
    pub const fn contains(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }
}

/// A segment of the code cache (`CodeHeap`), by its reserved memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeHeap {
    pub memory: AddressRange,
    /// Address of the segment map, a byte per segment: 0 is a block's start, 0xff
    /// is free, everything else says how many segments to step back.
    pub segment_map: u64,
    pub log2_segment_size: u32,
    pub padding: u32,
}

/// A field of a structure. `width` 0: this version has no such field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    pub offset: u16,
    /// 1, 2, 4 or 8 bytes.
    pub width: u16,
}

/// Fields of `CodeBlob` and, behind it, `nmethod`, counted from the blob's start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobLayout {
    pub name: Field,
    /// In words; 0: the frame has no fixed size.
    pub frame_size: Field,
    /// From the code's start.
    pub frame_complete: Field,
    /// An address (JDK ≤ 22), or counted from the blob's start.
    pub code_begin: Field,
    pub size: Field,
    pub compile_id: Field,
    /// Where a deoptimised method's return addresses lead; an address (JDK ≤ 22),
    /// or counted from the blob's start.
    pub deopt_handler: Field,
    /// The same for call sites of method handles; JDK 25 still has it.
    pub deopt_mh_handler: Field,
    /// Where in the frame the return address was put that deoptimisation replaced,
    /// counted from the stack pointer.
    pub orig_pc: Field,
    /// Behind the inline-cache check; an address (JDK ≤ 22), or counted from the
    /// code's start.
    pub verified_entry: Field,
    /// How much to read for all of these, at most [`MAX_BLOB_BYTES`].
    pub bytes: u32,
    /// 1: `code_begin`, `deopt_*` and `verified_entry` are offsets.
    pub has_offsets: u32,
}

/// How a reference stands in a field of an object. Codes of [`ContinuationLayout::references`].
pub mod references {
    /// Objects of this JVM are not read.
    pub const NONE: u16 = 0;
    /// As an address.
    pub const PLAIN: u16 = 1;
    /// In four bytes: counted from a base, in units of a power of two (`CompressedOops`).
    pub const NARROW: u16 = 2;
    /// With colours, as generational ZGC has them (`ZPointer`).
    pub const COLOURED: u16 = 3;
}

/// Number of the register in which the interpreter and adapters of aarch64 have their caller's stack pointer. Codes of
/// [`JvmUnwind::sender_sp`].
pub mod sender_sp {
    /// Up to JDK 19.
    pub const X13: u32 = 13;
    /// Since JDK 20.
    pub const X19: u32 = 19;

    /// That of a JDK of this feature release.
    pub const fn of_jdk(feature: u32) -> u32 {
        if feature < 20 { X13 } else { X19 }
    }
}

/// Fields of `jdk.internal.vm.Continuation` and `jdk.internal.vm.StackChunk`, by their offsets: where the frames of a
/// virtual thread are while they are in the heap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinuationLayout {
    /// `Continuation.tail`: the chunk with the newest frames.
    pub tail: u16,
    /// `StackChunk.parent`: the chunk with older ones.
    pub parent: u16,
    /// `StackChunk.size`, `sp` and `bottom`: words of the copied stack, where its newest frame begins, and the end of
    /// the oldest one.
    pub size: u16,
    pub sp: u16,
    pub bottom: u16,
    /// Where those words begin.
    pub words: u16,
    /// One of [`references`]'s.
    pub references: u16,
    pub narrow_shift: u16,
    pub narrow_base: u64,
}

/// Everything of one JVM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JvmUnwind {
    /// Unused ones are empty.
    pub code_heaps: [CodeHeap; MAX_CODE_HEAPS],
    /// The lowest address of them all: [`super::FrameWord`] counts from it.
    pub code_low: u64,
    /// The interpreter's code.
    pub interpreter: AddressRange,
    /// Of it, where a method's frame may not be built yet.
    pub method_entries: AddressRange,
    /// Where Java returns to C++ (`StubRoutines::_call_stub_return_address`).
    pub call_stub_return: u64,
    /// Return addresses that mean: the rest of this virtual thread is in the heap.
    pub continuation_stubs: AddressRange,
    /// Addresses of the name "nmethod": compiled methods have one of them.
    pub nmethod_names: [u64; 2],
    /// Of "native nmethod": wrappers of native methods.
    pub native_names: [u64; 2],
    /// Of "vtable chunks".
    pub vtable_names: [u64; 2],
    pub blob: BlobLayout,
    /// `sizeof(HeapBlock)`: a blob begins so far behind its block.
    pub block_header: u32,
    /// `HeapBlock::Header::_used`.
    pub block_used: Field,
    /// `Method::_constMethod`.
    pub const_method: Field,
    /// `sizeof(ConstMethod)`: where the bytecodes begin.
    pub const_method_size: u32,
    /// `ConstMethod::_constants`.
    pub constants: Field,
    /// `ConstMethod::_name_index`; in the same word stands `_signature_index`.
    pub name_index: Field,
    /// `ConstantPool::_pool_holder`.
    pub pool_holder: Field,
    /// `Klass::_name`.
    pub klass_name: Field,
    /// `sizeof(ConstantPool)`: where its entries begin.
    pub pool_size: u32,
    pub padding: u32,
    /// Where an interpreter frame keeps its bytecode pointer, in words from fp.
    pub bcp_words: i32,
    /// On aarch64, one of [`sender_sp`]'s; not used elsewhere.
    pub sender_sp: u32,
    pub continuation: ContinuationLayout,
    /// The return address within `Continuation.enterSpecial`, which is the root of all virtual threads. The kernel side
    /// writes it when a walk has come there; 0 before.
    pub enter_special: u64,
}

#[cfg(test)]
mod tests {
    use core::mem::{align_of, size_of};

    use super::*;

    #[test]
    fn layouts_have_no_implicit_padding() {
        assert_eq!(size_of::<CodeHeap>(), 4 * 8);
        assert_eq!(size_of::<BlobLayout>(), 10 * 4 + 2 * 4);
        assert_eq!(size_of::<ContinuationLayout>(), 8 * 2 + 8);
        let words = MAX_CODE_HEAPS * 4 + 1 + 2 + 2 + 1 + 2 + 6 + 1;
        let structs = size_of::<BlobLayout>() + size_of::<ContinuationLayout>();
        assert_eq!(size_of::<JvmUnwind>(), words * 8 + structs + 12 * 4);
        assert_eq!(align_of::<JvmUnwind>(), 8);
    }
}
