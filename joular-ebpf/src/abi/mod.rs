//! Defines the types that cross the kernel boundary, and the pure logic that both sides share.
//!
//! Layout rules: `#[repr(C)]`, explicit padding, integers only (no `bool`, enum or `Option`: any
//! bit pattern from the kernel must be a valid value), sizes pinned by the tests below.

mod allocation;
mod buffer;
#[cfg(test)]
mod buffer_tests;
mod collection;
mod comm_pattern;
mod corun;
mod counters;
mod ends;
mod event;
mod frame;
mod io;
mod jvm;
mod loss;
mod ring_share;
mod sampling;
mod slice;
mod stack;
mod thread;
mod walk;
mod window;

pub use allocation::{
    AllocatingThread, AllocationKey, AllocationSlot, FREE_REGION, JvmAllocation, MAX_REMEMBERED_BYTES,
    MAX_REMEMBERED_OBJECTS, SampledObject, Survival, allocated_bytes, object_key,
};
pub use buffer::{BufferState, SeenIn, SeenObject, Told, sampled_bytes};
pub use collection::{
    ArgumentPlace, COLLECTION_NAME_BYTES, CollectionName, JvmCollections, OBJECT_AGES, PoolArguments, PoolRecord,
    forwards_survivors, is_beside_heap, keeps_survivors,
};
pub use comm_pattern::{CommPattern, MAX_COMM_PATTERNS};
pub use corun::{BusyWord, corun_ns};
pub use counters::{CounterSlot, CounterState, MAX_COUNTERS, cut_count};
pub use ends::{CERTAIN, EndCounts};
pub use event::{COMM_LEN, Comm, LifecycleRecord, RecordKind, followed};
pub use frame::{FrameRef, FrameWord};
pub use io::{DeviceBytes, IoKey, IoKind, IoSlot, IpAddress};
pub use jvm::{
    AddressRange, BlobLayout, CodeHeap, ContinuationLayout, Field, JvmUnwind, MAX_BLOB_BYTES, MAX_CODE_HEAPS,
    references, sender_sp,
};
pub use loss::{LOSS_COUNT, Loss};
pub use ring_share::{CHEAP_RECORD_BYTES, RingShare, SHARE_NS};
pub use sampling::{SamplingClock, gap_ns};
pub use slice::{Fraction, Slice};
pub use stack::{MAX_STACK_FRAMES, SampleKey, SampleKind, SampleSlot, StackHeader, StackId, stack_flags};
pub use thread::{Place, ThreadKey, ThreadSlot, thread_flags};
pub use walk::{
    CodeMapping, CompiledFrame, CompilerThread, MAX_COMPILER_THREADS, MAX_COMPILER_THREADS_OF_JVM, MAX_JVMS,
    MAX_MAPPINGS, MAX_PROCESSES, MAX_ROWS, MAX_USER_FRAMES, ProcessUnwind, REMEMBERED, Remembered, TablesEpoch,
    UnwindRow, remembered_at, rule, unwinder, walk_end,
};
pub use window::{BankTimes, Boundary, CpuState, SplitNs, split_slice};

/// Marks the types that user space may copy from raw map and ring bytes.
#[cfg(feature = "user")]
mod pod {
    use super::{
        AllocatingThread, AllocationKey, AllocationSlot, CodeMapping, CommPattern, CompilerThread, CounterSlot,
        CpuState, IoKey, IoSlot, JvmAllocation, JvmCollections, JvmUnwind, LifecycleRecord, ProcessUnwind, RingShare,
        SampleKey, SampleSlot, StackHeader, ThreadSlot, UnwindRow,
    };

    // SAFETY: all are repr(C), Copy, made of integers and integer arrays only,
    // without implicit padding (asserted by the layout tests).
    unsafe impl aya::Pod for ThreadSlot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for SampleKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for SampleSlot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for StackHeader {}
    // SAFETY: as above.
    unsafe impl aya::Pod for LifecycleRecord {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CpuState {}
    // SAFETY: as above.
    unsafe impl aya::Pod for ProcessUnwind {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CodeMapping {}
    // SAFETY: as above.
    unsafe impl aya::Pod for UnwindRow {}
    // SAFETY: as above.
    unsafe impl aya::Pod for JvmUnwind {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CompilerThread {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CounterSlot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for AllocatingThread {}
    // SAFETY: as above.
    unsafe impl aya::Pod for AllocationKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for AllocationSlot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for JvmAllocation {}
    // SAFETY: as above.
    unsafe impl aya::Pod for JvmCollections {}
    // SAFETY: as above.
    unsafe impl aya::Pod for IoKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for IoSlot {}
    // SAFETY: as above.
    unsafe impl aya::Pod for CommPattern {}
    // SAFETY: as above.
    unsafe impl aya::Pod for RingShare {}
}

#[cfg(test)]
mod tests {
    use core::mem::{align_of, size_of};

    use super::*;

    /// A changed size is a changed contract: both sides are built together,
    /// but implicit padding would leak kernel stack bytes and fail the verifier.
    #[test]
    fn layouts_have_no_implicit_padding() {
        assert_eq!(size_of::<ThreadSlot>(), 4 * 8 + 4 * 4 + COMM_LEN);
        assert_eq!(size_of::<SampleKey>(), 3 * 8 + 2 * 4);
        assert_eq!(size_of::<SampleSlot>(), 8);
        assert_eq!(size_of::<StackHeader>(), 4 * 4 + 8);
        assert_eq!(size_of::<LifecycleRecord>(), 4 * 4 + 2 * 8 + COMM_LEN);
        assert_eq!(size_of::<AllocatingThread>(), 8 + 6 * 4);
        assert_eq!(size_of::<BufferState>(), 4 * 8 + 8 + 2 * 4 + 32 * 2);
        assert_eq!(size_of::<AllocationKey>(), 2 * 8);
        assert_eq!(size_of::<AllocationSlot>(), 3 * 8 + 2 * 4);
        assert_eq!(size_of::<JvmAllocation>(), 6 * 4);
        assert_eq!(size_of::<JvmCollections>(), 6 * 16 + 3 * 8 + 24);
        assert_eq!(size_of::<PoolRecord>(), 4 * 4 + 2 * 8 + 3 * COLLECTION_NAME_BYTES + OBJECT_AGES * 8);
        assert_eq!(size_of::<IoKey>(), 2 * 8 + 2 * 4);
        assert_eq!(size_of::<IoSlot>(), 8 + 2 * 4);
        assert_eq!(size_of::<CommPattern>(), 4 * 8);
        assert_eq!(size_of::<RingShare>(), 8 + 2 * 4);
        assert_eq!(size_of::<BankTimes>(), 4 * 8);
        assert_eq!(size_of::<CounterSlot>(), MAX_COUNTERS * 8);
        assert_eq!(size_of::<CounterState>(), 3 * MAX_COUNTERS * 8);
        assert_eq!(size_of::<CpuState>(), 16 + 2 * 32 + 8 + 3 * 8);
        assert_eq!(align_of::<LifecycleRecord>(), 8);
    }
}
