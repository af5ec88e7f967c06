//! Finds which of a JVM's threads compile, and where each says what it compiles.
//!
//! The JVM lists its threads, but not their kinds. Their names show them, which the kernel has too. So
//! the caller names the threads that it takes for compilers, and gets those that the JVM has.

use std::collections::HashMap;

use joular_ebpf::abi::{CompilerThread, Field};

use super::{
    fields::{LayoutError, Names},
    memory::{RemoteMemory, Unreadable, field_in, visit_each},
};

use crate::bounds::Bound;

/// Limit of Java threads of one process that are searched.
const MAX_THREADS: u64 = 1 << 16;

pub static THREADS: Bound = Bound::new(
    "jvm_threads_not_visited",
    MAX_THREADS,
    "Java threads of a JVM",
    "what the rest allocates or compiles is not known",
);

/// Place of the list of threads, without the load bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadList {
    /// Up to JDK 12 the first of a chain.
    Chain {
        first: u64,
        next: Field,
    },
    Array {
        list: u64,
        length: Field,
        threads: Field,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLayout {
    list: ThreadList,
    os_thread: Field,
    thread_id: Field,
    env: u16,
    task: Field,
    method: Field,
}

impl ThreadLayout {
    pub fn new(names: &Names<'_>) -> Result<Self, LayoutError> {
        let list = match names.fixed("ThreadsSMRSupport", "_java_thread_list") {
            Ok(list) => ThreadList::Array {
                list,
                length: names.one(&[("ThreadsList", "_length")])?,
                threads: names.one(&[("ThreadsList", "_threads")])?,
            },
            Err(_) => ThreadList::Chain {
                first: names.fixed("Threads", "_thread_list")?,
                next: names.one(&[("JavaThread", "_next")])?,
            },
        };
        Ok(Self {
            list,
            os_thread: names.one(&[("Thread", "_osthread"), ("JavaThread", "_osthread")])?,
            // Its type is the system's for the number of a thread.
            thread_id: Field { offset: names.start("OSThread", "_thread_id")?, width: 4 },
            env: names.one(&[("CompilerThread", "_env")])?.offset,
            task: names.one(&[("ciEnv", "_task")])?,
            method: names.one(&[("CompileTask", "_method")])?,
        })
    }

    /// What the kernel side needs of those threads that have one of these numbers, which count in
    /// the JVM's own namespace.
    pub fn compilers(&self, memory: &dyn RemoteMemory, bias: u64, wanted: &[u32]) -> Vec<(u32, CompilerThread)> {
        let mut found = Vec::new();
        // A list that changes meanwhile is looked at again some time.
        let _ = self.each(memory, bias, |thread| {
            let number = self.number(memory, thread)?;
            if wanted.contains(&number) {
                let env = thread.wrapping_add(u64::from(self.env));
                let (task, method) = (self.task.offset, self.method.offset);
                found.push((number, CompilerThread { env, task, method, tgid: 0 }));
            }
            Ok(found.len() < wanted.len())
        });
        found
    }

    /// The number of a thread in the JVM's own namespace; 0: it has none.
    pub fn number(&self, memory: &dyn RemoteMemory, thread: u64) -> Result<u32, Unreadable> {
        let os_thread = memory.field(thread, self.os_thread)?;
        let number = if os_thread == 0 { 0 } else { memory.field(os_thread, self.thread_id)? };
        Ok(u32::try_from(number).unwrap_or(0))
    }

    /// Where a thread has its part of the system's, and that its number.
    pub const fn os_thread(&self) -> Field {
        self.os_thread
    }

    pub const fn thread_id(&self) -> Field {
        self.thread_id
    }

    /// The addresses of all threads. Those of a chain that are `known` are read together, and only others one by one.
    pub fn addresses(&self, memory: &dyn RemoteMemory, bias: u64, known: &[u64]) -> Result<Vec<u64>, Unreadable> {
        let mut found = Vec::with_capacity(known.len());
        match self.list {
            ThreadList::Chain { first, next } => {
                let at: Vec<u64> = known.iter().map(|thread| thread.wrapping_add(next.offset.into())).collect();
                let mut behind = HashMap::with_capacity(known.len());
                visit_each(memory, &at, 8, |index, bytes| {
                    let thread = known.get(index).copied().unwrap_or(0);
                    behind.insert(thread, field_in(bytes, Field { offset: 0, width: 8 }));
                });
                let mut thread = memory.u64(bias.wrapping_add(first))?;
                while thread != 0 && (found.len() as u64) < MAX_THREADS {
                    found.push(thread);
                    thread = behind.get(&thread).map_or_else(|| memory.field(thread, next), |next| Ok(*next))?;
                }
            }
            ThreadList::Array { list, length, threads } => {
                let list = memory.u64(bias.wrapping_add(list))?;
                let count = memory.field(list, length)?.min(MAX_THREADS);
                let threads = memory.field(list, threads)?;
                let bytes = memory.bytes(threads, usize::try_from(count * 8).unwrap_or(0))?;
                let address = |bytes| field_in(bytes, Field { offset: 0, width: 8 });
                found.extend(bytes.chunks_exact(8).map(address).filter(|thread| *thread != 0));
            }
        }
        Ok(found)
    }

    /// Calls with each thread's address until told not to.
    pub fn each(
        &self,
        memory: &dyn RemoteMemory,
        bias: u64,
        mut visit: impl FnMut(u64) -> Result<bool, Unreadable>,
    ) -> Result<(), Unreadable> {
        match self.list {
            ThreadList::Chain { first, next } => {
                let mut thread = memory.u64(bias.wrapping_add(first))?;
                let mut visited = 0;
                while thread != 0 && visit(thread)? {
                    visited += 1;
                    if visited >= MAX_THREADS {
                        THREADS.cut(1);
                        break;
                    }
                    thread = memory.field(thread, next)?;
                }
            }
            ThreadList::Array { list, length, threads } => {
                let list = memory.u64(bias.wrapping_add(list))?;
                let count = THREADS.within(memory.field(list, length)?);
                let threads = memory.field(list, threads)?;
                for index in 0..count {
                    if !visit(memory.u64(threads.wrapping_add(index * 8))?)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
