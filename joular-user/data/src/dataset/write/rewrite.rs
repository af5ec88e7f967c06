//! A run that was read from a data set, written again with other shares of
//! energy: file by file, each under the name that it had.

use std::path::Path;

use super::{parquet::write, rows::Rows, run_row};
use crate::{
    attribution::report::WindowReport,
    dataset::{store::directory::OutputDirectory, tables},
    events::{RunEnd, RunInfo},
    output::Result,
    stacks::StackTable,
    totals::Sums,
};

/// Tables in which nothing depends on the policy: their files stay as they are.
pub const UNCHANGED: [&str; 3] = ["processes", "stacks", "weights"];

/// Writes one run.
pub struct RunRewriter<'a> {
    directory: &'a OutputDirectory,
    info: RunInfo,
    rows: Rows,
    sums: Sums,
}

impl<'a> RunRewriter<'a> {
    /// `info` has the new policy.
    pub fn start(directory: &'a OutputDirectory, info: RunInfo) -> Result<Self> {
        run_row::must_be_new(directory, &info)?;
        run_row::publish(directory, &info, None)?;
        Ok(Self { directory, rows: Rows::at_wall_clock(&info), info, sums: Sums::default() })
    }

    /// Takes a window whose start times are wall-clock times.
    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.sums.add(report);
        self.rows.window_again(report, stacks)
    }

    /// Writes a file that stays as it is.
    pub fn copy(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        self.directory.publish(folder, name, bytes)
    }

    /// Writes the windows since the last call. `folder` gives a table's.
    pub fn publish(&mut self, folder: impl Fn(&str) -> std::path::PathBuf, name: &str) -> Result<()> {
        let Self { directory, info, rows, .. } = self;
        write(directory, info, &folder("branches"), name, &mut rows.branches)?;
        write(directory, info, &folder("methods"), name, &mut rows.methods)?;
        write(directory, info, &folder("quality"), name, &mut rows.quality)?;
        write(directory, info, &folder("jvms"), name, &mut rows.jvms)?;
        write(directory, info, &folder("threads"), name, &mut rows.threads)?;
        write::<tables::Windows>(directory, info, &folder("windows"), name, &mut rows.windows)
    }

    /// Writes the run's row as it was at its end, if it had one.
    pub fn end(self, end: Option<&RunEnd>) -> Result<()> {
        run_row::publish(self.directory, &self.info, end.map(|end| (end, &self.sums)))
    }
}
