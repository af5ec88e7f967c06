//! Understands HotSpot JVMs from their own tables: no agent, no flag, no attach.
//!
//! libjvm describes its structures in tables that it exports ([`vm_structs`]). From them follow the
//! [`layout`] of this version, what the kernel side needs to walk stacks ([`unwind_info`]), and
//! what its frame words mean ([`jvm`]). Compiled code leads through its debug information
//! ([`nmethod`], [`scopes`]) to methods, and those to names and lines ([`method`], [`line_table`]).
//! Stubs have names of their own ([`stubs`]), and code that rules for walks are made from ([`stub_code`]).
//!
//! Where the JVM describes too little of its code, the code itself tells more ([`places`],
//! [`leaves`]). Where a library has no symbols, its code shows where allocations are reported ([`allocation_search`]).
//!
//! No object of the Java heap is read here. A walk in the kernel reads one kind of them, which the older frames of virtual
//! threads are in ([`continuations`]).

pub mod allocation;
pub mod allocation_search;
pub mod answers;
pub mod arguments;
pub mod class_fields;
pub mod code_cache;
pub mod collections;
pub mod compilers;
pub mod continuations;
pub mod fields;
pub mod flags;
pub mod host_walk;
pub mod image;
#[cfg(test)]
mod image_tests;
pub mod java_name;
pub mod java_text;
pub mod jvm;
pub mod layout;
pub mod leaves;
pub mod libjvm;
pub mod line_table;
#[cfg(test)]
mod live;
pub mod machine_code;
pub mod memory;
pub mod memory_recording;
pub mod method;
pub mod nmethod;
pub mod perf_data;
pub mod pinned;
pub mod places;
pub mod reader;
pub mod recent;
pub mod regions;
pub mod scopes;
pub mod stub_code;
pub mod stubs;
pub mod system;
#[cfg(test)]
mod tests;
pub mod thread_names;
pub mod threads;
pub mod unsigned5;
pub mod unwind_info;
pub mod vm_structs;

use std::sync::atomic::{AtomicU64, Ordering};

use allocation::KnownFunctions;
use collections::CollectionProbes;
use fields::LayoutError;
use layout::Layout;
use libjvm::Libjvm;
use memory::{Pages, RemoteMemory, Unreadable};
use thiserror::Error;
use vm_structs::{VmStructs, VmStructsError};

/// What a user can do with a JVM that cannot be understood.
const WHAT_TO_DO: &str = "run a supported JDK (11 to 25), or add -XX:+PreserveFramePointer for the callers in its \
                          stacks; their names then need JDK 17 or later (perf map)";

#[derive(Debug, Error)]
pub enum JvmError {
    #[error("{0}: {WHAT_TO_DO}")]
    Tables(#[from] VmStructsError),
    #[error("{0}: {WHAT_TO_DO}")]
    Layout(#[from] LayoutError),
    #[error("{0}: {WHAT_TO_DO}")]
    Unreadable(#[from] Unreadable),
    /// Asking again will help.
    #[error("the JVM has not created its code cache yet")]
    Starting,
}

static NEXT_BUILD: AtomicU64 = AtomicU64::new(0);

/// What is the same for all JVMs that run one libjvm file.
#[derive(Clone, Debug)]
pub struct JvmBuild {
    pub libjvm: Libjvm,
    pub layout: Layout,
    /// Found when somebody asks for them.
    pub allocation: KnownFunctions,
    /// `None`: not known; images of JVMs have none.
    pub collections: Option<CollectionProbes>,
    /// Tells builds apart.
    pub number: u64,
}

impl JvmBuild {
    /// The tables of a process that runs it: in the file, they are not relocated.
    pub fn read(memory: &dyn RemoteMemory, libjvm: Libjvm, bias: u64) -> Result<Self, JvmError> {
        let pages = Pages::new(memory);
        let structs = VmStructs::read(&pages, &libjvm.tables, bias)?;
        let layout = Layout::new(libjvm.processor, &structs, &pages, bias)?;
        Ok(Self {
            libjvm,
            layout,
            allocation: KnownFunctions::default(),
            collections: None,
            number: NEXT_BUILD.fetch_add(1, Ordering::Relaxed),
        })
    }
}
