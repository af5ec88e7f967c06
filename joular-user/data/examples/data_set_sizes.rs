//! What a recording takes as a data set: `data_set_sizes FILE.jrec DIR
//! [FLUSH_SECONDS]` writes it to DIR and,
//! compacted, beside it to DIR.compacted, and prints files and bytes of both by table.

#![allow(clippy::print_stdout, reason = "figures are what it is for")]

use std::{
    env,
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use joular_data::{
    attribution::Engine,
    dataset::{DEFAULT_FLUSH_NS, OutputDirectory, ParquetOutput, compact},
    events::{Event, recording::RecordingReader},
    output::Output as _,
};

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let (recording, directory) =
        arguments.next().zip(arguments.next()).context("usage: data_set_sizes FILE.jrec DIR [FLUSH_SECONDS]")?;
    let flush_s: Option<u64> = arguments.next().map(|text| text.parse()).transpose()?;
    let flush_ns = flush_s.map_or(DEFAULT_FLUSH_NS, |seconds| seconds * 1_000_000_000);
    write(Path::new(&recording), Path::new(&directory), flush_ns)?;
    print("as recorded", Path::new(&directory))?;
    let compacted = PathBuf::from(format!("{directory}.compacted"));
    compact::beside(Path::new(&directory), &compacted, None)?;
    print("compacted", &compacted)
}

fn write(recording: &Path, directory: &Path, flush_ns: u64) -> Result<()> {
    let mut output = ParquetOutput::new(OutputDirectory::create(directory, None)?, flush_ns);
    let mut engine = Engine::default();
    for event in RecordingReader::new(BufReader::new(File::open(recording)?))? {
        let event = event?;
        match &event {
            Event::RunStarted(run) => output.run_started(run)?,
            Event::Process(process) => output.process(process),
            Event::RunEnded(end) => output.run_ended(end)?,
            _ => {}
        }
        if let Some(report) = engine.apply(&event) {
            output.window(&report, engine.table())?;
        }
    }
    Ok(())
}

fn print(what: &str, directory: &Path) -> Result<()> {
    let mut all = (0, 0);
    for entry in fs::read_dir(directory)? {
        let folder = entry?.path();
        let (files, bytes) = size(&folder)?;
        all = (all.0 + files, all.1 + bytes);
        if files > 0 {
            println!("{what} {}: {files} files, {bytes} bytes", folder.file_name().unwrap_or_default().display());
        }
    }
    println!("{what}: {} files, {} bytes", all.0, all.1);
    Ok(())
}

/// Files and bytes below a folder.
fn size(path: &Path) -> Result<(u64, u64)> {
    if path.is_file() {
        let is_data = path.extension().is_some_and(|extension| extension == "parquet");
        return Ok(if is_data { (1, fs::metadata(path)?.len()) } else { (0, 0) });
    }
    let mut all = (0, 0);
    for entry in fs::read_dir(path)? {
        let (files, bytes) = size(&entry?.path())?;
        all = (all.0 + files, all.1 + bytes);
    }
    Ok(all)
}
