//! HotSpot JVMs, understood from their own tables: no agent, no flag, no attach.
//!
//! libjvm describes its structures in tables that it exports ([`vm_structs`]). From
//! them follow the [`layout`] of this version and what the kernel side needs to walk
//! stacks ([`unwind_info`]).

pub mod code_cache;
pub mod elf_symbols;
pub mod fields;
pub mod layout;
pub mod memory;
#[cfg(test)]
mod tests;
pub mod unwind_info;
pub mod vm_structs;

use joular_ebpf::abi::JvmUnwind;
use thiserror::Error;

use code_cache::CodeCache;
use elf_symbols::Libjvm;
use fields::LayoutError;
use layout::Layout;
use memory::{Pages, RemoteMemory, Unreadable};
use unwind_info::{BlobNames, BlobSurvey, Interpreter};
use vm_structs::{VmStructs, VmStructsError};

#[derive(Debug, Error)]
pub enum JvmError {
    #[error(transparent)]
    Tables(#[from] VmStructsError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Asking again will help.
    #[error("the JVM has not made its code cache yet")]
    Starting,
}

/// What is the same for all JVMs that run one libjvm file.
#[derive(Clone, Debug)]
pub struct JvmBuild {
    pub libjvm: Libjvm,
    pub layout: Layout,
}

impl JvmBuild {
    /// The tables of a process that runs it: in the file, they are not relocated.
    pub fn read(memory: &dyn RemoteMemory, libjvm: Libjvm, bias: u64) -> Result<Self, JvmError> {
        let pages = Pages::new(memory);
        let structs = VmStructs::read(&pages, &libjvm.tables, bias)?;
        let layout = Layout::new(&structs, &pages, bias)?;
        Ok(Self { libjvm, layout })
    }
}

/// A JVM as far as the kernel side needs to know it.
pub fn introspect(memory: &dyn RemoteMemory, build: &JvmBuild, bias: u64) -> Result<JvmUnwind, JvmError> {
    let layout = &build.layout;
    let cache = CodeCache { heaps: code_cache::heaps(memory, layout, bias)? };
    let interpreter = Interpreter::read(&Pages::new(memory), layout, bias)?;
    let call_stub_return = memory.u64(bias.wrapping_add(layout.statics.call_stub_return))?;
    if cache.heaps.is_empty() || interpreter.code.start == 0 || call_stub_return == 0 {
        return Err(JvmError::Starting);
    }
    let survey = BlobSurvey::take(memory, layout, &cache, BlobNames::of_file(&build.libjvm, bias));
    Ok(unwind_info::jvm_unwind(layout, &cache, &interpreter, &survey, call_stub_return))
}
