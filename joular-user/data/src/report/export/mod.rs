//! Exports a selection of a data set in the formats of other tools.
//!
//! A format is one row of [`FORMATS`] and one file beside this one. Formats of call paths start
//! from a [`Profile`] and hold its sums. Formats that know time start from a [`Timeline`], which
//! passes rows on as they are read. So memory does not grow with the length of a run, unless the
//! format itself requires it (Firefox Profiler's). In every format the energies sum to
//! [`Profile::energy`], to the microjoule, and the export says how they came about.

mod collapsed;
mod dictionary;
mod files;
mod firefox;
mod jfr;
mod joularjx;
pub mod otlp;
mod perfetto;
mod pprof;
mod protobuf;
mod speedscope;
#[cfg(test)]
mod tests;
mod timeline;

use std::{
    io,
    io::Write,
    path::{Path, PathBuf},
};

use thiserror::Error;

use self::{files::Files, timeline::Timeline};
use super::{
    measure::Measure,
    profile::{App, Filter, Overview, Profile},
};
use crate::{
    dataset::error::{DataSetError, OfDataSet},
    model::{
        domain::Label,
        frame::{Frame, FrameKind},
        units::MicroJoules,
    },
    output::OutputError,
    report::artifact,
    text::exact_joules,
};

/// All formats. A new one is a line here and a file beside.
pub const FORMATS: &[ExportFormat] = &[
    pprof::FORMAT,
    speedscope::FORMAT,
    collapsed::FORMAT,
    firefox::FORMAT,
    perfetto::FORMAT,
    otlp::FORMAT,
    jfr::FORMAT,
    joularjx::FORMAT,
];

/// A format of another tool.
#[derive(Clone, Copy, Debug)]
pub struct ExportFormat {
    /// What `--format` calls it.
    pub name: &'static str,
    writer: Writer,
}

#[derive(Clone, Copy, Debug)]
enum Writer {
    /// One stream that a terminal can show.
    Text(fn(&Selection<'_>, &mut dyn Write) -> Result<Exported>),
    /// One stream that a terminal must not show.
    Binary(fn(&Selection<'_>, &mut dyn Write) -> Result<Exported>),
    /// Files below a directory.
    Files(fn(&Selection<'_>, &mut Files) -> Result<Exported>),
}

/// The part of a data set that is exported, and the view of it.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    pub data: &'a Path,
    pub filter: &'a Filter,
    pub app: Option<&'a App>,
    /// For a format that holds one only.
    pub measure: Measure,
}

/// What an export holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    pub energy: MicroJoules,
    /// How the energy came about, for people.
    pub origin: String,
}

#[derive(Debug, Error)]
pub enum ExportError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Becomes [`Self::Write`] where the target is known.
    #[error("writing the export: {0}")]
    Stream(#[from] io::Error),
    #[error("writing {target}: {cause}: check its file system, or choose another place with --output")]
    Write { target: String, cause: io::Error },
    #[error("writing {path}: it exists already: remove it, or choose another place with --output")]
    Exists { path: PathBuf },
    #[error("writing {format} to the terminal: it is not text: name a file with --output, or pipe it into a program")]
    Terminal { format: &'static str },
    #[error("writing {format} to standard output: it is a directory of files: name one with --output")]
    Directory { format: &'static str },
}

impl OfDataSet for ExportError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Data(error) => Some(error),
            _ => None,
        }
    }
}

impl ExportError {
    /// Whether the reader of a stream has gone.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Stream(cause) | Self::Write { cause, .. } => cause.kind() == io::ErrorKind::BrokenPipe,
            Self::Output(error) => error.is_broken_pipe(),
            _ => false,
        }
    }

    /// Whether the error is in the output, not in the data set.
    pub fn is_of_output(&self) -> bool {
        !matches!(self, Self::Data(_))
    }
}

pub(super) type Result<T, E = ExportError> = std::result::Result<T, E>;

impl ExportFormat {
    /// The format of this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether it holds one measure, which may be any. The others hold energy, and all else that they have room for.
    pub fn is_of_one_measure(&self) -> bool {
        self.name == collapsed::FORMAT.name
    }

    /// All names, for a message.
    pub fn names() -> String {
        FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
    }

    /// Exports a selection to a file, a directory or (`-`, or nothing where it is
    /// possible) to standard output. What is written belongs to `owner`.
    ///
    /// # Errors
    /// If the data set cannot be read or the output not written.
    pub fn export(
        &self,
        selection: &Selection<'_>,
        output: Option<&Path>,
        owner: Option<(u32, u32)>,
    ) -> Result<Exported> {
        let stdout = Path::new(artifact::STDOUT);
        match self.writer {
            Writer::Text(write) => stream(output.unwrap_or(stdout), owner, |out| write(selection, out)),
            Writer::Binary(write) => {
                let output = output.unwrap_or(stdout);
                if artifact::is_terminal(output) {
                    return Err(ExportError::Terminal { format: self.name });
                }
                stream(output, owner, |out| write(selection, out))
            }
            Writer::Files(write) => {
                let directory = output.unwrap_or_else(|| Path::new("."));
                if directory == stdout {
                    return Err(ExportError::Directory { format: self.name });
                }
                let mut files = Files::open(directory, owner)?;
                let written = write(selection, &mut files);
                // Also what there is of one that failed.
                let given = files.hand_over();
                written.and_then(|written| given.map(|()| written))
            }
        }
    }
}

impl ExportFormat {
    /// Exports a selection as one stream.
    ///
    /// # Errors
    /// If the data set cannot be read, the format is a directory of files, or `out` cannot be written.
    pub fn write(&self, selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
        match self.writer {
            Writer::Text(write) | Writer::Binary(write) => write(selection, out),
            Writer::Files(_) => Err(ExportError::Directory { format: self.name }),
        }
    }
}

fn stream(
    output: &Path,
    owner: Option<(u32, u32)>,
    write: impl FnOnce(&mut dyn Write) -> Result<Exported>,
) -> Result<Exported> {
    let written = artifact::stream(output, owner, &mut io::stdout().lock(), write);
    written.map_err(|error| match error {
        ExportError::Stream(cause) if output == Path::new(artifact::STDOUT) => {
            ExportError::Write { target: "standard output".to_owned(), cause }
        }
        ExportError::Stream(cause) => ExportError::Write { target: output.display().to_string(), cause },
        other => other,
    })
}

impl Selection<'_> {
    fn profile(&self) -> Result<Profile> {
        let read = || Profile::read(self.data, self.filter, self.app).map_err(ExportError::from);
        self.filter.unreadable.reading(read)
    }

    fn timeline(&self) -> Result<Timeline<'_>> {
        self.filter.unreadable.reading(|| Timeline::open(self.data, self.filter, self.app))
    }
}

impl Exported {
    fn of(profile: &Profile) -> Self {
        Self { energy: profile.energy(), origin: origin(&profile.overview) }
    }
}

/// How the energy came about: its label, its sources and whether they were certain.
fn origin(overview: &Overview) -> String {
    let label = overview.label.map_or("no energy source", Label::words);
    let mut text = format!("{label} ({})", overview.sources.join(", "));
    if overview.ambiguous > 0 {
        text.push_str(&format!(", {} ambiguous readings of counters", overview.ambiguous));
    }
    if overview.read_failed > 0 {
        text.push_str(&format!(", {} failed readings of counters", overview.read_failed));
    }
    if overview.inferred.0 > 0 {
        text.push_str(&format!(", {} J by samples of other windows", exact_joules(overview.inferred)));
    }
    text
}

/// For formats that know signed integers only; 2^63 µJ are 292 years of 1 kW.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The file of a frame, for a format that wants one for every frame: its library, executable or
/// kernel module, or what stands for it. It is not escaped: those formats are binary.
fn module(frame: &Frame) -> &str {
    if let Some(module) = &frame.module {
        return module.raw();
    }
    match frame.kind {
        FrameKind::Kernel => "[kernel]",
        FrameKind::Marker => "[none]",
        FrameKind::Vm | FrameKind::Native => "[unknown]",
        FrameKind::Interpreted
        | FrameKind::Compiled
        | FrameKind::CompiledC1
        | FrameKind::CompiledC2
        | FrameKind::Inlined
        | FrameKind::NativeWrapper
        | FrameKind::Stub => "[java]",
    }
}
