//! Reads the columns of frames in table `stacks`.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{catalog::FrameIndex, reader::DataSet};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        read::columns::{Columns, Names, Numbers},
        tables::frames,
    },
    model::{
        frame::{Frame, FrameKind},
        target_text::TargetText,
    },
};

/// Places of texts in their columns' dictionaries, kind and line. Equal keys of a batch are the
/// same frame. An absent value has [`ABSENT`].
type FrameKey = [u64; 7];

const ABSENT: u64 = u64::MAX;

/// The frames of a batch of stacks; each distinct one is made only once.
pub(super) struct FrameColumns<'a> {
    texts: [Names<'a>; 6],
    lines: Numbers<'a>,
    known: HashMap<FrameKey, FrameIndex, RandomState>,
}

impl<'a> FrameColumns<'a> {
    pub(super) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        let texts = [
            columns.names_if_any(frames::CLASS)?,
            columns.names(frames::METHOD)?,
            columns.names_if_any(frames::SIGNATURE)?,
            columns.names_if_any(frames::MODULE)?,
            columns.names_if_any(frames::FILE)?,
            columns.names(frames::KIND)?,
        ];
        Ok(Self { texts, lines: columns.ints(frames::LINE)?, known: HashMap::default() })
    }

    pub(super) fn index(&mut self, data: &mut DataSet, row: usize) -> Result<FrameIndex> {
        let line: Option<u32> = self.lines.maybe_natural(row)?;
        let key = std::array::from_fn(|column| match self.texts.get(column) {
            Some(names) => names.key(row).map_or(ABSENT, |key| key as u64),
            None => line.map_or(ABSENT, u64::from),
        });
        if let Some(index) = self.known.get(&key) {
            return Ok(*index);
        }
        let [classes, methods, signatures, modules, files, kinds] = &self.texts;
        let owned = |names: &Names<'_>| Ok::<_, DataSetError>(names.maybe(row)?.map(TargetText::from));
        let frame = Frame {
            kind: kinds.name_of(row, |name| FrameKind::ALL.into_iter().find(|kind| kind.name() == name))?,
            name: methods.get(row)?.into(),
            class: owned(classes)?,
            signature: owned(signatures)?,
            module: owned(modules)?,
            file: owned(files)?,
            line,
        };
        let frame = if data.has_exact_names { frame } else { frame.of_family() };
        let index = data.catalog.paths.frame_index(frame);
        self.known.insert(key, index);
        Ok(index)
    }
}
