//! Reads what a frame word stands for out of the JVM's memory.

use std::sync::Arc;

use joular_ebpf::abi::{FrameRef, FrameWord};

use super::{Jvm, Level, LookUp, Nmethod, Reader, Unreadable, evicted, is_compiled, is_same_id, levels};
use crate::runtimes::hotspot::{leaves::Leaves, stubs::Stubs};

impl Jvm {
    /// What a word stands for, and the compiled method that says it, if one does.
    pub(super) fn look_up(
        &self,
        reader: &mut Reader<'_>,
        leaves: &mut Leaves,
        stubs: &mut Stubs,
        word: FrameWord,
    ) -> Result<(Vec<Level>, Option<Nmethod>), Unreadable> {
        let pages = reader.memory;
        if let Some(levels) = self.without_memory(word) {
            return Ok((levels, None));
        }
        let levels = match word.decode() {
            FrameRef::CompiledAt { compile_id, offset } => {
                return self.compiled(reader, leaves, (compile_id, offset), self.leaf_look_up);
            }
            FrameRef::CompiledCall { compile_id, offset } => {
                return self.compiled(reader, leaves, (compile_id, offset), LookUp::At);
            }
            FrameRef::Blob { offset } => {
                let address = self.cache.low().wrapping_add(u64::from(offset));
                match self.cache.find_blob(pages, &self.build.layout, address)? {
                    // It was none when it was sampled: that had its compile id in its word.
                    Some(blob) if is_compiled(pages, &blob) => evicted(),
                    Some(blob) => reader.blob(blob, address, stubs)?,
                    None => evicted(),
                }
            }
            FrameRef::Class { symbol, hash } => reader.class(symbol, hash)?,
            FrameRef::Interpreted { .. } | FrameRef::Compiling { .. } | FrameRef::Native { .. } => evicted(),
        };
        Ok((levels, None))
    }

    fn compiled(
        &self,
        reader: &mut Reader<'_>,
        leaves: &mut Leaves,
        (compile_id, offset): (u32, u32),
        look_up: LookUp,
    ) -> Result<(Vec<Level>, Option<Nmethod>), Unreadable> {
        let pc = self.cache.low().wrapping_add(u64::from(offset));
        let layout = &self.build.layout;
        let gone = || Ok((evicted(), None));
        let Some(blob) = self.cache.find_blob(reader.memory, layout, pc)? else { return gone() };
        let nmethod = Nmethod::read(reader.memory, layout, blob)?;
        // Without a method it was unloaded.
        if !is_same_id(nmethod.compile_id, compile_id) || nmethod.method == 0 {
            return gone();
        }
        let at = |look_up| nmethod.methods_at(reader.memory, layout, pc, look_up);
        let described = if look_up == LookUp::At { at(LookUp::At)? } else { Vec::new() };
        let places = match self.leaf_look_up {
            _ if !described.is_empty() => described,
            // A call has no description if the JVM cannot stop in it: most stubs are called so.
            LookUp::Around => leaves.methods_at(reader.memory, layout, &self.cache, &nmethod, pc)?,
            other => at(other)?,
        };
        let kind = reader.kind(&nmethod)?;
        let named: Vec<u64> = places.iter().map(|place| place.method).chain([nmethod.method]).collect();
        let levels = levels(&nmethod, kind, places, |method| reader.method(method))?;
        let known = |method| Some((method, Arc::clone(reader.methods.get(&method)?)));
        leaves.keep(nmethod.compile_id, kind, named.into_iter().filter_map(known));
        Ok((levels, Some(nmethod)))
    }
}
