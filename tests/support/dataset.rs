//! Reads a data set as its users do: through SQL.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::python;

pub struct DataSet {
    dir: PathBuf,
}

/// A directory that runs may be shipped to, as its owner makes it.
pub fn share(path: impl AsRef<Path>) -> Result<()> {
    fs::create_dir_all(&path)?;
    fs::write(path.as_ref().join(".joular-bpf-share"), "")?;
    Ok(())
}

impl DataSet {
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The rows of a statement. Each table is a view of its own name.
    pub fn rows(&self, sql: &str) -> Result<Vec<Value>> {
        python::query(&self.dir, sql)
    }

    /// The one number that a statement yields.
    pub fn number(&self, sql: &str) -> Result<f64> {
        let rows = self.rows(sql)?;
        let value = rows.first().and_then(Value::as_object).and_then(|row| row.values().next());
        value.and_then(Value::as_f64).with_context(|| format!("{sql}: expected a number, got {rows:?}"))
    }

    /// How many samples of Java code there are, and which part of them have whole stacks with all names.
    pub fn java_stacks(&self) -> Result<(f64, f64)> {
        let sums = self.rows(
            "SELECT sum(samples)::DOUBLE AS samples,
               coalesce(sum(samples) FILTER (is_complete AND unnamed IS NULL), 0)::DOUBLE / sum(samples) AS whole
             FROM quality WHERE category = 'java'",
        )?;
        let row = sums.first().context("sums")?;
        Ok((float(row, "samples")?, float(row, "whole")?))
    }

    /// What was lost in all windows, by column of `windows`, and by cause of those that have no column of their own.
    pub fn losses(&self) -> Result<BTreeMap<String, i64>> {
        let sums = self.rows(
            "SELECT sum(COLUMNS('(lost_.*)'))::BIGINT AS '\\1'
             FROM (SELECT DISTINCT window_start, COLUMNS('lost_.*') FROM windows)",
        )?;
        let sums = sums.first().and_then(Value::as_object).context("sums of losses")?;
        let mut losses: BTreeMap<String, i64> =
            sums.iter().filter_map(|(column, lost)| Some((column.clone(), lost.as_i64()?))).collect();
        let others = self.rows(
            "SELECT split_part(loss, '=', 1) AS cause, sum(split_part(loss, '=', 2)::BIGINT)::BIGINT AS lost
             FROM (SELECT unnest(other_losses) AS loss FROM (SELECT DISTINCT window_start, other_losses FROM windows))
             GROUP BY cause",
        )?;
        for row in &others {
            losses.insert(text(row, "cause")?.to_owned(), integer(row, "lost")?);
        }
        Ok(losses)
    }

    /// Fails, with the rows, unless the statement finds nothing.
    pub fn expect_none(&self, what: &str, sql: &str) -> Result<()> {
        let rows = self.rows(sql)?;
        ensure!(rows.is_empty(), "{what}: {} rows, first {:?}", rows.len(), &rows[..rows.len().min(3)]);
        Ok(())
    }

    /// All files that readers see, with their bytes, by relative path: not the
    /// lock, nor what is being written, whose names begin with a dot.
    pub fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut found = BTreeMap::new();
        collect(&self.dir, &self.dir, &mut found)?;
        Ok(found)
    }

    /// Bytes of all its Parquet files.
    pub fn parquet_bytes(&self) -> Result<u64> {
        let files = self.files()?;
        Ok(files.iter().filter(|(path, _)| is_parquet(path)).map(|(_, bytes)| bytes.len() as u64).sum())
    }

    pub fn parquet_files(&self) -> Result<usize> {
        Ok(self.files()?.keys().filter(|path| is_parquet(path)).count())
    }

    /// Lets DuckDB decode every value of every finished file.
    pub fn expect_readable(&self) -> Result<()> {
        for path in self.files()?.into_keys().filter(|path| is_parquet(path)) {
            let sql = format!("SELECT count(COLUMNS(*)) FROM read_parquet('{}')", path.display());
            self.rows(&sql).with_context(|| format!("{} is not readable", path.display()))?;
        }
        Ok(())
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, found)?;
        } else {
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            found.insert(path.strip_prefix(root)?.to_owned(), bytes);
        }
    }
    Ok(())
}

/// A row's integer.
pub fn integer(row: &Value, column: &str) -> Result<i64> {
    row[column].as_i64().with_context(|| format!("no integer {column} in {row}"))
}

/// A row's number.
pub fn float(row: &Value, column: &str) -> Result<f64> {
    row[column].as_f64().with_context(|| format!("no number {column} in {row}"))
}

/// A row's text.
pub fn text<'a>(row: &'a Value, column: &str) -> Result<&'a str> {
    row[column].as_str().with_context(|| format!("no text {column} in {row}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_files_are_readable_and_broken_ones_are_not() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let data = DataSet::at(dir.path());
        data.rows("COPY (SELECT 7 AS x) TO 'seven.parquet'")?;
        assert_eq!(data.number("SELECT x FROM 'seven.parquet'")?, 7.0);
        assert_eq!(data.parquet_files()?, 1);
        data.expect_readable()?;
        assert!(data.expect_none("sevens", "SELECT * FROM 'seven.parquet' WHERE x = 7").is_err());
        let path = dir.path().join("seven.parquet");
        let whole = fs::read(&path)?;
        fs::write(&path, &whole[..whole.len() / 2])?;
        assert!(data.expect_readable().is_err());
        Ok(())
    }
}
