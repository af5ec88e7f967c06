//! Decodes bytes of the ring buffer. Pure: a damaged record yields an error and nothing worse.

use bytes::Buf as _;
use joular_ebpf::abi::{
    COLLECTION_NAME_BYTES, Comm, LifecycleRecord, MAX_USER_FRAMES, OBJECT_AGES, PoolRecord, RecordKind, StackHeader,
    stack_flags,
};
use thiserror::Error;

use super::RawStack;
use crate::model::{
    quality::StackQuality,
    target_text::TargetText,
    units::{Address, MonotonicNs, Pid, Tid},
};

/// A decoded ring-buffer record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A stack, and the process it was first seen in.
    Stack {
        pid: Pid,
        /// Generation of the tables by which it was walked: see `joular_ebpf::walk::identity`.
        generation: u8,
        stack: RawStack,
    },
    Lifecycle(Lifecycle),
    Pool(Box<Pool>),
}

/// A memory pool of a JVM as a collection begins or ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub pid: Pid,
    pub is_end: bool,
    pub time: MonotonicNs,
    pub used_bytes: u64,
    pub collector: TargetText,
    pub name: TargetText,
    /// Empty: not known.
    pub cause: TargetText,
    /// Bytes by age from age 1 on; all 0 where they are not kept.
    pub ages: Vec<u64>,
}

/// A birth, death or renaming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    pub kind: LifecycleKind,
    pub pid: Pid,
    pub tid: Tid,
    pub time: MonotonicNs,
    pub start_boottime_ns: u64,
    pub comm: TargetText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleKind {
    Exec,
    Fork {
        parent: Pid,
    },
    /// The last thread of a process ended.
    ProcessEnd,
    /// A thread took a new name.
    Rename,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("kernel record of kind {kind} is {len} bytes long, which is too short")]
    TooShort { kind: u32, len: usize },
    #[error("kernel record of unknown kind {0}")]
    UnknownKind(u32),
    #[error("kernel stack record claims {0} frames")]
    TooManyFrames(u32),
}

/// Decodes one record.
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    let too_short = |kind| DecodeError::TooShort { kind, len: bytes.len() };
    let kind = u32::from_ne_bytes(bytes.get(..4).and_then(|b| b.try_into().ok()).ok_or(too_short(0))?);
    match kind {
        RecordKind::STACK => stack(bytes).ok_or(too_short(kind))?,
        RecordKind::EXEC | RecordKind::FORK | RecordKind::EXIT | RecordKind::COMM => {
            Ok(Record::Lifecycle(lifecycle(kind, bytes).ok_or(too_short(kind))?))
        }
        RecordKind::POOL => Ok(Record::Pool(Box::new(pool(bytes).ok_or(too_short(kind))?))),
        other => Err(DecodeError::UnknownKind(other)),
    }
}

/// The name in a kernel `comm` field, up to its terminator.
pub fn comm_text(comm: &Comm) -> TargetText {
    text(comm)
}

/// What stands before the first zero.
fn text(bytes: &[u8]) -> TargetText {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned().into()
}

/// A name as the kernel keeps it; the inverse of [`comm_text`].
pub fn comm_bytes(text: &str) -> Comm {
    let mut comm = Comm::default();
    let kept = comm.len() - 1;
    for (target, byte) in comm.iter_mut().take(kept).zip(text.bytes()) {
        *target = byte;
    }
    comm
}

fn stack(mut bytes: &[u8]) -> Option<Result<Record, DecodeError>> {
    let _kind = bytes.try_get_u32_ne().ok()?;
    let flags = bytes.try_get_u32_ne().ok()?;
    let len = bytes.try_get_u32_ne().ok()?;
    let tgid = bytes.try_get_u32_ne().ok()?;
    let id = bytes.try_get_u64_ne().ok()?;
    if len as usize > MAX_USER_FRAMES {
        return Some(Err(DecodeError::TooManyFrames(len)));
    }
    let frames = (0..len).map(|_| bytes.try_get_u64_ne().ok().map(Address)).collect::<Option<Vec<_>>>()?;
    let stack =
        RawStack { id, is_kernel: flags & stack_flags::KERNEL != 0, quality: StackQuality::of_flags(flags), frames };
    Some(Ok(Record::Stack { pid: Pid(tgid), generation: stack_flags::generation(flags), stack }))
}

fn lifecycle(kind: u32, mut bytes: &[u8]) -> Option<Lifecycle> {
    let _kind = bytes.try_get_u32_ne().ok()?;
    let tgid = bytes.try_get_u32_ne().ok()?;
    let tid = bytes.try_get_u32_ne().ok()?;
    let parent_tgid = bytes.try_get_u32_ne().ok()?;
    let time_ns = bytes.try_get_u64_ne().ok()?;
    let start_boottime_ns = bytes.try_get_u64_ne().ok()?;
    let mut comm = Comm::default();
    bytes.try_copy_to_slice(&mut comm).ok()?;
    Some(Lifecycle {
        kind: match kind {
            RecordKind::EXEC => LifecycleKind::Exec,
            RecordKind::FORK => LifecycleKind::Fork { parent: Pid(parent_tgid) },
            RecordKind::EXIT => LifecycleKind::ProcessEnd,
            _ => LifecycleKind::Rename,
        },
        pid: Pid(tgid),
        tid: Tid(tid),
        time: MonotonicNs(time_ns),
        start_boottime_ns,
        comm: comm_text(&comm),
    })
}

fn pool(mut bytes: &[u8]) -> Option<Pool> {
    let _kind = bytes.try_get_u32_ne().ok()?;
    let tgid = bytes.try_get_u32_ne().ok()?;
    let is_end = bytes.try_get_u32_ne().ok()? != 0;
    let _padding = bytes.try_get_u32_ne().ok()?;
    let time_ns = bytes.try_get_u64_ne().ok()?;
    let used_bytes = bytes.try_get_u64_ne().ok()?;
    let mut name = || {
        let mut name = [0; COLLECTION_NAME_BYTES];
        bytes.try_copy_to_slice(&mut name).ok().map(|()| text(&name))
    };
    let (collector, pool, cause) = (name()?, name()?, name()?);
    let ages = (0..OBJECT_AGES).map(|_| bytes.try_get_u64_ne().ok()).collect::<Option<Vec<_>>>()?;
    let ages = ages.get(1..).unwrap_or_default().to_vec();
    Some(Pool { pid: Pid(tgid), is_end, time: MonotonicNs(time_ns), used_bytes, collector, name: pool, cause, ages })
}

/// Checks the layouts above against the types that the kernel side writes.
const _: () = {
    assert!(size_of::<StackHeader>() == 24);
    assert!(size_of::<LifecycleRecord>() == 48);
    assert!(size_of::<PoolRecord>() == 32 + 3 * COLLECTION_NAME_BYTES + 8 * OBJECT_AGES);
};

#[cfg(test)]
mod tests {
    use joular_ebpf::abi::{unwinder, walk_end};
    use proptest::prelude::*;

    use super::*;

    fn stack_record(len: u32, frames: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [RecordKind::STACK, stack_flags::user(unwinder::HELPER, walk_end::DEPTH), len, 42] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(7_u64.to_ne_bytes());
        frames.iter().for_each(|frame| bytes.extend(frame.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_stack_is_its_header_and_frames() {
        let Ok(Record::Stack { pid, generation: 0, stack }) = decode(&stack_record(2, &[10, 20])) else {
            panic!("no stack")
        };
        assert_eq!(pid, Pid(42));
        assert_eq!(
            stack,
            RawStack {
                id: 7,
                is_kernel: false,
                quality: StackQuality::TRUNCATED,
                frames: vec![Address(10), Address(20)]
            }
        );
    }

    #[test]
    fn a_pool_is_its_figures_and_names() {
        let mut bytes = Vec::new();
        for word in [RecordKind::POOL, 42, 1, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in [7_u64, 4096] {
            bytes.extend(word.to_ne_bytes());
        }
        for name in ["Copy", "Eden Space", "Allocation Failure"] {
            let mut field = [0; COLLECTION_NAME_BYTES];
            field[..name.len()].copy_from_slice(name.as_bytes());
            bytes.extend(field);
        }
        (0..16_u64).for_each(|age| bytes.extend((age * 100).to_ne_bytes()));
        let expected = Pool {
            pid: Pid(42),
            is_end: true,
            time: MonotonicNs(7),
            used_bytes: 4096,
            collector: "Copy".into(),
            name: "Eden Space".into(),
            cause: "Allocation Failure".into(),
            ages: (1..16).map(|age| age * 100).collect(),
        };
        assert_eq!(decode(&bytes), Ok(Record::Pool(Box::new(expected))));
        assert_eq!(decode(&bytes[..200]), Err(DecodeError::TooShort { kind: 6, len: 200 }));
    }

    #[test]
    fn damaged_records_say_what_is_wrong() {
        assert_eq!(decode(&stack_record(3, &[10])), Err(DecodeError::TooShort { kind: 1, len: 32 }));
        assert_eq!(decode(&stack_record(1025, &[10])), Err(DecodeError::TooManyFrames(1025)));
        assert_eq!(decode(&99_u32.to_ne_bytes()), Err(DecodeError::UnknownKind(99)));
        assert_eq!(decode(&[1]), Err(DecodeError::TooShort { kind: 0, len: 1 }));
    }

    #[test]
    fn a_name_ends_at_its_terminator() {
        assert_eq!(comm_text(b"java\0ignored\0\0\0\0"), "java");
        assert_eq!(comm_text(&comm_bytes("java")), "java");
        assert_eq!(comm_text(&comm_bytes("a name of twenty byte")), "a name of twent");
        assert_eq!(comm_text(&[0xff; 16]).raw().chars().count(), 16);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}
