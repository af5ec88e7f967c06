//! Defines the frames of a call path, each a struct in a row of table `stacks`.

use super::{Column, ColumnOf, Table, kind};
use crate::model::frame::Frame;

pub(crate) const CLASS: Column<kind::Name> = Column::new("class", "symbols", "class with package").null("not Java");
pub(crate) const METHOD: Column<kind::Name> = Column::new("method", "symbols", "name without class");
pub(crate) const SIGNATURE: Column<kind::Name> =
    Column::new("signature", "symbols", "JVM signature").null("not Java, or not known");
pub(crate) const MODULE: Column<kind::Name> =
    Column::new("module", "symbols", "library or kernel module").null("Java, or not known");
pub(crate) const FILE: Column<kind::Name> = Column::new("file", "symbols", "source file").null("not known");
pub(crate) const LINE: Column<kind::Int> = Column::new("line", "symbols", "line in the source file").null("not known");
pub(crate) const KIND: Column<kind::Name> = Column::new("kind", "symbols", "kind of code, as in methods");

/// Not a table of its own: the columns of a frame within `stacks.frames`.
pub struct FrameTable;

impl Table for FrameTable {
    const NAME: &'static str = "stacks.frames";
    const ROW: &'static str = "a frame of a call branch";
    const BY_POLICY: bool = false;
    type Row<'a> = &'a Frame;

    fn columns() -> Vec<ColumnOf<Self>> {
        vec![
            CLASS.of::<Self>(|f| f.class.as_ref().map(|text| text.raw().into())),
            METHOD.of::<Self>(|f| Some(f.name.raw().into())),
            SIGNATURE.of::<Self>(|f| f.signature.as_ref().map(|text| text.raw().into())),
            MODULE.of::<Self>(|f| f.module.as_ref().map(|text| text.raw().into())),
            FILE.of::<Self>(|f| f.file.as_ref().map(|text| text.raw().into())),
            LINE.of::<Self>(|f| f.line.map(Into::into)),
            KIND.of::<Self>(|f| Some(f.kind.name().into())),
        ]
    }
}
