//! Reads the stacks of a run, file by file.

use std::collections::HashMap;

use super::columns::{Columns, TableFile};
use crate::{
    dataset::{
        error::Result,
        store::StoredFile,
        tables::{
            frames::{CLASS, FILE, KIND, LINE, METHOD, MODULE, SIGNATURE},
            stacks,
        },
    },
    model::{
        frame::{Frame, FrameKind, Marker},
        quality::PathQuality,
    },
    stacks::{BranchIndex, StackTable},
};

/// Stacks by the ids that rows know them by.
#[derive(Debug, Default)]
pub(crate) struct ReadStacks {
    pub(crate) table: StackTable,
    by_id: HashMap<i64, BranchIndex>,
}

impl ReadStacks {
    pub(crate) fn get(&self, stack_id: i64) -> Option<BranchIndex> {
        self.by_id.get(&stack_id).copied()
    }

    /// Adds a path of frames that no file has, and returns its id.
    pub(crate) fn add(&mut self, frames: &[Frame], quality: PathQuality) -> i64 {
        let ids: Vec<_> = frames.iter().map(|frame| self.table.frame_id(frame.clone())).collect();
        let index = self.table.branch_index(&ids, quality);
        let stack_id = self.table.stack_id(index);
        self.by_id.insert(stack_id, index);
        stack_id
    }

    /// Adds a file's stacks. Each must have the ids that its frames give.
    pub(crate) fn read(&mut self, file: &StoredFile) -> Result<()> {
        TableFile::open(file)?.batches(|columns| self.take(columns))
    }

    fn take(&mut self, columns: &Columns<'_>) -> Result<()> {
        let (stack_ids, branch_ids) = (columns.ints(stacks::STACK_ID)?, columns.ints(stacks::BRANCH_ID)?);
        let (unwinders, ends) = (columns.texts(stacks::UNWINDER)?, columns.texts(stacks::WALK_END)?);
        let (complete, unnamed) = (columns.flags(stacks::IS_COMPLETE)?, columns.texts(stacks::UNNAMED)?);
        let structs = columns.structs(stacks::FRAMES)?;
        let frames = frames(&columns.nested(&structs.values))?;
        for row in 0..columns.rows() {
            let frames = structs.range(row).and_then(|range| frames.get(range));
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
        [CLASS, METHOD, SIGNATURE, MODULE, FILE, KIND].map(|column| columns.texts(column));
    let (classes, names, signatures) = (classes?, names?, signatures?);
    let (modules, files, kinds, lines) = (modules?, files?, kinds?, columns.ints(LINE)?);
    let frame = |row| {
        Ok(Frame {
            kind: kinds.name_of(row, |name| FrameKind::ALL.into_iter().find(|kind| kind.name() == name))?,
            name: names.get(row)?.into(),
            class: classes.maybe(row).map(Into::into),
            signature: signatures.maybe(row).map(Into::into),
            module: modules.maybe(row).map(Into::into),
            file: files.maybe(row).map(Into::into),
            line: lines.maybe_natural(row)?,
        })
    };
    (0..columns.rows()).map(frame).collect()
}
