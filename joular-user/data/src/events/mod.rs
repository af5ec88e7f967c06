//! The event stream: everything the rest of the program knows about the
//! world comes through here as an [`Event`].
//!
//! Live, events are decoded from kernel bytes ([`decode`]) or made by the
//! parts that look at processes, symbols and counters; recorded, they come
//! from a file ([`recording`]). Whatever turns events into joules cannot tell
//! the difference, so a replay gives what the live run gave.

pub mod decode;
pub mod event;
pub mod recording;

pub use event::{
    CpuTimes, EnergyReading, Event, JvmNews, LossCount, ProcessInfo, RawStack, RunEnd, RunInfo, Runtime, SampleCount,
    Symbol, ThreadTime, Window,
};
pub use joular_ebpf::abi::SampleKind;
