//! Defines the event stream: everything the rest of the program knows about the world arrives as an
//! [`Event`].
//!
//! In a live run, events are decoded from kernel bytes ([`decode`]) or made by the code that looks
//! at processes, symbols and counters. In a replay, they come from a file ([`recording`]). The code
//! that turns events into joules cannot tell the difference, so a replay gives what the live run
//! gave.

mod allocations;
mod collections;
mod context;
mod counters;
pub mod decode;
pub mod event;
mod identity;
mod io;
pub mod long_name;
mod mark;
pub mod phases;
pub mod recording;
mod redacted;
mod service;
mod workload;

pub use allocations::{AllocationSample, BufferEnds, ThreadAllocation, WindowAllocations};
pub use collections::{Collection, Fate, WindowCollections};
pub use context::WindowContext;
pub use counters::{ThreadCounts, WindowCounters};
pub use event::{
    CpuTimes, EnergyReading, Event, JvmNews, LossCount, ProcessInfo, RawStack, RunEnd, RunInfo, Runtime, SampleCount,
    Symbol, ThreadTime, Window,
};
pub use identity::{HostIdentity, Machine, MachineKey, label};
pub use io::{IoSample, ThreadIo, WindowIo};
pub use joular_ebpf::abi::{IoKind, SampleKind};
pub use long_name::LongName;
pub use mark::{Mark, MarkFrom, MarkKind};
pub use service::{Service, ServiceFrom};
pub use workload::Workload;
