//! Keeps what a comparison needs of a data set in a small file, and compares a later data set with it.
//!
//! A baseline is a side of a comparison ([`Side`]) whose amounts are known by run and not by window, and whose runs
//! are of several sessions. So a check is a comparison whose side A comes from the file: the same estimates,
//! verdicts, warnings and gates. docs/ci.md has the format.

mod file;
mod join;
mod session;

use std::{
    collections::BTreeSet,
    fs::File as OpenFile,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

use self::{
    file::{File, Head, WITHOUT_SESSIONS},
    session::Session,
};
use super::{
    Choices, Comparison, DiffError, Key, Per, Side, View, Work,
    again::{self, Sides},
    sessions::MIN_SESSIONS,
    side::Spent,
    warnings,
};
use crate::{
    dataset::store::Store,
    model::units::MicroJoules,
    report::{
        measure::{Measure, nothing},
        profile::{App, Filter, Run},
    },
    text::{escape, harmless_json},
};

/// What `format` of a baseline says.
const FORMAT: &str = "joular-bpf baseline";
/// A change of meaning makes a new version.
const VERSION: u32 = 3;
/// Neither larger files are read nor are they written.
const MOST_BYTES: u64 = 16 << 20;
/// Stands for the rows that a baseline has no room for.
const OTHERS: &str = "[other rows]";

/// Why there is no baseline, or nothing can be compared with it.
#[derive(Debug, Error)]
pub enum BaselineError {
    #[error("reading the baseline {path}: {cause}")]
    Read { path: String, cause: io::Error },
    #[error("{path} is larger than a baseline can be ({} MiB)", MOST_BYTES >> 20)]
    TooLarge { path: String },
    #[error("{path} is not a baseline: {cause}: write one with `joular-bpf baseline save`")]
    Foreign { path: String, cause: String },
    #[error("{path} is a baseline of version {version}, and this joular-bpf reads version {VERSION}: save it again")]
    Version { path: String, version: u32 },
    #[error("{path} is damaged: {cause}: save it again")]
    Damaged { path: String, cause: String },
    #[error(
        "the baseline would be larger than {} MiB: keep fewer rows with --top, or fewer sessions with --keep-sessions",
        MOST_BYTES >> 20
    )]
    TooManyRows,
    #[error("the baseline {path} has no counts of work: save it again with --work, or leave --work out")]
    NoWork { path: String },
    #[error("the sessions of {path} have counts of work, and {data} has none: give --work")]
    WorkMissing { path: String, data: String },
    #[error("{path} has a session {session} already: give another name, --session=NAME")]
    SameName { path: String, session: String },
    #[error(
        "run {run} of {data} is in session {session} of {path} already: record each session in a directory of its own"
    )]
    SameRun { path: String, data: String, session: String, run: String },
    #[error("{data} cannot be a session of {path}, because its runs were made differently: {cause}")]
    Unlike { path: String, data: String, cause: String },
    #[error("{data} has no window in the part that {path} keeps: a session of nothing shows nothing")]
    Empty { path: String, data: String },
    #[error(
        "{path} has {sessions} sessions, which --per none would add up against one: compare joules of a run, --per run"
    )]
    SumOfSessions { path: String, sessions: usize },
    #[error(transparent)]
    Compare(#[from] DiffError),
}

/// What of a data set is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    /// The options that selected the part, for the check to select the same.
    pub part: serde_json::Value,
    /// Units of work of each run, in the order of their starts; empty if not counted.
    pub work: Vec<f64>,
    /// Largest rows to keep; `None`: all. A further session has the rows of those before it.
    pub top: Option<usize>,
    /// Name of the session; `None`: it is called by its time.
    pub session: Option<String>,
    /// Sessions to keep, those that were added last; `None`: all.
    pub sessions: Option<usize>,
}

/// A baseline that was read.
#[derive(Debug)]
pub struct Baseline {
    path: PathBuf,
    file: File,
    version: u32,
    side: Side,
}

/// The text of a baseline of a data set.
///
/// # Errors
/// If there is no run, a file cannot be read or is damaged, work is not counted by run, or there are too many rows.
pub fn save(
    data: &Path,
    filter: &Filter,
    app: Option<&App>,
    choices: &Choices,
    keep: &Keep,
) -> Result<String, BaselineError> {
    let mut side = side_to_keep(data, filter, app, choices, keep)?;
    let mut by_amount: Vec<(MicroJoules, Key)> = side.rows.iter().map(|(key, row)| (row.energy, key.clone())).collect();
    by_amount.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let kept = by_amount.into_iter().take(keep.top.unwrap_or(usize::MAX)).map(|(_, key)| key).collect();
    let left_out = side.keep_rows(&kept, choices.view);
    text(&File::of(Session::of(&side, keep, left_out), choices, keep))
}

fn side_to_keep(
    data: &Path,
    filter: &Filter,
    app: Option<&App>,
    choices: &Choices,
    keep: &Keep,
) -> Result<Side, DiffError> {
    let side = Side::read(data, filter, app, choices)?;
    if !keep.work.is_empty() {
        side.expect_work_of_each_run("--work", &Work::OfRuns(keep.work.clone()))?;
    }
    must_have(&side, choices.measure)?;
    Ok(side)
}

fn text(file: &File) -> Result<String, BaselineError> {
    let mut text = serde_json::to_string(file).map_err(|_| BaselineError::TooManyRows)?;
    text = harmless_json(&text);
    text.push('\n');
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        return Err(BaselineError::TooManyRows);
    }
    Ok(text)
}

impl Baseline {
    /// # Errors
    /// If the file cannot be read, is too large, is something else, or does not hold together.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        let shown = || escape(&path.display().to_string());
        let failed = |cause| BaselineError::Read { path: shown(), cause };
        let mut bytes = Vec::new();
        OpenFile::open(path).map_err(failed)?.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
            return Err(BaselineError::TooLarge { path: shown() });
        }
        let foreign = |cause: String| BaselineError::Foreign { path: shown(), cause };
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| foreign(escape(&error.to_string())))?;
        if head.format != FORMAT {
            return Err(foreign("it does not say that it is one".to_owned()));
        }
        if ![VERSION, WITHOUT_SESSIONS].contains(&head.version) {
            return Err(BaselineError::Version { path: shown(), version: head.version });
        }
        let damaged = |cause: String| BaselineError::Damaged { path: shown(), cause: escape(&cause) };
        let file = File::read(&bytes, head.version).map_err(|error| damaged(error.to_string()))?;
        let side = file.side(path).map_err(damaged)?;
        Ok(Self { path: path.to_owned(), file, version: head.version, side })
    }

    /// The text of a baseline that has a data set as one session more. `filter`, `app` and the rows of `choices` must
    /// be those of [`Self::part`], [`Self::by`] and [`Self::view`].
    ///
    /// # Errors
    /// As [`save`], and if the data set is a session already, or its runs were made differently.
    pub fn with_session(
        mut self,
        data: &Path,
        filter: &Filter,
        app: Option<&App>,
        choices: &Choices,
        keep: &Keep,
    ) -> Result<String, BaselineError> {
        let [path, shown] = [&self.path, data].map(|path| escape(&path.display().to_string()));
        let side = side_to_keep(data, filter, app, choices, keep)?;
        match (self.file.work(), keep.work.is_empty()) {
            (Some(_), true) => return Err(BaselineError::WorkMissing { path, data: shown }),
            (None, false) => return Err(BaselineError::NoWork { path }),
            _ => {}
        }
        if side.windows.is_empty() {
            return Err(BaselineError::Empty { path, data: shown });
        }
        self.expect_other_runs(&side, &path, &shown)?;
        let (a, mut b) = if choices.measure == Measure::Energy {
            let read = |store: &Arc<dyn Store>, root: &Path| Side::of_store(store, root, filter, app, choices);
            let Sides { a, b, .. } = again::alike(self.side, side, filter, choices.again_in.as_deref(), read);
            let differences = warnings::differences(&a, &b);
            if !differences.are_comparable() {
                return Err(BaselineError::Unlike { path, data: shown, cause: differences.warnings.join("; ") });
            }
            (a, b)
        } else {
            (self.side, side)
        };
        let mut kept: BTreeSet<Key> = a.rows.into_keys().collect();
        if self.file.rows_left_out() == 0 {
            // The sessions before have nothing of rows that they do not have.
            kept.extend(b.rows.keys().cloned());
        }
        let left_out = b.keep_rows(&kept, choices.view);
        let session = Session::of(&b, keep, left_out);
        if self.file.sessions.iter().any(|other| other.title() == session.title()) {
            return Err(BaselineError::SameName { path, session: escape(&session.title()) });
        }
        self.file.sessions.push(session);
        let most = keep.sessions.unwrap_or(usize::MAX).max(1);
        self.file.sessions.drain(..self.file.sessions.len().saturating_sub(most));
        text(&self.file)
    }

    /// Adding a session twice would make it seem that sessions do not differ.
    fn expect_other_runs(&self, side: &Side, path: &str, data: &str) -> Result<(), BaselineError> {
        for (run, session) in self.side.runs.iter().zip(&self.side.sessions) {
            let is_same =
                |other: &Run| (&other.info.run_id, other.info.machine()) == (&run.info.run_id, run.info.machine());
            if side.runs.iter().any(is_same) {
                let session = self.file.sessions.get(*session).map(Session::title).unwrap_or_default();
                return Err(BaselineError::SameRun {
                    path: path.to_owned(),
                    data: data.to_owned(),
                    session: escape(&session),
                    run: escape(&run.info.run_id),
                });
            }
        }
        Ok(())
    }

    /// What rows are, by the name that `--by` takes.
    pub fn by(&self) -> &str {
        &self.file.by
    }

    /// The view, by the name that `--view` takes.
    pub fn view(&self) -> &str {
        &self.file.view
    }

    /// What is compared, by the name that `--measure` takes.
    pub fn measure(&self) -> &str {
        &self.file.measure
    }

    /// The options that selected the part.
    pub const fn part(&self) -> &serde_json::Value {
        &self.file.part
    }

    /// Joules per unit of work, of B's counts.
    ///
    /// # Errors
    /// If the baseline has no counts.
    pub fn per_work(&self, of_b: Vec<f64>) -> Result<Per, BaselineError> {
        let no_work = || BaselineError::NoWork { path: escape(&self.path.display().to_string()) };
        let of_a = self.file.work().ok_or_else(no_work)?;
        Ok(Per::Work { a: Work::OfRuns(of_a), b: Work::OfRuns(of_b) })
    }

    /// Compares a data set with it. `filter`, `app` and the rows of `choices` must be those of [`Self::part`],
    /// [`Self::by`] and [`Self::view`].
    ///
    /// # Errors
    /// If there is no run, a file cannot be read or is damaged, or work is not counted by run.
    pub fn check(
        self,
        data: &Path,
        filter: &Filter,
        app: Option<&App>,
        choices: &Choices,
    ) -> Result<Comparison, BaselineError> {
        let b = Side::read(data, filter, app, choices).map_err(DiffError::from)?;
        if let Per::Work { b: work, .. } = &choices.per {
            b.expect_work_of_each_run("--work", work)?;
        }
        let sessions = self.side.sessions_with_windows();
        if choices.per == Per::Nothing && sessions >= MIN_SESSIONS {
            let path = escape(&self.path.display().to_string());
            return Err(BaselineError::SumOfSessions { path, sessions });
        }
        let mut sides = if choices.measure == Measure::Energy {
            let read = |store: &Arc<dyn Store>, root: &Path| Side::of_store(store, root, filter, app, choices);
            again::alike(self.side, b, filter, choices.again_in.as_deref(), read)
        } else {
            must_have(&b, choices.measure)?;
            Sides::as_they_are(self.side, b)
        };
        if self.version == WITHOUT_SESSIONS {
            sides.notices.push(format!(
                "the baseline is of version {WITHOUT_SESSIONS}, which does not tell sessions apart: its runs count as \
                 one session"
            ));
        }
        if self.file.rows_left_out() > 0 {
            let kept = sides.a.rows.keys().cloned().collect();
            let folded = sides.b.keep_rows(&kept, choices.view);
            sides.notices.push(format!(
                "the baseline keeps the {} largest rows: {} of its other rows and {folded} of B are \
                 {OTHERS}",
                kept.iter().filter(|key| key.name != *OTHERS).count(),
                self.file.rows_left_out()
            ));
        }
        Ok(Comparison::of(sides, choices))
    }
}

/// What was not recorded would be a decrease of what was.
fn must_have(side: &Side, measure: Measure) -> Result<(), DiffError> {
    if side.has_measure { Ok(()) } else { Err(nothing(measure, &side.data).into()) }
}

impl Side {
    /// Makes one row of all that are not in `kept`, if rows sum to the total, and leaves them out otherwise. Tells
    /// how many they are.
    fn keep_rows(&mut self, kept: &BTreeSet<Key>, view: View) -> usize {
        let all = std::mem::take(&mut self.rows);
        let (rows, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(key, _)| kept.contains(key));
        self.rows = rows.into_iter().collect();
        if view == View::Itself && !others.is_empty() {
            let sum = others.iter().map(|(_, row)| row).fold(Spent::default(), Spent::plus);
            self.rows.insert(Key::named(OTHERS), sum);
        }
        others.len()
    }
}
