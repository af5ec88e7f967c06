//! Keeps what an experiment has done, in `experiment.json` beside its data sets, so that it can go on after an
//! interruption. Only runs that stand there count; whatever else lies in the data sets is removed before more is recorded.

mod records;

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use joular_data::{
    dataset::{DataSetError, forget, store::EXPERIMENT},
    experiment::{
        plot::Drawing,
        replicates::{self, Precision, Summary},
    },
    model::{domain::Label, units::Pid},
    output::OutputError,
    redact::Redaction,
    report::artifact,
};
use serde::{Deserialize, Serialize};

pub use self::records::{LeftOut, Rounds, RunRecord, Until, VariantRecord};
use super::{
    circumstances::Circumstances,
    plan::{Place, Variant},
};

/// Name of the file.
pub const FILE: &str = EXPERIMENT;
const VERSION: u32 = 1;
const MAX_FILE_BYTES: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("reading {path}: {source}: {}choose another directory with --output", advice_on(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} holds another experiment ({what} differs): choose another directory with --output")]
    Other { path: PathBuf, what: String },
    #[error("{path} has data and no {FILE}: choose another directory with --output")]
    Foreign { path: PathBuf },
    #[error(transparent)]
    Write(#[from] OutputError),
    #[error(transparent)]
    Data(#[from] DataSetError),
}

/// What a user can do who does not want another directory.
fn advice_on(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "it is another user's: go on as its owner or with sudo, or ",
        _ => "remove it to begin again, or ",
    }
}

impl LogError {
    /// The run that is still writing to the data set, if that is why. It may not have said yet who it is.
    pub fn in_use_by(&self) -> Option<Option<Pid>> {
        match self {
            Self::Data(DataSetError::Output(OutputError::InUse { pid, .. })) => Some(pid.map(Pid)),
            _ => None,
        }
    }
}

/// What an experiment has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    version: u32,
    pub seed: u64,
    pub variants: Vec<VariantRecord>,
    /// How work is counted, in words.
    pub work: Option<String>,
    /// Not known of an experiment that an earlier joular-bpf has begun.
    #[serde(default)]
    pub circumstances: Option<Circumstances>,
    /// As it was asked for last. Not known of an experiment that an earlier joular-bpf has ended.
    #[serde(default)]
    pub rounds: Option<Rounds>,
    pub runs: Vec<RunRecord>,
    /// Warm-ups, and runs that failed or were interrupted.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

impl Log {
    pub fn new(seed: u64, variants: &[Variant], work: Option<String>, circumstances: Circumstances) -> Self {
        let variants = variants.iter().map(VariantRecord::from).collect();
        Self {
            version: VERSION,
            seed,
            variants,
            work,
            circumstances: Some(circumstances),
            rounds: None,
            runs: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// What the directory holds of this experiment. `seed` is what the user asked for.
    ///
    /// # Errors
    /// If it holds anything else, or cannot be read.
    pub fn resume(directory: &Path, new: Self, seed: Option<u64>, redaction: &Redaction) -> Result<Self, LogError> {
        let path = directory.join(FILE);
        let failed = |source| LogError::Read { path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_empty = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
                return if is_empty { Ok(new) } else { Err(LogError::Foreign { path: directory.to_owned() }) };
            }
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        let found: Self = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        // An earlier joular-bpf has left secrets in it.
        let found = found.redacted(redaction);
        let what = [
            ("the version of the file", found.version != VERSION),
            ("a variant", found.variants != new.variants),
            ("how work is counted", found.work != new.work),
            ("the seed", seed.is_some_and(|seed| seed != found.seed)),
            ("a run", found.runs.iter().any(|run| run.place.variant >= found.variants.len())),
        ];
        let what = what.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what.to_owned());
        let circumstances = || found.circumstances.as_ref()?.difference(new.circumstances.as_ref()?);
        match what.or_else(circumstances) {
            Some(what) => Err(LogError::Other { path, what }),
            None => Ok(found),
        }
    }

    /// What an experiment has done of which this data set is a variant. Data sets of other recordings have no such file
    /// beside them, and one that cannot be read says nothing of them.
    pub fn of_variant(data_set: &Path) -> Option<Self> {
        let whole = fs::canonicalize(data_set).ok()?;
        let file = File::open(whole.parent()?.join(FILE)).ok()?;
        let found: Self = serde_json::from_reader(io::BufReader::new(file.take(MAX_FILE_BYTES))).ok()?;
        (found.version == VERSION).then_some(found)
    }

    /// Units of work of runs, in their order, if those of each are known.
    pub fn work_of(&self, run_ids: &[String]) -> Option<Vec<f64>> {
        let work: HashMap<&str, f64> =
            self.runs.iter().filter_map(|run| Some((run.outcome.run_id.as_str(), run.outcome.work?))).collect();
        run_ids.iter().map(|id| work.get(id.as_str()).copied()).collect()
    }

    /// Takes secrets out of the commands and the options.
    #[must_use]
    pub fn redacted(mut self, redaction: &Redaction) -> Self {
        for variant in &mut self.variants {
            variant.command = redaction.words(&variant.command).words;
        }
        self.circumstances = self.circumstances.map(|circumstances| circumstances.redacted(redaction));
        self
    }

    pub fn has(&self, place: Place) -> bool {
        self.runs.iter().any(|run| run.place == place)
    }

    /// Of a variant, in the order of their rounds' starts.
    pub fn runs_of(&self, variant: usize) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().filter(move |run| run.place.variant == variant)
    }

    fn replicates(&self) -> Vec<replicates::Variant> {
        let variants = self.variants.iter().enumerate().map(|(at, variant)| replicates::Variant {
            name: variant.name.clone(),
            replicates: self.runs_of(at).map(RunRecord::replicate).collect(),
        });
        variants.collect()
    }

    /// How narrow the intervals are, if that is asked for.
    pub fn precision(&self) -> Option<Precision> {
        let until = self.rounds?.until?;
        Some(Precision::of(&self.replicates(), until.percent))
    }

    /// Whether no more runs are wanted: after a round, and not between.
    pub fn is_precise(&self) -> bool {
        let Some(until) = self.rounds.and_then(|rounds| rounds.until) else { return false };
        // Most of the time, this alone says no.
        if self.variants.is_empty() || !self.runs.len().is_multiple_of(self.variants.len()) {
            return false;
        }
        let each = self.runs.len() / self.variants.len();
        let is_round = (0..self.variants.len()).all(|variant| self.runs_of(variant).count() == each);
        let is_least = u32::try_from(each).is_ok_and(|each| each < until.min_runs);
        is_round && !is_least && self.precision().is_some_and(|precision| precision.is_reached)
    }

    /// Figures of all runs.
    pub fn summary(&self) -> Summary {
        let named = |name: &String| Label::ALL.into_iter().find(|label| label.name() == name);
        let label = self.runs.iter().filter_map(|run| named(run.outcome.label.as_ref()?)).max();
        replicates::summarize(&self.replicates()).labelled(label).with_precision(self.precision())
    }

    /// All runs as a picture.
    pub fn drawing(&self) -> Drawing {
        replicates::drawing(&self.replicates(), &self.summary())
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, directory: &Path, owner: Option<(u32, u32)>) -> Result<(), LogError> {
        let path = directory.join(FILE);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| OutputError::from_io("writing", &path, io::Error::other(error)))?;
        Ok(artifact::write(&path, &text, owner, &mut io::sink())?)
    }

    /// Removes what runs that do not count have left in a variant's data set.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn tidy(&self, directory: &Path, variant: usize) -> Result<(), LogError> {
        let Some(record) = self.variants.get(variant) else { return Ok(()) };
        let kept: BTreeSet<String> = self.runs_of(variant).map(|run| run.outcome.run_id.clone()).collect();
        forget::keep_only(&directory.join(&record.folder), &kept)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            plan,
            trial::{self, Outcome},
        },
        *,
    };

    fn log(command: &str) -> Log {
        let words: Vec<_> = command.split_whitespace().map(Into::into).collect();
        Log::new(7, &plan::variants(&words, &[], &[]).unwrap(), None, Circumstances::default())
    }

    #[test]
    fn an_experiment_goes_on_only_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert_eq!(Log::resume(root, log("sleep 1"), None, &Redaction::default()).unwrap(), log("sleep 1"));
        log("sleep 1").write(root, None).unwrap();
        let again = Log { seed: 8, ..log("sleep 1") };
        assert_eq!(Log::resume(root, again.clone(), None, &Redaction::default()).unwrap().seed, 7, "the seed stays");
        for (other, seed, what) in [
            (log("sleep 2"), None, "a variant differs"),
            (Log { work: Some("3".into()), ..log("sleep 1") }, None, "how work is counted differs"),
            (again, Some(8), "the seed differs"),
            (
                Log { circumstances: Some(Circumstances { host: "b".into(), ..Default::default() }), ..log("sleep 1") },
                None,
                "the host differs",
            ),
        ] {
            let error = Log::resume(root, other, seed, &Redaction::default()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    /// Runs of two variants that need so much.
    fn done(until: Option<Until>, joules: &[(u32, u32)]) -> Log {
        let variants = ["a=true", "b=false"].map(str::to_owned);
        let mut log = Log::new(7, &plan::variants(&[], &variants, &[]).unwrap(), None, Circumstances::default());
        log.rounds = Some(Rounds { repeat: 100, warmup: 0, until });
        for (round, (a, b)) in (0..).zip(joules) {
            for (variant, joules) in [(0, *a), (1, *b)] {
                let order = round * 2 + u32::from(variant == 1);
                let outcome = Outcome { energy_uj: u64::from(joules) * 1_000_000, ..trial::outcome() };
                log.runs.push(RunRecord { place: Place { round, variant }, order, outcome });
            }
        }
        log
    }

    #[test]
    fn runs_are_enough_when_every_interval_is_narrow_and_a_round_is_whole() {
        let until = Some(Until { percent: 5.0, min_runs: 3 });
        let (calm, noisy) = ([(100, 50), (101, 50), (100, 51)], [(100, 50), (101, 50), (100, 60)]);
        assert!(done(until, &calm).is_precise());
        assert!(!done(until, &noisy).is_precise(), "one of both is not");
        assert!(!done(until, &calm[..2]).is_precise(), "too few runs");
        assert!(!done(None, &calm).is_precise(), "nobody asked");
        let mut within = done(until, &calm);
        within.runs.push(RunRecord { place: Place { round: 3, variant: 1 }, ..within.runs[0].clone() });
        assert!(!within.is_precise(), "a round has begun");
        within.runs.push(RunRecord { place: Place { round: 4, variant: 1 }, ..within.runs[1].clone() });
        assert!(!within.is_precise(), "one variant has two runs more");
        let summary = done(until, &noisy).summary();
        assert!(summary.precision.is_some_and(|precision| !precision.is_reached));
        assert_eq!(done(None, &noisy).summary().precision, None);
    }

    #[test]
    fn what_was_asked_for_comes_back_and_earlier_logs_do_not_say_it() {
        let mut log = done(Some(Until { percent: 2.5, min_runs: 10 }), &[(1, 2)]);
        let RunRecord { place, outcome, .. } = log.runs[0].clone();
        log.left_out.push(LeftOut { place, why: "warm-up".to_owned(), outcome });
        let mut text = serde_json::to_value(&log).unwrap();
        assert_eq!(serde_json::from_value::<Log>(text.clone()).unwrap(), log);
        let fields = text.as_object_mut().unwrap();
        assert!(["rounds", "left_out"].into_iter().all(|field| fields.remove(field).is_some()));
        let earlier = serde_json::from_value::<Log>(text).unwrap();
        assert_eq!((earlier.rounds, earlier.left_out), (None, Vec::new()));
    }

    #[test]
    fn a_data_set_of_an_experiment_has_the_work_of_its_runs() {
        let directory = tempfile::tempdir().unwrap();
        let data_set = directory.path().join("a");
        fs::create_dir(&data_set).unwrap();
        assert_eq!(Log::of_variant(&data_set), None);
        let run = |run_id: &str, work| RunRecord {
            place: Place { round: 0, variant: 0 },
            order: 0,
            outcome: Outcome { run_id: run_id.to_owned(), work, ..Outcome::default() },
        };
        let runs = vec![run("one", Some(10.0)), run("two", Some(12.0)), run("none", None)];
        Log { runs, ..log("sleep 1") }.write(directory.path(), None).unwrap();
        let found = Log::of_variant(&data_set).unwrap();
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(found.work_of(&ids(&["two", "one"])), Some(vec![12.0, 10.0]));
        assert_eq!(found.work_of(&ids(&["one", "none"])), None, "the work of one is not known");
        assert_eq!(found.work_of(&ids(&["one", "other"])), None, "one is of another recording");
        fs::write(directory.path().join(FILE), "{").unwrap();
        assert_eq!(Log::of_variant(&data_set), None);
    }

    #[test]
    fn secrets_in_commands_are_not_kept_and_an_earlier_log_that_has_them_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let redaction = Redaction::default();
        let full = log("java -Dpassword=hunter2 --token x Main");
        full.write(directory.path(), None).unwrap();
        let new = full.clone().redacted(&redaction);
        assert_eq!(new.variants[0].command, ["java", "-Dpassword=[redacted]", "--token", "[redacted]", "Main"]);
        assert_eq!(Log::resume(directory.path(), new.clone(), None, &redaction).unwrap(), new);
    }

    #[test]
    fn nobody_is_told_to_remove_what_another_user_has() {
        for (kind, advice) in [
            (
                io::ErrorKind::PermissionDenied,
                ": it is another user's: go on as its owner or with sudo, or choose another ",
            ),
            (io::ErrorKind::InvalidData, ": remove it to begin again, or choose another directory"),
        ] {
            let message = LogError::Read { path: "a".into(), source: kind.into() }.to_string();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn what_is_no_experiment_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("letter.txt"), "dear").unwrap();
        let error = Log::resume(directory.path(), log("true"), None, &Redaction::default()).unwrap_err().to_string();
        assert!(error.contains("has data and no experiment.json"), "{error}");
        for text in ["", "{}", "[1, 2", "\u{0}"] {
            fs::write(directory.path().join(FILE), text).unwrap();
            let error =
                Log::resume(directory.path(), log("true"), None, &Redaction::default()).unwrap_err().to_string();
            assert!(error.contains("remove it to begin again"), "{text}: {error}");
        }
    }
}
