//! Brings the kernel's tables of a process up to what is known of it.
//!
//! Ranges are taken first, then written, and then the process is switched over. Whatever fails,
//! those that are not in use are given back.

use std::collections::HashSet;

use joular_data::model::units::Pid;
use joular_ebpf::abi::{CodeMapping, JvmUnwind, ProcessUnwind};

use super::{
    super::{changes::table_of, code::TableKey, interfaces::WalkTables, tables::Range},
    Published, Publisher,
};
use crate::{kernel::KernelError, symbols::mapped_code::CodeOwner};

/// What the kernel has of a process, and where.
#[derive(Debug)]
pub(super) struct Written {
    mappings: Vec<CodeMapping>,
    range: Range,
    jvm: Option<(Range, JvmUnwind)>,
    unwind: ProcessUnwind,
}

impl Written {
    fn jvm_index(&self) -> Option<Range> {
        self.jvm.as_ref().map(|(index, _)| *index)
    }
}

impl<T: WalkTables> Publisher<T> {
    /// Says whether the kernel has all of it. What it had stays if there is no room
    /// or an error, unless it is wrong by now.
    pub(super) fn publish(&mut self, known: &mut Published) -> Result<bool, KernelError> {
        let (next, has_room) = self.plan(known);
        let outcome = if next.mappings.is_empty() {
            self.give_back(&next, known.written.as_ref());
            self.unpublish(known);
            Ok(())
        } else {
            self.write(known, next)
        };
        if outcome.is_err() && known.is_replaced {
            self.unpublish(known);
        }
        if known.written.is_none() || outcome.is_ok() && has_room {
            let used: HashSet<TableKey> = known.code.iter().filter_map(table_of).collect();
            known.files.difference(&used).for_each(|file| self.files.release(*file));
            known.files = used;
        }
        outcome.map(|()| has_room)
    }

    /// What the kernel is to have, in ranges of which those that are new are not
    /// written yet; and whether there is room for all.
    fn plan(&mut self, known: &Published) -> (Written, bool) {
        let old = known.written.as_ref();
        let jvm = match (known.jvm, old.and_then(|old| old.jvm)) {
            (Some(jvm), Some((index, written))) if jvm == written => Some((index, jvm)),
            (Some(jvm), written) => self.jvms.take(1).map(|index| (index, jvm)).or(written),
            (None, _) => None,
        };
        let has_jvm = jvm.map(|(_, jvm)| jvm) == known.jvm;
        if !has_jvm {
            self.notice("jvms", "there are more JVMs than there is room for: some are walked by frame pointers");
        }
        let mappings = self.mappings_of(known, jvm.is_some());
        let count = u32::try_from(mappings.len()).unwrap_or(u32::MAX);
        let placed = match old {
            Some(old) if old.mappings == mappings => Some(old.range),
            _ => self.mappings.take(count),
        };
        let (range, mappings) = match (placed, old) {
            (Some(range), _) => (range, mappings),
            (None, Some(old)) if !known.is_replaced => (old.range, old.mappings.clone()),
            (None, _) => (Range::default(), Vec::new()),
        };
        if placed.is_none() {
            self.notice(
                "mappings",
                "there are more mappings of code than there is room for: some processes are walked by frame pointers",
            );
        }
        let unwind = ProcessUnwind {
            first_mapping: range.first,
            mapping_count: range.count,
            jvm: jvm.map_or(0, |(index, _)| index.first + 1),
            generation: known.generation,
        };
        (Written { mappings, range, jvm, unwind }, has_jvm && placed.is_some())
    }

    /// Switches a process over, and gives back what is not needed any more.
    fn write(&mut self, known: &mut Published, next: Written) -> Result<(), KernelError> {
        let outcome = self.write_tables(known.key.0, known.written.as_ref(), &next);
        match outcome {
            Ok(()) => {
                if let Some(old) = &known.written {
                    self.give_back(old, Some(&next));
                }
                known.written = Some(next);
                known.is_replaced = false;
            }
            Err(_) => self.give_back(&next, known.written.as_ref()),
        }
        outcome
    }

    fn write_tables(&mut self, pid: Pid, old: Option<&Written>, next: &Written) -> Result<(), KernelError> {
        if let Some((index, jvm)) = &next.jvm
            && old.and_then(Written::jvm_index) != Some(*index)
        {
            self.tables.set_jvm(index.first, jvm)?;
        }
        if old.is_none_or(|old| old.range != next.range) {
            self.tables.write_mappings(next.range.first, &next.mappings)?;
        }
        if old.is_none_or(|old| old.unwind != next.unwind) {
            self.tables.set_process(pid, next.unwind)?;
        }
        Ok(())
    }

    pub(super) fn unpublish(&mut self, known: &mut Published) {
        if let Some(old) = known.written.take() {
            self.tables.remove_process(known.key.0);
            self.give_back(&old, None);
        }
        known.is_replaced = false;
    }

    /// Gives back the ranges of one that the other has not.
    fn give_back(&mut self, left: &Written, kept: Option<&Written>) {
        if kept.is_none_or(|kept| kept.range != left.range) {
            self.mappings.give_back(left.range);
        }
        let kept_jvm = kept.and_then(Written::jvm_index);
        left.jvm_index()
            .filter(|index| kept_jvm != Some(*index))
            .into_iter()
            .for_each(|index| self.jvms.give_back(index));
    }

    fn mappings_of(&self, known: &Published, has_jvm: bool) -> Vec<CodeMapping> {
        let mut mappings: Vec<CodeMapping> = Vec::with_capacity(known.code.len());
        for code in &known.code {
            let mapping = |bias, rows: Range| CodeMapping {
                start: code.start.0,
                end: code.end.0,
                bias,
                first_row: rows.first,
                row_count: rows.count,
            };
            match (code.owner, mappings.last_mut()) {
                // The kernel side knows the code cache better, and nothing of what
                // else a JVM may make.
                (CodeOwner::Generated, _) if has_jvm => {}
                // Such memory grows in pieces, by thousands in some runtimes.
                (CodeOwner::Generated, Some(last)) if last.end == code.start.0 && last.row_count == 0 => {
                    last.end = code.end.0;
                }
                (CodeOwner::Generated | CodeOwner::Unreadable, _) => mappings.push(mapping(0, Range::default())),
                (CodeOwner::File(file), _) => {
                    let placed = self.files.place(TableKey::File(file), code.start.0, code.offset);
                    mappings.push(mapping(placed.bias, placed.rows));
                }
                // It lies within what is generated, where only the kernel side with a JVM looks for
                // rows.
                (CodeOwner::RunTime(id), _) if has_jvm => {
                    let placed = self.files.place(TableKey::RunTime(id), code.start.0, code.offset);
                    mappings.push(mapping(placed.bias, placed.rows));
                }
                (CodeOwner::RunTime(_), _) => {}
            }
        }
        mappings
    }
}
