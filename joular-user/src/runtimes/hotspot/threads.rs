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
        let numbered = match self.addresses(memory, bias, &[]) {
            Ok(threads) => self.numbered(memory, &threads),
            // A list that changes meanwhile is looked at again some time.
            Err(_) => Vec::new(),
        };
        let compiler = |thread: u64| {
            let (task, method) = (self.task.offset, self.method.offset);
            CompilerThread { env: thread.wrapping_add(u64::from(self.env)), task, method, tgid: 0 }
        };
        let of_these = |(number, thread)| wanted.contains(&number).then(|| (number, compiler(thread)));
        numbered.into_iter().filter_map(of_these).collect()
    }

    /// The numbers of these threads in the JVM's own namespace, with their addresses. A thread that has none, or cannot be
    /// read, is left out.
    pub fn numbered(&self, memory: &dyn RemoteMemory, threads: &[u64]) -> Vec<(u32, u64)> {
        let at =
            |of: &[u64], field: Field| of.iter().map(|of| of.wrapping_add(field.offset.into())).collect::<Vec<u64>>();
        let pointer = |bytes: &[u8]| field_in(bytes, Field { offset: 0, width: 8 });
        let number = |bytes: &[u8]| u32::try_from(field_in(bytes, Field { offset: 0, ..self.thread_id })).ok();
        let (mut with_system, mut of_system) = (Vec::with_capacity(threads.len()), Vec::with_capacity(threads.len()));
        visit_each(memory, &at(threads, self.os_thread), 8, |index, bytes| {
            if let (Some(thread), of @ 1..) = (threads.get(index), pointer(bytes)) {
                with_system.push(*thread);
                of_system.push(of);
            }
        });
        let mut numbered = Vec::with_capacity(of_system.len());
        visit_each(memory, &at(&of_system, self.thread_id), self.thread_id.width.into(), |index, bytes| {
            if let (Some(thread), Some(number @ 1..)) = (with_system.get(index), number(bytes)) {
                numbered.push((number, *thread));
            }
        });
        numbered
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
                while thread != 0 {
                    if found.len() as u64 >= MAX_THREADS {
                        THREADS.cut(1);
                        break;
                    }
                    found.push(thread);
                    thread = behind.get(&thread).map_or_else(|| memory.field(thread, next), |next| Ok(*next))?;
                }
            }
            ThreadList::Array { list, length, threads } => {
                let list = memory.u64(bias.wrapping_add(list))?;
                let count = THREADS.within(memory.field(list, length)?);
                let threads = memory.field(list, threads)?;
                let bytes = memory.bytes(threads, usize::try_from(count * 8).unwrap_or(0))?;
                let address = |bytes| field_in(bytes, Field { offset: 0, width: 8 });
                found.extend(bytes.chunks_exact(8).map(address).filter(|thread| *thread != 0));
            }
        }
        Ok(found)
    }
}
