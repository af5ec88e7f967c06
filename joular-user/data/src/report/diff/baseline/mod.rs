//! Keeps what a comparison needs of a data set in a small file, and compares a later data set with it.
//!
//! A baseline is a side of a comparison ([`Side`]) whose amounts are known by run and not by window. So
//! a check is a comparison whose side A comes from the file: the same estimates, verdicts, warnings
//! and gates. docs/ci.md has the format.

mod file;

use std::{
    collections::BTreeSet,
    fs::File as OpenFile,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

use self::file::{File, Head};
use super::{
    Choices, Comparison, DiffError, Key, Per, Side, View, Work,
    again::{self, Sides},
    side::Spent,
};
use crate::{
    dataset::store::Store,
    model::units::MicroJoules,
    report::{
        measure::{Measure, nothing},
        profile::{App, Filter},
    },
    text::{escape, harmless_json},
};

/// What `format` of a baseline says.
const FORMAT: &str = "joular-bpf baseline";
/// A change of meaning makes a new version.
const VERSION: u32 = 2;
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
    #[error("a baseline of all these rows is larger than {} MiB: keep fewer with --top", MOST_BYTES >> 20)]
    TooManyRows,
    #[error("the baseline {path} has no counts of work: save it again with --work, or leave --work out")]
    NoWork { path: String },
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
    /// Largest rows to keep; `None`: all.
    pub top: Option<usize>,
}

/// A baseline that was read.
#[derive(Debug)]
pub struct Baseline {
    path: PathBuf,
    file: File,
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
    let mut side = Side::read(data, filter, app, choices).map_err(DiffError::from)?;
    if !keep.work.is_empty() {
        side.expect_work_of_each_run("--work", &Work::OfRuns(keep.work.clone()))?;
    }
    must_have(&side, choices.measure)?;
    let mut by_amount: Vec<(MicroJoules, Key)> = side.rows.iter().map(|(key, row)| (row.energy, key.clone())).collect();
    by_amount.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let kept = by_amount.into_iter().take(keep.top.unwrap_or(usize::MAX)).map(|(_, key)| key).collect();
    let left_out = side.keep_rows(&kept, choices.view);
    let file = File::of(&side, choices, keep, left_out);
    let mut text = serde_json::to_string(&file).map_err(|_| BaselineError::TooManyRows)?;
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
        if head.version != VERSION {
            return Err(BaselineError::Version { path: shown(), version: head.version });
        }
        let damaged = |cause: String| BaselineError::Damaged { path: shown(), cause: escape(&cause) };
        let file: File = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let side = file.side(path).map_err(damaged)?;
        Ok(Self { path: path.to_owned(), file, side })
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
        let mut sides = if choices.measure == Measure::Energy {
            let read = |store: &Arc<dyn Store>, root: &Path| Side::of_store(store, root, filter, app, choices);
            again::alike(self.side, b, choices.again_in.as_deref(), read)
        } else {
            must_have(&b, choices.measure)?;
            Sides::as_they_are(self.side, b)
        };
        if self.file.rows_left_out > 0 {
            let kept = sides.a.rows.keys().cloned().collect();
            let folded = sides.b.keep_rows(&kept, choices.view);
            sides.notices.push(format!(
                "the baseline keeps the {} largest rows: {} of its other rows and {folded} of B are \
                 {OTHERS}",
                kept.iter().filter(|key| key.name != *OTHERS).count(),
                self.file.rows_left_out
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

impl Spent {
    /// Errors of rows of one thread compensate each other, so the sum of their variances is too large, not too small.
    fn plus(mut self, other: &Self) -> Self {
        self.energy = self.energy.saturating_add(other.energy);
        self.inferred = self.inferred.saturating_add(other.inferred);
        self.samples = self.samples.saturating_add(other.samples);
        self.by_window.extend(&other.by_window);
        self.sampling += other.sampling;
        self
    }
}
