//! Says where secrets stand in what was written: in data sets, in recordings and in logs of experiments, for
//! `joular-bpf audit --secrets`. It looks for what a redaction takes out, and never says a secret's value.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    column::Table as _,
    error::{DataSetError, Result},
    read::files,
    redacting::{self, InRow},
    store::{self, EXPERIMENT},
    tables::{Processes, Runs, TABLES},
};
use crate::{
    events::{Event, Service, recording::RecordingReader},
    model::target_text::TargetText,
    redact::{MARKER, Redaction, Why},
    text::count,
};

/// Folders within folders that are looked into.
const MAX_DEPTH: usize = 8;
/// Places that are reported one by one.
const MAX_TOLD: usize = 10_000;
const MAX_NAME_CHARS: usize = 64;
const MAX_LOG_BYTES: u64 = 256 << 20;
const RECORDING: &str = "jrec";

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub file: PathBuf,
    /// The table and its column, or what of a recording or a log it is.
    pub column: String,
    pub pid: Option<i64>,
    /// The name whose value it is, or what else tells that it is secret.
    pub what: String,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Found {
    /// How often at each place.
    #[serde(serialize_with = "as_list")]
    pub places: BTreeMap<Place, u64>,
    /// Places beyond those that are reported.
    pub untold: u64,
    /// Files that were looked through.
    pub files: u64,
    /// Files of other kinds, which were not.
    pub other_files: u64,
    /// What could not be read.
    pub problems: Vec<String>,
}

fn as_list<S: serde::Serializer>(places: &BTreeMap<Place, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted<'a> {
        #[serde(flatten)]
        place: &'a Place,
        count: u64,
    }
    serializer.collect_seq(places.iter().map(|(place, count)| Counted { place, count: *count }))
}

/// Looks through a data set, a recording, or a folder of them.
///
/// # Errors
/// If there is no such file or folder.
pub fn find(path: &Path, redaction: &Redaction) -> Result<Found> {
    store::refuse_bucket("looking for secrets", path)?;
    let mut found = Found::default();
    let metadata = fs::metadata(path).map_err(|cause| DataSetError::Open { path: path.into(), cause })?;
    if metadata.is_dir() {
        found.folder(path, redaction, MAX_DEPTH)
    } else {
        found.file(path, redaction)
    }
    Ok(found)
}

impl Found {
    pub fn is_clean(&self) -> bool {
        self.places.is_empty() && self.problems.is_empty()
    }

    /// What was found as text for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (Place { file, column, pid, what }, count) in &self.places {
            let pid = pid.map(|pid| format!(" of pid {pid}")).unwrap_or_default();
            let file = file.display().to_string();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}: {column}{pid}: {} ({count}×)", file.escape_debug(), what.escape_debug());
        }
        if self.untold > 0 {
            let _ = writeln!(text, "… and {} more", self.untold);
        }
        for problem in &self.problems {
            let _ = writeln!(text, "NOT READ: {}", problem.escape_debug());
        }
        let _ = match (self.places.len() as u64).saturating_add(self.untold) {
            0 => writeln!(text, "no secret in {}", count(self.files, "file")),
            places => writeln!(text, "secrets at {} in {}", count(places, "place"), count(self.files, "file")),
        };
        if self.other_files > 0 {
            let _ = writeln!(text, "not looked through: {} of other kinds", count(self.other_files, "file"));
        }
        text
    }

    fn note(&mut self, file: &Path, column: &str, pid: Option<i64>, why: &Why) {
        let what = match why {
            Why::Name(name) => name.chars().take(MAX_NAME_CHARS).collect(),
            Why::UserInfo => "user information of a URL".to_owned(),
            Why::Pattern(number) => format!("what [[redact]] rule {} matches", number + 1),
            Why::Repeated => "a secret that stands elsewhere, too".to_owned(),
        };
        let place = Place { file: file.to_owned(), column: column.to_owned(), pid, what };
        if let Some(count) = self.places.get_mut(&place) {
            *count += 1;
        } else if self.places.len() < MAX_TOLD {
            self.places.insert(place, 1);
        } else {
            self.untold += 1;
        }
    }

    fn folder(&mut self, path: &Path, redaction: &Redaction, depth: usize) {
        let is_table = |name: &str| name == Runs::NAME || TABLES.contains(&name);
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(format!("{}: {error}", path.display())),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        if entries.iter().any(|entry| entry.file_name() == Runs::NAME) {
            self.data_set(path, redaction).unwrap_or_else(|error| self.problems.push(error.to_string()));
        }
        for entry in entries {
            let (name, kind) = (entry.file_name(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_file() => self.file(&entry.path(), redaction),
                Ok(kind) if kind.is_dir() && name.to_str().is_some_and(is_table) => {}
                Ok(kind) if kind.is_dir() && depth > 0 => self.folder(&entry.path(), redaction, depth - 1),
                Ok(_) => self.other_files += 1,
                Err(error) => self.problems.push(format!("{}: {error}", entry.path().display())),
            }
        }
    }

    fn data_set(&mut self, root: &Path, redaction: &Redaction) -> Result<()> {
        for run in files::find(&store::open(root)?)? {
            let processes = run.parts.iter().filter_map(|(_, part)| part.file::<Processes>());
            for (table, file) in
                [(Runs::NAME, &run.row)].into_iter().chain(processes.map(|file| (Processes::NAME, file)))
            {
                self.files += 1;
                let path = file.path();
                let looked = redacting::find(table, file, redaction, |InRow { column, pid, why }| {
                    self.note(&path, &format!("{table}.{column}"), pid, &why);
                });
                looked.unwrap_or_else(|error| self.problems.push(error.to_string()));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, redaction: &Redaction) {
        let looked = if path.extension().is_some_and(|extension| extension == RECORDING) {
            self.recording(path, redaction)
        } else if path.file_name().is_some_and(|name| name == EXPERIMENT) {
            self.experiment(path, redaction)
        } else {
            self.other_files += 1;
            return;
        };
        self.files += 1;
        if let Err(problem) = looked {
            self.problems.push(format!("{}: {problem}", path.display()));
        }
    }

    fn recording(&mut self, path: &Path, redaction: &Redaction) -> Result<(), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        for event in RecordingReader::new(file).map_err(|error| error.to_string())? {
            match event.map_err(|error| error.to_string())? {
                Event::RunStarted(run) => {
                    for secret in redaction.words(&run.command_line).secrets {
                        self.note(path, "run.command_line", None, &secret.why);
                    }
                }
                Event::Process(process) => {
                    let words: Vec<&str> = process.command_line.iter().map(TargetText::raw).collect();
                    let (redacted, pid) = (redaction.words(&words), Some(i64::from(process.pid.0)));
                    for secret in &redacted.secrets {
                        self.note(path, "process.command_line", pid, &secret.why);
                    }
                    if let Some(Service { name, .. }) = &process.service
                        && redaction.named(&redacted, name.raw()).is_some()
                    {
                        self.note(path, "process.service", pid, &Why::Repeated);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn experiment(&mut self, path: &Path, redaction: &Redaction) -> Result<(), String> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_LOG_BYTES).read_to_string(&mut text));
        read.map_err(|error| error.to_string())?;
        let log: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let variants = log.get("variants").and_then(Value::as_array).into_iter().flatten();
        for command in variants.filter_map(|variant| variant.get("command")?.as_array()) {
            let words: Vec<&str> = command.iter().filter_map(Value::as_str).collect();
            for secret in redaction.words(&words).secrets {
                self.note(path, "variants.command", None, &secret.why);
            }
        }
        let options = log.pointer("/circumstances/options").and_then(Value::as_object);
        for (name, value) in options.into_iter().flatten() {
            let Some(value) = value.as_str().filter(|value| *value != MARKER) else { continue };
            for secret in redaction.words(&[format!("--{name}={value}")]).secrets {
                self.note(path, "circumstances.options", None, &secret.why);
            }
        }
        Ok(())
    }
}
