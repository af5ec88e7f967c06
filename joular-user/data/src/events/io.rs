//! Defines what threads moved through sockets and files in a window, and samples of where targets called from.

use joular_ebpf::abi::IoKind;
use serde::{Deserialize, Serialize};

use crate::model::units::{Pid, Tid};

/// Bytes moved in the coming window, by all threads of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowIo {
    /// Whether this kernel says what threads read from devices and wrote to them.
    pub counts_devices: bool,
    /// By process, thread key and kind.
    pub threads: Vec<ThreadIo>,
    /// Of targets, by process, thread key, kind and stack.
    pub samples: Vec<IoSample>,
}

/// What one thread moved of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIo {
    pub tid: Tid,
    pub pid: Pid,
    /// Start time of the thread as its key keeps it: see `abi::ThreadKey`.
    pub thread_key: u64,
    #[serde(with = "by_number")]
    pub kind: IoKind,
    /// Exact.
    pub bytes: u64,
    pub calls: u64,
}

/// Calls that were sampled, of one thread and kind on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSample {
    pub tid: Tid,
    pub pid: Pid,
    pub thread_key: u64,
    #[serde(with = "by_number")]
    pub kind: IoKind,
    /// Id of the stack.
    pub stack: u64,
    /// What the samples stand for, about: [`ThreadIo::bytes`] are divided in proportion.
    pub bytes: u64,
    pub samples: u64,
}

/// A kind is recorded as its number.
mod by_number {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::IoKind;

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
    pub(super) fn serialize<S: Serializer>(kind: &IoKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(*kind as u32)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IoKind, D::Error> {
        let number = u32::deserialize(deserializer)?;
        IoKind::decode(number).ok_or_else(|| D::Error::custom(format!("no kind of bytes has the number {number}")))
    }
}
