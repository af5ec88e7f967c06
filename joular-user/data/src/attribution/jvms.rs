//! Sums call paths to what each JVM did: threads of the VM by their category, Java threads by path.
//! Every branch is in exactly one part, so parts are sums and nothing is divided here.

use std::collections::BTreeMap;

use super::window_report::{Amount, BranchRow, Category, JvmRow, ThreadRow};
use crate::stacks::{BranchIndex, JvmWork, PathFacts};

/// A row for each process that is a JVM. A process is one if a thread of it has a category that
/// only threads of JVMs have.
pub(crate) fn jvm_rows(
    threads: &[ThreadRow],
    branches: &[BranchRow],
    facts_of: impl Fn(BranchIndex) -> PathFacts,
) -> Vec<JvmRow> {
    let is_of_a_jvm =
        |thread: &&ThreadRow| matches!(thread.category, Category::Java | Category::Gc | Category::Jit | Category::Vm);
    let mut rows: BTreeMap<usize, JvmRow> = BTreeMap::new();
    for thread in threads.iter().filter(is_of_a_jvm) {
        let (process, none) = (thread.process, Amount::default());
        rows.entry(process).or_insert(JvmRow { process, whole: none, parts: [none; JvmWork::ALL.len()] });
    }
    for branch in branches {
        let Some(thread) = threads.get(branch.thread) else { continue };
        let Some(row) = rows.get_mut(&thread.process) else { continue };
        let work = match thread.category {
            Category::Gc => JvmWork::Gc,
            Category::Jit => JvmWork::Jit,
            Category::Vm => facts_of(branch.branch).vm_work,
            Category::Java | Category::Native => facts_of(branch.branch).java_work,
            // Threads that the kernel runs in the process's name.
            Category::Kernel => JvmWork::Kernel,
        };
        row.whole.add(branch);
        row.parts[work as usize].add(branch);
    }
    rows.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::SampleKind,
        model::quality::PathQuality,
        model::units::{MicroJoules, Tid},
    };

    fn thread(process: usize, category: Category) -> ThreadRow {
        ThreadRow {
            process,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: "".into(),
            category,
            cpu_ns: 0,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        }
    }

    /// A branch whose path is of the part with this index.
    fn branch(thread: usize, work: JvmWork, energy: u64) -> BranchRow {
        let branch = BranchIndex(work as u32);
        BranchRow {
            thread,
            kind: SampleKind::CpuTime,
            branch,
            cpu_ns: energy * 10,
            samples: 1,
            energy: MicroJoules(energy),
            by_bytes: MicroJoules(0),
        }
    }

    fn rows(threads: &[ThreadRow], branches: &[BranchRow]) -> Vec<JvmRow> {
        jvm_rows(threads, branches, |index| PathFacts {
            quality: PathQuality::default(),
            unnamed: None,
            java_work: JvmWork::ALL[index.0 as usize],
            vm_work: if index.0 == JvmWork::Gc as u32 { JvmWork::Gc } else { JvmWork::Vm },
        })
    }

    #[test]
    fn threads_of_the_vm_count_by_category_and_java_threads_by_path() {
        let threads = [Category::Java, Category::Gc, Category::Jit, Category::Vm, Category::Kernel]
            .map(|category| thread(0, category));
        let branches = [
            branch(0, JvmWork::C2, 100),
            branch(0, JvmWork::ClassLoading, 7),
            branch(0, JvmWork::VmRuntime, 5),
            branch(1, JvmWork::VmRuntime, 30),
            branch(2, JvmWork::Native, 20),
            branch(3, JvmWork::Kernel, 10),
            branch(3, JvmWork::Gc, 400),
            branch(4, JvmWork::Unknown, 1),
        ];
        let rows = rows(&threads, &branches);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let found = JvmWork::ALL.map(|work| row.part(work).energy.0);
        let expected = JvmWork::ALL.map(|work| match work {
            JvmWork::Gc => 430,
            JvmWork::Jit => 20,
            JvmWork::Vm => 10,
            JvmWork::ClassLoading => 7,
            JvmWork::VmRuntime => 5,
            JvmWork::C2 => 100,
            JvmWork::Kernel => 1,
            _ => 0,
        });
        assert_eq!(found, expected);
        assert_eq!((row.whole.energy.0, row.tax().energy.0, row.tax().cpu_ns), (573, 472, 4720));
    }

    #[test]
    fn only_jvms_have_rows() {
        let threads = [thread(0, Category::Native), thread(1, Category::Java), thread(2, Category::Kernel)];
        let branches = [branch(0, JvmWork::Native, 5), branch(1, JvmWork::C1, 6), branch(2, JvmWork::Kernel, 7)];
        let found: Vec<_> = rows(&threads, &branches).iter().map(|row| (row.process, row.whole.energy.0)).collect();
        assert_eq!(found, [(1, 6)]);
    }
}
