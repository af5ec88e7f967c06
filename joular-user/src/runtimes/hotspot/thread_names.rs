//! Reads what Java threads are called: `Thread.name`, of which the kernel keeps 15 bytes.
//!
//! A name is an object, which a collector may move while it is read. What is read then may be anything, so it counts only
//! if it begins with what the kernel has; the caller checks that.

use super::{
    class_fields::References,
    fields::{LayoutError, Names},
    flags,
    jvm::Jvm,
    layout::Layout,
    memory::{RemoteMemory, Unchecked, Unreadable},
};
use crate::bounds::Bound;
use joular_ebpf::abi::Field;

/// Bytes of a name in an object: one or two for a character.
const MAX_NAME_BYTES: u64 = 512;
pub static NAMES: Bound =
    Bound::new("java_thread_name_cut", MAX_NAME_BYTES, "bytes of a Java thread's name in the heap", "it is cut");
/// Since this release a thread has its object behind a handle.
const WITH_HANDLES: u32 = 16;
/// Since this release the elements of an array begin directly behind its length.
const PACKED_ARRAYS: u32 = 23;

/// Where the JVM's tables say how to get from a thread to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameLayout {
    /// `JavaThread::_threadObj`.
    object: Field,
    has_handle: bool,
    /// Addresses of the pointers to these classes, without the load bias.
    thread: u64,
    string: u64,
}

impl NameLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        let class = |name: &str| {
            let new = format!("_klasses[static_cast<int>(vmClassID::{name}_klass_knum)]");
            let old = format!("_well_known_klasses[SystemDictionary::{name}_klass_knum]");
            names.fixed("vmClasses", &new).or_else(|_| names.fixed("SystemDictionary", &old))
        };
        Ok(Self {
            object: Field { offset: names.start("JavaThread", "_threadObj")?, width: 8 },
            has_handle: names.feature >= WITH_HANDLES,
            thread: class("Thread")?,
            string: class("String")?,
        })
    }
}

/// Where the parts of a name are in this JVM.
#[derive(Clone, Copy, Debug)]
struct Parts {
    references: References,
    /// `Thread.name`.
    name: u64,
    /// `String.value` and `String.coder`.
    value: u64,
    coder: u64,
    /// Of an array of bytes.
    length: u64,
    elements: u64,
}

impl Parts {
    fn find(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<Option<Self>, Unreadable> {
        let (Some(classes), Some(names)) = (layout.classes, layout.thread_names) else { return Ok(None) };
        let class = |place: u64| memory.u64(bias.wrapping_add(place));
        let [name] = classes.offsets(memory, layout, class(names.thread)?, ["name"])?;
        let [value, coder] = classes.offsets(memory, layout, class(names.string)?, ["value", "coder"])?;
        let (Some(name), Some(value), Some(coder)) = (name, value, coder) else { return Ok(None) };
        let (length, elements) = array_of_bytes(memory, layout, bias)?;
        let references = References::read(memory, layout, &classes, bias)?;
        Ok(Some(Self { references, name: name.into(), value: value.into(), coder: coder.into(), length, elements }))
    }

    /// What a thread is called; `None`: nothing yet.
    fn name_of(&self, memory: &dyn RemoteMemory, names: NameLayout, thread: u64) -> Result<Option<String>, Unreadable> {
        let mut object = memory.field(thread, names.object)?;
        if names.has_handle && object != 0 {
            object = self.references.of_jvm(memory.u64(object)?);
        }
        for offset in [self.name, self.value] {
            if object == 0 {
                return Ok(None);
            }
            let part = self.references.at(memory, object.wrapping_add(offset))?;
            if offset == self.value {
                return self.text(memory, part, memory.u8(object.wrapping_add(self.coder))?).map(Some);
            }
            object = part;
        }
        Ok(None)
    }

    fn text(&self, memory: &dyn RemoteMemory, array: u64, coder: u8) -> Result<String, Unreadable> {
        let length = u64::from(memory.u32(array.wrapping_add(self.length))?);
        let length = usize::try_from(NAMES.within(length)).unwrap_or(0);
        let bytes = memory.bytes(array.wrapping_add(self.elements), length)?;
        Ok(decoded(&bytes, coder))
    }
}

/// A string's value: Latin-1, or UTF-16 (`String.LATIN1`, `String.UTF16`).
fn decoded(bytes: &[u8], coder: u8) -> String {
    if coder == 0 {
        return bytes.iter().copied().map(char::from).collect();
    }
    let units: Vec<u16> = bytes.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect();
    String::from_utf16_lossy(&units)
}

/// Where an array of bytes has its length and its elements (`arrayOopDesc`).
fn array_of_bytes(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<(u64, u64), Unreadable> {
    let [is_compact, is_compressed] =
        flags::are_set(memory, layout, bias, ["UseCompactObjectHeaders", "UseCompressedClassPointers"])?;
    Ok(match (is_compact, is_compressed) {
        (Some(true), _) => (8, 12),
        // Flags that are gone are those that cannot be cleared any more.
        (_, Some(true) | None) => (12, 16),
        (_, Some(false)) if layout.feature >= PACKED_ARRAYS => (16, 20),
        (_, Some(false)) => (16, 24),
    })
}

/// Names threads of one JVM.
#[derive(Debug, Default)]
pub struct ThreadNames {
    /// Once they are found; classes are loaded while a JVM starts.
    parts: Option<Parts>,
    /// Addresses of the threads that were there last time.
    known: Vec<u64>,
}

impl ThreadNames {
    /// Names of those of these threads that have one, by their numbers in the JVM's own namespace.
    pub fn of(&mut self, jvm: &Jvm, wanted: &[u32]) -> Vec<(u32, String)> {
        let (build, memory, bias) = jvm.parts();
        let layout = &build.layout;
        let (Some(threads), Some(names)) = (layout.threads, layout.thread_names) else { return Vec::new() };
        if self.parts.is_none() {
            self.parts = Parts::find(memory, layout, bias).ok().flatten();
        }
        let Some(parts) = self.parts else { return Vec::new() };
        // A list that changes meanwhile is looked at again some time.
        let Ok(addresses) = threads.addresses(memory, bias, &self.known) else { return Vec::new() };
        self.known = addresses;
        let mut numbered = threads.numbered(memory, &self.known);
        numbered.retain(|(number, _)| wanted.contains(number));
        let unchecked = Unchecked(memory);
        let name = |thread| parts.name_of(&unchecked, names, thread).ok().flatten();
        let found = numbered.into_iter().filter_map(|(number, thread)| Some((number, name(thread)?))).collect();
        if memory.is_there() { found } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_or_two_bytes_for_a_character() {
        assert_eq!(decoded(b"Gr\xf6\xdfe", 0), "Größe");
        let utf_16: Vec<u8> = "𝒜π".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(&utf_16, 1), "𝒜π");
        assert_eq!(decoded(&utf_16[..3], 1), "\u{fffd}", "cut");
        assert_eq!([decoded(&[], 0), decoded(&[], 1)], ["", ""]);
    }
}
