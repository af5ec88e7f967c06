//! Finds where a JVM keeps the frames of virtual threads that are not on a stack: the offsets of fields of
//! `jdk.internal.vm.Continuation` and `jdk.internal.vm.StackChunk`, and how references to such objects are written.
//!
//! The classes are among those that the JVM itself uses (`vmClasses`), from JDK 21 on.

use joular_ebpf::abi::{ContinuationLayout, Field};

use super::{
    class_fields::{ClassLayout, References},
    fields::{LayoutError, Names},
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
    method::symbol,
};

/// JDK 25 has 94 classes in its array.
const MAX_CLASSES: u64 = 256;
const CONTINUATION: &str = "jdk/internal/vm/Continuation";
const STACK_CHUNK: &str = "jdk/internal/vm/StackChunk";
/// Bits of `Klass::_layout_helper` of an instance's class, beside its size.
const LAYOUT_BITS: u64 = 7;
/// The first release with virtual threads.
const WITH_CONTINUATIONS: u32 = 21;

/// Where the JVM's tables say how to find these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuationClasses {
    /// Address of the first of the JVM's own classes, without the load bias.
    first: u64,
    layout_helper: Field,
}

impl ContinuationClasses {
    /// Fails before JDK 21.
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        if names.feature < WITH_CONTINUATIONS {
            return Err(LayoutError::TooOld { feature: names.feature });
        }
        Ok(Self {
            first: names.fixed("vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]")?,
            layout_helper: names.one(&[("Klass", "_layout_helper")])?,
        })
    }
}

/// All 0 if it is not known (yet): then stacks end where they go on in the heap.
pub fn continuation_layout(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> ContinuationLayout {
    let found = layout.continuations.zip(layout.classes);
    let found = found.map(|(own, classes)| read(memory, layout, (&own, &classes), bias));
    found.and_then(Result::ok).flatten().unwrap_or_default()
}

fn read(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    (own, classes): (&ContinuationClasses, &ClassLayout),
    bias: u64,
) -> Result<Option<ContinuationLayout>, Unreadable> {
    let [continuation, chunk] = find_classes(memory, layout, bias.wrapping_add(own.first))?;
    let (Some(continuation), Some(chunk)) = (continuation, chunk) else { return Ok(None) };
    let [tail] = classes.offsets(memory, layout, continuation, ["tail"])?;
    let [parent, size, sp, bottom] = classes.offsets(memory, layout, chunk, ["parent", "size", "sp", "bottom"])?;
    let instance = memory.field(chunk, own.layout_helper)? & !LAYOUT_BITS;
    let (Some(tail), Some(parent), Some(size), Some(sp), Some(bottom), Ok(words)) =
        (tail, parent, size, sp, bottom, u16::try_from(instance))
    else {
        return Ok(None);
    };
    let References { kind: references, narrow_base, narrow_shift, .. } =
        References::read(memory, layout, classes, bias)?;
    Ok(Some(ContinuationLayout { tail, parent, size, sp, bottom, words, references, narrow_shift, narrow_base }))
}

/// Of `Continuation` and of `StackChunk`, if they are loaded.
fn find_classes(memory: &dyn RemoteMemory, layout: &Layout, first: u64) -> Result<[Option<u64>; 2], Unreadable> {
    let mut found = [None; 2];
    for index in 0..MAX_CLASSES {
        let class = memory.u64(first.wrapping_add(index * 8))?;
        // Behind the last one is something else.
        let name = memory.field(class, layout.method.klass_name).and_then(|name| symbol(memory, &layout.method, name));
        if let Ok(name) = name
            && let Some(place) = [CONTINUATION, STACK_CHUNK].iter().position(|wanted| *wanted == name)
        {
            found[place] = Some(class);
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(found)
}
