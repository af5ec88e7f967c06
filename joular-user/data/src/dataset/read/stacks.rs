//! The stacks of a run, as they are read file by file.

use std::collections::HashMap;

use super::columns::{Columns, TableFile};
use crate::{
    dataset::error::Result,
    dataset::store::StoredFile,
    model::{
        frame::{Frame, FrameKind, Marker},
        quality::PathQuality,
    },
    stacks::{BranchIndex, StackTable},
};

/// Stacks by the ids that rows know them by.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) table: StackTable,
    by_id: HashMap<i64, BranchIndex>,
}

impl Stacks {
    pub(crate) fn get(&self, stack_id: i64) -> Option<BranchIndex> {
        self.by_id.get(&stack_id).copied()
    }

    /// Adds a file's stacks. Each must have the ids that its frames give.
    pub(crate) fn read(&mut self, file: &StoredFile) -> Result<()> {
        TableFile::open(file)?.batches(|columns| self.take(columns))
    }

    fn take(&mut self, columns: &Columns<'_>) -> Result<()> {
        let (stack_ids, branch_ids) = (columns.ints("stack_id")?, columns.ints("branch_id")?);
        let (unwinders, ends) = (columns.texts("unwinder")?, columns.texts("walk_end")?);
        let (complete, unnamed) = (columns.flags("is_complete")?, columns.texts("unnamed")?);
        let lists = columns.list("frames")?;
        let structs = columns.structs("frames")?;
        let frames = frames(&columns.nested(&structs))?;
        for (row, range) in lists.value_offsets().windows(2).enumerate() {
            let [start, end] = range else { continue };
            let range = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
            let frames = range.and_then(|(start, end)| frames.get(start..end));
            let frames = frames.ok_or_else(|| columns.damaged("a stack's frames are not in the file"))?;
            let ids: Vec<_> = frames.iter().map(|frame| self.table.frame_id(frame.clone())).collect();
            let quality = ends.name_of(row, |end| PathQuality::of_names(unwinders.maybe(row), end))?;
            let index = self.table.branch_index(&ids, quality);
            let (stack_id, branch_id) = (stack_ids.get(row)?, branch_ids.get(row)?);
            if (self.table.stack_id(index), self.table.branch_id(index)) != (stack_id, branch_id) {
                return Err(columns.damaged(format!("stack {stack_id} has frames of another stack")));
            }
            let facts = self.table.facts(index);
            let words = (facts.quality.is_complete(), facts.unnamed.map(Marker::name));
            if words != (complete.maybe(row), unnamed.maybe(row)) {
                return Err(columns.damaged(format!("stack {stack_id} says of its quality what its frames do not")));
            }
            self.by_id.insert(stack_id, index);
        }
        Ok(())
    }
}

fn frames(columns: &Columns<'_>) -> Result<Vec<Frame>> {
    let [classes, names, signatures, modules, files, kinds] =
        ["class", "method", "signature", "module", "file", "kind"].map(|name| columns.texts(name));
    let (classes, names, signatures) = (classes?, names?, signatures?);
    let (modules, files, kinds, lines) = (modules?, files?, kinds?, columns.ints("line")?);
    let frame = |row| {
        Ok(Frame {
            kind: kinds.name_of(row, |name| FrameKind::ALL.into_iter().find(|kind| kind.name() == name))?,
            name: names.get(row)?.to_owned(),
            class: classes.maybe(row).map(ToOwned::to_owned),
            signature: signatures.maybe(row).map(ToOwned::to_owned),
            module: modules.maybe(row).map(ToOwned::to_owned),
            file: files.maybe(row).map(ToOwned::to_owned),
            line: lines.maybe_natural(row)?,
        })
    };
    (0..columns.rows()).map(frame).collect()
}
