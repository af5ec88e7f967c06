//! Defines what the walk of a user stack needs to know of a process, and how it reports its
//! outcome.
//!
//! User space writes the tables, the kernel side reads them. All are arrays in which a process or
//! file has a range, so a look-up is a binary search.

/// Most levels kept of a user stack; a deeper one keeps its leaf side.
pub const MAX_USER_FRAMES: usize = 1024;

/// Sizes of the tables: processes, their mappings of code, rows of all files, JVMs.
pub const MAX_PROCESSES: u32 = 4_096;
pub const MAX_MAPPINGS: u32 = 1 << 16;
/// libjvm, the largest there usually is, has 131 000 to 206 000.
pub const MAX_ROWS: u32 = 1 << 21;
pub const MAX_JVMS: u32 = 1_024;
pub const MAX_COMPILER_THREADS: u32 = 4_096;
/// Of one JVM, which may name threads as it likes.
pub const MAX_COMPILER_THREADS_OF_JVM: usize = 64;

/// What is known of a process that can be walked; value of the map by tgid. A
/// process that is not there is walked by frame pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUnwind {
    /// Range of the map of [`CodeMapping`]s, sorted by address.
    pub first_mapping: u32,
    pub mapping_count: u32,
    /// Index of its [`super::JvmUnwind`] plus 1; 0: not a JVM, or one whose layout
    /// is not known.
    pub jvm: u32,
    /// Mixed into the hash of each of its stacks. A new number makes the kernel
    /// send all stacks again: memory that named them may mean something else now.
    pub generation: u32,
}

/// Code of a file in a process, or code that a run-time system wrote there for itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeMapping {
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What to take off an address (wrapping) for one as [`UnwindRow`] has it.
    pub bias: u64,
    /// Range of the map of rows, sorted by address; none: by frame pointers.
    pub first_row: u32,
    pub row_count: u32,
}

/// How to get from a frame to its caller, from this address on up to the next row's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnwindRow {
    /// Address in the file, as its program headers count; in code without a file, from its beginning.
    pub address: u32,
    /// Canonical frame address minus the rule's register, in words of 8 bytes.
    pub cfa_words: i16,
    /// Where the caller's frame pointer is saved, in words from the canonical
    /// frame address; 0: it is still in its register. On aarch64 the return address is in
    /// the word above it, and 0 says that both are in their registers; [`rule`] has exceptions.
    pub fp_words: i8,
    /// One of [`rule`]'s.
    pub rule: u8,
}

/// Where a compiler thread says what it compiles. None of it exists between two methods.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompilerThread {
    /// Address of the thread's `CompilerThread::_env`.
    pub env: u64,
    /// Offsets of `ciEnv::_task` and of `CompileTask::_method`.
    pub task: u16,
    pub method: u16,
    /// The process that was found to have this thread: the thread's number may be another's by now.
    pub tgid: u32,
}

/// How to get to the caller of a compiled method that called another, from one place in its code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledFrame {
    /// The number that the JVM gave this compilation of the method.
    pub compile_id: u32,
    /// Where that number stands, counted from [`super::JvmUnwind::code_low`]. Other code may be there by now.
    pub id_at: u32,
    /// Size of the frame, with the return address.
    pub words: u32,
    pub padding: u32,
}

/// What was looked up for an address, kept because the search takes longer than all else in a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered<T> {
    pub address: u64,
    /// [`ProcessUnwind::first_mapping`]: whose address.
    pub first_mapping: u32,
    /// As of which [`TablesEpoch`].
    pub epoch: u32,
    pub what: T,
}

/// Counts changes of the tables; what was remembered before the last one is not used.
pub type TablesEpoch = u32;

/// Addresses of each kind that a CPU remembers; a power of two.
pub const REMEMBERED: usize = 512;

/// Where among them an address has its place.
#[inline(always)]
pub const fn remembered_at(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize & (REMEMBERED - 1)
}

/// Ways to find the canonical frame address, which is what the stack pointer was
/// before the call. On x86-64 the return address stands in the word below.
pub mod rule {
    /// No table covers this code: it may have frame pointers.
    pub const NONE: u8 = 0;
    /// From the stack pointer.
    pub const SP: u8 = 1;
    /// From the frame pointer.
    pub const FP: u8 = 2;
    /// Nobody called: a thread's or process's first function.
    pub const ROOT: u8 = 3;
    /// An entry of the procedure linkage table: one word, or two from its eleventh byte on.
    pub const PLT: u8 = 4;
    /// The kernel's frame of a signal: the registers are in the `ucontext` that the
    /// stack pointer points at.
    pub const SIGNAL: u8 = 5;
    /// There is a rule, but not one that a row can express.
    pub const UNSUPPORTED: u8 = 6;
    /// As [`SP`], of code that leaves the frame pointer alone. The caller has pushed `fp_words` words
    /// for it, which are not part of the caller's frame, and pops them itself.
    pub const SP_PUSHED: u8 = 7;
    /// As [`SP`] and [`FP`] on aarch64, of code that keeps the return address alone, at `fp_words`: the
    /// caller's frame pointer is still in its register.
    pub const SP_RETURN_ONLY: u8 = 8;
    pub const FP_RETURN_ONLY: u8 = 9;
    /// As [`SP`] and [`FP`] on aarch64, of frames so large that the pair is too far below the frame address for
    /// `fp_words`: the words are counted upwards from the rule's register instead, and 0 is a place like any other.
    pub const SP_PAIR: u8 = 10;
    pub const FP_PAIR: u8 = 11;
    /// From here on: the stack pointer was aligned. What it was before is kept in the word that is
    /// `cfa_words` above the stack pointer, and the frame address is as many words above that as the
    /// rule is above this one.
    pub const KEPT_SP: u8 = 0x80;
    pub const MAX_ABOVE_KEPT: i32 = 0x7f;
}

/// How a stack was read. Codes of `StackHeader::flags`.
pub mod unwinder {
    /// By the kernel's helper: kernel stacks, and user stacks of processes that
    /// nothing better is known of.
    pub const HELPER: u8 = 0;
    /// By unwind tables, and through a JVM's code cache where there is one.
    pub const TABLES: u8 = 1;
}

/// Why a walk ended where it did. Codes of `StackHeader::flags`.
pub mod walk_end {
    /// A chain of frame pointers that ended; nobody can tell whether it was whole.
    pub const CHAIN: u8 = 0;
    /// At the thread's first function: the stack is whole.
    pub const ROOT: u8 = 1;
    /// The stack is deeper than what is kept.
    pub const DEPTH: u8 = 2;
    /// An address in no code that is known.
    pub const NO_MAPPING: u8 = 3;
    /// Native code without a usable rule.
    pub const NO_RULE: u8 = 4;
    /// The stack could not be read there, e.g. because it is paged out.
    pub const UNREADABLE: u8 = 5;
    /// The caller's frame would not be above the one before, or makes no sense otherwise.
    pub const IMPLAUSIBLE: u8 = 6;
    /// The code cache has no living code there.
    pub const DEAD_CODE: u8 = 7;
    /// The rest of a virtual thread's stack is in the heap.
    pub const FROZEN: u8 = 8;
    /// The programs may not run any longer.
    pub const BUDGET: u8 = 9;
}

#[cfg(test)]
mod tests {
    use core::mem::size_of;

    use super::*;

    #[test]
    fn layouts_have_no_implicit_padding() {
        assert_eq!(size_of::<ProcessUnwind>(), 4 * 4);
        assert_eq!(size_of::<CodeMapping>(), 3 * 8 + 2 * 4);
        assert_eq!(size_of::<UnwindRow>(), 8);
        assert_eq!(size_of::<Remembered<UnwindRow>>(), 8 + 2 * 4 + 8);
        assert_eq!(size_of::<Remembered<CompiledFrame>>(), 8 + 2 * 4 + 4 * 4);
    }

    #[test]
    fn neighbouring_addresses_have_places_of_their_own() {
        let mut taken = [0_u8; REMEMBERED];
        (0..64).for_each(|n| taken[remembered_at(0x7f12_3456_0000 + n * 5)] += 1);
        assert!(taken.iter().all(|count| *count <= 3));
        assert_eq!(size_of::<CompilerThread>(), 2 * 8);
    }
}
