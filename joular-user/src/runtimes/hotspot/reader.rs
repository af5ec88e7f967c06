//! Reads levels of code: from a blob, or a compiled method, and an address in it.

use std::{collections::HashMap, sync::Arc};

use joular_data::model::frame::{FrameKind, Marker};

use super::{
    answers::Level,
    code_cache::{Blob, blob_name, is_compiled},
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
    method::{Identity, Method, Names, class_name},
    nmethod::{LookUp, MethodAt, Nmethod},
    stubs::Stubs,
};

/// The blob that HotSpot makes stubs in that call virtual methods.
const VTABLE_CHUNKS: &str = "vtable chunks";

/// The level for the remains of code that was thrown away.
pub fn evicted() -> Vec<Level> {
    vec![Level {
        names: Names { name: Marker::Evicted.name().into(), ..Names::default() }.into(),
        kind: FrameKind::Marker,
        line: None,
    }]
}

/// Methods by their addresses, as they were when they were last read.
pub type Methods = HashMap<u64, Arc<Method>>;

/// Reads names, and reuses what was read before.
pub struct Reader<'a> {
    pub memory: &'a dyn RemoteMemory,
    pub layout: &'a Layout,
    pub methods: &'a mut Methods,
}

impl Reader<'_> {
    pub fn method(&mut self, address: u64) -> Result<Arc<Method>, Unreadable> {
        let identity = Identity::read(self.memory, self.layout, address)?;
        if let Some(known) = self.methods.get(&address).filter(|known| known.identity == identity) {
            return Ok(Arc::clone(known));
        }
        let method = Arc::new(Method::read(self.memory, self.layout, identity)?);
        self.methods.insert(address, Arc::clone(&method));
        Ok(method)
    }

    /// The level that stands for a class, by the symbol of its name.
    pub fn class(&mut self, symbol: u64, hash: u16) -> Result<Vec<Level>, Unreadable> {
        let is_it = match self.layout.allocation {
            Some(layout) => self.memory.u16(symbol.wrapping_add(layout.fields.symbol_hash.into()))? == hash,
            None => false,
        };
        let name = if is_it { class_name(self.memory, self.layout, symbol)? } else { None };
        Ok(name.map_or_else(evicted, |name| vec![Level::stub(&name)]))
    }

    /// The levels at an address in a blob, outermost first.
    pub fn blob(&mut self, blob: Blob, pc: u64, stubs: &mut Stubs) -> Result<Vec<Level>, Unreadable> {
        if is_compiled(self.memory, &blob) {
            let nmethod = Nmethod::read(self.memory, self.layout, blob)?;
            let places = nmethod.methods_at(self.memory, self.layout, pc, LookUp::AtOrAbove)?;
            return self.nmethod(&nmethod, places);
        }
        let name = blob_name(self.memory, &blob).unwrap_or_default();
        let stub = match name.as_str() {
            VTABLE_CHUNKS => stubs.vtable_name(self.memory, pc),
            _ => stubs.name(self.memory, pc),
        };
        Ok(vec![Level::stub(stub.unwrap_or(&name))])
    }

    /// Levels of methods in compiled code, which are given innermost first; outermost first.
    pub fn nmethod(&mut self, nmethod: &Nmethod, places: Vec<MethodAt>) -> Result<Vec<Level>, Unreadable> {
        levels(nmethod, self.kind(nmethod)?, places, |method| self.method(method))
    }

    /// How a method was compiled.
    pub fn kind(&self, nmethod: &Nmethod) -> Result<FrameKind, Unreadable> {
        Ok(match nmethod.compile_level {
            1..=3 => FrameKind::CompiledC1,
            4 => FrameKind::CompiledC2,
            _ if self.is_native_wrapper(&nmethod.blob)? => FrameKind::NativeWrapper,
            _ => FrameKind::Compiled,
        })
    }

    fn is_native_wrapper(&self, blob: &Blob) -> Result<bool, Unreadable> {
        let name = blob_name(self.memory, blob).ok_or(Unreadable { address: blob.name, length: 1 })?;
        Ok(name == "native nmethod")
    }
}

/// Levels of methods in code that was compiled in some way; `read` gives a method by its address.
pub fn levels<E>(
    nmethod: &Nmethod,
    kind: FrameKind,
    mut places: Vec<MethodAt>,
    mut read: impl FnMut(u64) -> Result<Arc<Method>, E>,
) -> Result<Vec<Level>, E> {
    if places.is_empty() {
        places.push(MethodAt { method: nmethod.method, bci: 0 });
    }
    let mut levels = Vec::with_capacity(places.len());
    for place in places.into_iter().rev() {
        let method = read(place.method)?;
        let kind = if levels.is_empty() { kind } else { FrameKind::Inlined };
        levels.push(Level::of(&method, kind, place.bci));
    }
    Ok(levels)
}
