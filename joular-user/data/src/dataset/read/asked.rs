//! Notes which columns a reader wants. It is called once without any row ([`super::decode_ahead::batches`]), and what it
//! asks for then is all that is read.

use std::borrow::Cow;

use parquet::{arrow::ProjectionMask, schema::types::SchemaDescriptor};

use super::{builder::Builder, footer, nested};
use crate::dataset::{
    error::{DataSetError, Result},
    store::StoredFile,
};

/// Names of the columns that a reader asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    columns: Vec<Cow<'static, str>>,
    /// Of the structs in a list: texts that need not be read if all are null, see
    /// [`super::columns::Columns::names_if_any`].
    texts: Vec<Cow<'static, str>>,
}

impl Asked {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|asked| asked == column)
    }

    pub(super) fn add(&mut self, column: &str) {
        if !self.has(column) {
            self.columns.push(Cow::Owned(column.to_owned()));
        }
    }

    pub(super) fn add_text(&mut self, name: &str) {
        self.texts.push(Cow::Owned(name.to_owned()));
    }

    /// The columns as far as the file has them. Of a list's structs all are read, but for texts that nothing has.
    pub(super) fn mask(&self, file: &StoredFile, builder: &Builder) -> Result<ProjectionMask> {
        let (schema, table) = (builder.parquet_schema(), file.table());
        let mut empty = Vec::new();
        for text in &self.texts {
            let missing =
                || DataSetError::Column { path: file.path(), column: text.to_string(), problem: "is missing" };
            let leaf = leaf_of(schema, table, text).ok_or_else(missing)?;
            if footer::has_no_text(builder.metadata(), leaf) {
                empty.push(leaf);
            }
        }
        let is_wanted =
            |leaf: usize, names: &[String]| names.first().is_some_and(|name| self.has(name)) && !empty.contains(&leaf);
        Ok(nested::mask(schema, table, is_wanted))
    }
}

/// The place of a member of a list's structs.
fn leaf_of(schema: &SchemaDescriptor, table: Option<&str>, name: &str) -> Option<usize> {
    let is_it = |leaf: &usize| {
        let column = schema.column(*leaf);
        let names = nested::within(column.path().parts(), table).and_then(|names| names.get(1..));
        names.and_then(<[_]>::last).is_some_and(|of| of == name)
    };
    (0..schema.num_columns()).find(is_it)
}
