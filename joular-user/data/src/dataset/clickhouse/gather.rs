//! Makes one Parquet file of many bundles: a row each, in their order, so that a batch is one `INSERT`.
//!
//! Bundles are decoded one after the other, and what is written is encoded at once. So memory holds the file, which is about
//! as large as the bundles, and one decoded bundle.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use bytes::Bytes;
use parquet::{
    arrow::{
        ArrowWriter, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
        arrow_writer::ArrowWriterOptions,
    },
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{
        metadata::ParquetMetaData,
        properties::{EnabledStatistics, WriterProperties},
    },
};

use super::{align, figures::RunFigures};
use crate::{
    caught::caught,
    dataset::{
        align::aligned,
        error::{DataSetError, Result},
        read::builder,
        schema::{SCHEMA_VERSION, known_versions, read_versions},
    },
};

/// Rows of one table in a bundle.
const MAX_ROWS: i64 = 4_000_000;

/// The file is sent and thrown away.
const ZSTD_LEVEL: i32 = 1;

/// A run's bundle, decoded.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub figures: RunFigures,
    batch: RecordBatch,
}

impl Bundle {
    /// Decodes a bundle. `path` is its name for messages.
    ///
    /// # Errors
    /// If it is damaged, is not a bundle, or has a schema version that is not read.
    pub fn read(path: &Path, bytes: Bytes) -> Result<Self> {
        let decoded = caught(|| decode(path, bytes));
        let batch = decoded.unwrap_or_else(|| Err(damaged(path, "a length in it is wrong")))?;
        let figures = RunFigures::of(&batch);
        if figures.runs != 1 || figures.run_id.is_empty() {
            return Err(damaged(path, "it is not the bundle of one run"));
        }
        check_version(path, figures.schema_version)?;
        Ok(Self { figures, batch })
    }
}

fn decode(path: &Path, bytes: Bytes) -> Result<RecordBatch> {
    let failed = |cause: ParquetError| DataSetError::Parquet { path: path.to_owned(), cause };
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(&bytes, options).map_err(failed)?;
    check(path, metadata.metadata())?;
    let schema = align::schema();
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata);
    let roots = builder.parquet_schema().root_schema().get_fields().iter().enumerate();
    let wanted: Vec<usize> =
        roots.filter(|(_, root)| schema.field_with_name(root.name()).is_ok()).map(|(index, _)| index).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    let mut reader = builder.with_projection(mask).with_batch_size(1).build().map_err(failed)?;
    let batch = reader.next().ok_or_else(|| damaged(path, "it has no row"))?;
    let batch = batch.map_err(|cause| DataSetError::Arrow { path: path.to_owned(), cause })?;
    aligned(path, &batch, &schema)
}

/// Checks what the library trusts, before anything is decoded.
fn check(path: &Path, metadata: &ParquetMetaData) -> Result<()> {
    let columns = || metadata.row_groups().iter().flat_map(|group| group.columns());
    let is_sound = columns().all(|column| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        start >= 0 && column.compressed_size() >= 0
    });
    if !is_sound {
        return Err(damaged(path, "a column is at a negative place"));
    }
    if metadata.file_metadata().num_rows() != 1 {
        return Err(damaged(path, "it is not a bundle, which has one row"));
    }
    // Its row says it, too, if what it means there did not change.
    if let Some(version) = builder::version(metadata) {
        check_version(path, version)?;
    }
    match columns().map(|column| column.num_values()).max() {
        Some(rows) if rows > MAX_ROWS => Err(DataSetError::TooManyRows { path: path.to_owned(), rows, most: MAX_ROWS }),
        _ => Ok(()),
    }
}

fn check_version(path: &Path, version: i64) -> Result<()> {
    if read_versions(SCHEMA_VERSION).contains(&version) {
        return Ok(());
    }
    Err(DataSetError::Version {
        path: path.to_owned(),
        found: version.to_string(),
        written_by: None,
        known: known_versions(),
        advice: "the joular-bpf of its version",
    })
}

fn damaged(path: &Path, problem: &str) -> DataSetError {
    DataSetError::Damaged { path: path.to_owned(), problem: problem.to_owned() }
}

/// A file that is being made of bundles.
pub struct Gathered {
    writer: ArrowWriter<Vec<u8>>,
}

impl Gathered {
    /// # Errors
    /// If the library cannot write such a file.
    pub fn begin() -> Result<Self> {
        let schema: Arc<Schema> = align::schema();
        let properties = ZstdLevel::try_new(ZSTD_LEVEL).map(|level| {
            WriterProperties::builder()
                .set_compression(Compression::ZSTD(level))
                .set_statistics_enabled(EnabledStatistics::None)
                .set_offset_index_disabled(true)
                // One block for the database, whatever the size of bundles.
                .set_max_row_group_row_count(Some(usize::MAX))
                .build()
        });
        let options = |properties| ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let begun =
            properties.map(options).and_then(|options| ArrowWriter::try_new_with_options(Vec::new(), schema, options));
        Ok(Self { writer: begun.map_err(unwritten)? })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn add(&mut self, bundle: &Bundle) -> Result<()> {
        self.writer.write(&bundle.batch).map_err(unwritten)
    }

    /// The file.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.writer.into_inner().map_err(unwritten)
    }
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gathered").finish_non_exhaustive()
    }
}

fn unwritten(cause: ParquetError) -> DataSetError {
    crate::output::OutputError::encode("bundles")(cause).into()
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringArray, cast::AsArray as _};

    use super::{super::fixture::bundle, *};

    fn read(bytes: Vec<u8>) -> Result<Bundle> {
        Bundle::read(Path::new("x.parquet"), bytes.into())
    }

    #[test]
    fn many_bundles_are_one_file_with_a_row_each_in_their_order() {
        let mut gathered = Gathered::begin().unwrap();
        for (run, measured) in [("a", &[1, 2][..]), ("b", &[30])] {
            let bundle = read(bundle(run, SCHEMA_VERSION, measured)).unwrap();
            assert_eq!(bundle.figures.run_id, run);
            assert_eq!(bundle.figures.windows.rows, measured.len() as u64);
            assert_eq!(bundle.figures.windows.energy_uj, measured.iter().sum::<i64>());
            gathered.add(&bundle).unwrap();
        }
        let file = Bytes::from(gathered.finish().unwrap());
        let rows = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        let runs = rows.column_by_name("runs").unwrap().as_list::<i32>().values().clone();
        let ids = runs.as_struct().column_by_name("run_id").unwrap().clone();
        assert_eq!((rows.num_rows(), ids.as_string::<i32>()), (2, &StringArray::from(vec!["a", "b"])));
    }

    #[test]
    fn what_is_not_the_bundle_of_a_run_is_an_error_that_says_so() {
        for (bytes, words) in [
            (b"PAR1".to_vec(), "the file is damaged"),
            (bundle("", SCHEMA_VERSION, &[]), "not the bundle of one run"),
            (bundle("a", SCHEMA_VERSION + 9, &[]), "it has schema version"),
            (bundle("a", SCHEMA_VERSION, &[1])[..300].to_vec(), "damaged"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
