//! Lists every way in which the kernel side can lose something, counted by cause.

/// Number of loss causes.
pub const LOSS_COUNT: usize = 21;

/// A cause of loss; the index of its counter in the `LOSSES` map.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The thread map was full: the time went to `unslotted_ns`.
    ThreadMapFull = 0,
    /// The samples map was full: the sample keeps its thread, loses its stack.
    SampleMapFull = 1,
    /// The ring buffer was full: a stack's addresses were not sent.
    StackRingFull = 2,
    /// The ring buffer was full: a lifecycle event was not sent.
    LifecycleRingFull = 3,
    /// The user stack could not be read.
    UserStackFailed = 4,
    /// The kernel stack could not be read.
    KernelStackFailed = 5,
    /// The set of known stacks was full: a stack is sent again each time.
    KnownStacksFull = 6,
    /// A sample interrupted the accounting itself.
    NestedSample = 7,
    /// The cycle counter could not be read: a slice has no cycles.
    CyclesUnread = 8,
    /// The timer for the next sample could not be set: the CPU's next timer interrupt tries again.
    TimerNotSet = 9,
    /// A counter could not be read: a slice lacks what it counted.
    CounterUnread = 10,
    /// The map of counts was full: a slice's counts have no thread.
    CounterMapFull = 11,
    /// The map of allocations was full: a sample of an allocation has no stack.
    AllocationMapFull = 12,
    /// The stack of an allocation was not read, because another thread's was being read on the same CPU.
    NestedAllocation = 13,
    /// The ring buffer was full: the begin or end of a collection was not told.
    CollectionRingFull = 14,
    /// The map of bytes was full: what a call moved, or its sample, is not counted.
    IoMapFull = 15,
    /// The stack of a call that moved bytes was not read, because another thread's was being read on the same CPU.
    NestedIo = 16,
    /// The map of what threads had moved from and to devices was full: such bytes of a thread are not counted.
    DeviceMapFull = 17,
    /// A process had used up its share of the ring buffer: a stack, a name or a collection of it was not told.
    RingShareUsed = 18,
    /// The map of processes that descend from the selected one was full: what becomes of one is not told.
    FollowedMapFull = 19,
    /// The kernel did not report a switch: the time since the last accounting went to the thread that was found, what it
    /// counted to nobody.
    HiddenSwitch = 20,
}

impl Loss {
    pub const ALL: [Self; LOSS_COUNT] = [
        Self::ThreadMapFull,
        Self::SampleMapFull,
        Self::StackRingFull,
        Self::LifecycleRingFull,
        Self::UserStackFailed,
        Self::KernelStackFailed,
        Self::KnownStacksFull,
        Self::NestedSample,
        Self::CyclesUnread,
        Self::TimerNotSet,
        Self::CounterUnread,
        Self::CounterMapFull,
        Self::AllocationMapFull,
        Self::NestedAllocation,
        Self::CollectionRingFull,
        Self::IoMapFull,
        Self::NestedIo,
        Self::DeviceMapFull,
        Self::RingShareUsed,
        Self::FollowedMapFull,
        Self::HiddenSwitch,
    ];

    /// Stable name, used in every output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadMapFull => "thread_map_full",
            Self::SampleMapFull => "sample_map_full",
            Self::StackRingFull => "stack_ring_full",
            Self::LifecycleRingFull => "lifecycle_ring_full",
            Self::UserStackFailed => "user_stack_failed",
            Self::KernelStackFailed => "kernel_stack_failed",
            Self::KnownStacksFull => "known_stacks_full",
            Self::NestedSample => "nested_sample",
            Self::CyclesUnread => "cycles_unread",
            Self::TimerNotSet => "timer_not_set",
            Self::CounterUnread => "counter_unread",
            Self::CounterMapFull => "counter_map_full",
            Self::AllocationMapFull => "allocation_map_full",
            Self::NestedAllocation => "nested_allocation",
            Self::CollectionRingFull => "collection_ring_full",
            Self::IoMapFull => "io_map_full",
            Self::NestedIo => "nested_io",
            Self::DeviceMapFull => "device_map_full",
            Self::RingShareUsed => "ring_share_used",
            Self::FollowedMapFull => "followed_map_full",
            Self::HiddenSwitch => "hidden_switch",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_counter() {
        for (index, loss) in Loss::ALL.iter().enumerate() {
            assert_eq!(*loss as usize, index);
        }
    }
}
