//! Goes through the runs of an experiment, one after the other, and keeps what each came to.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use joular_data::{dataset::store, model::units::Pid, output::OutputError, redact::Redaction};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::{
    around::{Around, Side},
    circumstances::Circumstances,
    launch::{LaunchError, exit_code},
    log::{LeftOut, Log, LogError, Rounds, RunRecord, Until},
    plan::{Place, Variant, order},
    signals::HandedOn,
    trial::{Ended, Outcome, Trial, TrialError, is_left_behind},
};

/// For a run of an experiment that was killed to end. It writes what it has, which takes a moment on a busy machine. This
/// only bounds a hang.
const MOST_WAIT: Duration = Duration::from_secs(120);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// A terminal's Ctrl-C ends a command as well, whose end may be noticed before the key.
const MOST_BEHIND: Duration = Duration::from_millis(100);

/// What is run, how often and how.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub variants: Vec<Variant>,
    /// Runs of each variant that count; with `until`, at most.
    pub repeat: u32,
    /// When fewer are enough.
    pub until: Option<Until>,
    /// Runs of each variant before, that do not.
    pub warmup: u32,
    /// Pause before each run but the first.
    pub cool_down: Duration,
    /// What runs before and after each run, warm-ups too, and is not measured.
    pub around: Around,
    pub seed: Option<u64>,
    /// Holds the log, and a data set for each variant. Without it nothing is kept.
    pub directory: Option<PathBuf>,
    pub shows_output: bool,
    /// Whether runs count that end with an error.
    pub ignores_failure: bool,
    /// Units of work of each run.
    pub work: Option<f64>,
    /// How work is counted, in words.
    pub work_rule: Option<String>,
    pub circumstances: Circumstances,
    /// What is shown of commands.
    pub redaction: Redaction,
    /// Whose files are made.
    pub owner: Option<(u32, u32)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error("listening for signals: {0}")]
    Signals(io::Error),
    #[error(
        "{variant} ended with exit code {code}: see why with --show-output, or count such runs, too, with --ignore-failure"
    )]
    Command { variant: String, code: u8 },
    #[error("a run of {variant} was not recorded: {said}")]
    Recording { variant: String, code: u8, said: String },
    #[error("{option} of {variant} ({command}): {source}")]
    Launch { option: &'static str, variant: String, command: String, source: LaunchError },
    #[error("{option} of {variant} ended with exit code {code}: see why with --show-output: {command}")]
    Around { option: &'static str, variant: String, command: String, code: u8 },
    #[error("{variant} printed no number that --work-regex finds: check it with --show-output")]
    NoWork { variant: String },
}

/// What happens meanwhile.
#[derive(Debug)]
pub enum Step<'a> {
    /// So many runs are to come at most, and so many are done already.
    Begun {
        runs: u32,
        done: u32,
        seed: u64,
    },
    Running {
        variant: &'a str,
        round: u32,
        is_warmup: bool,
    },
    /// Until this run has ended, whose experiment was killed.
    Waiting {
        pid: Pid,
    },
    Cooling,
    /// A command runs before or after a run.
    Around {
        variant: &'a str,
        side: Side,
    },
    /// A run counts.
    Ended(&'a RunRecord),
    /// What a run said, once each.
    Said(&'a str),
}

/// What an experiment came to.
#[derive(Debug)]
pub struct Conducted {
    pub log: Log,
    /// The exit code, if it was interrupted. It can go on later.
    pub interrupted: Option<u8>,
}

/// Runs what is not done yet. `arguments` are those of this process.
///
/// # Errors
/// See [`ConductError`]. What was done before is kept.
pub async fn conduct(
    experiment: &Experiment,
    arguments: &[OsString],
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<Conducted, ConductError> {
    let mut signals = HandedOn::listen().map_err(ConductError::Signals)?;
    let seed = experiment.seed.unwrap_or_else(|| fastrand::u64(..));
    let circumstances = experiment.circumstances.clone();
    let log = Log::new(seed, &experiment.variants, experiment.work_rule.clone(), circumstances);
    let mut log = log.redacted(&experiment.redaction);
    let rounds = Rounds { repeat: experiment.repeat, warmup: experiment.warmup, until: experiment.until };
    log.rounds = Some(rounds);
    if let Some(directory) = &experiment.directory {
        store::create_directories(directory, experiment.owner)?;
        log = Log::resume(directory, log, experiment.seed, &experiment.redaction)?;
        log.rounds = Some(rounds);
        for variant in 0..experiment.variants.len() {
            tokio::select! {
                tidied = tidy_when_free(&log, directory, variant, tell) => tidied?,
                () = signals.end() => return Ok(Conducted { log, interrupted: signals.asked_to_end().map(code_of) }),
            }
        }
        log.write(directory, experiment.owner)?;
    }
    let mut conductor = Conductor { experiment, arguments, tell, signals, log, has_run: false, said: Vec::new() };
    let interrupted = conductor.all().await?;
    Ok(Conducted { log: conductor.log, interrupted })
}

/// A run of an experiment that was killed is asked to end, and until it has ended the data set is its own.
async fn tidy_when_free(
    log: &Log,
    directory: &Path,
    variant: usize,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<(), LogError> {
    let until = Instant::now() + MOST_WAIT;
    let mut is_told = false;
    loop {
        let tidied = log.tidy(directory, variant);
        let Some(pid) = tidied.as_ref().err().and_then(LogError::in_use_by) else { return tidied };
        if pid.is_some_and(|pid| !is_left_behind(pid)) || Instant::now() >= until {
            return tidied;
        }
        if let Some(pid) = pid.filter(|_| !is_told) {
            tell(Step::Waiting { pid });
            is_told = true;
        }
        sleep(BETWEEN_TRIES).await;
    }
}

struct Conductor<'a> {
    experiment: &'a Experiment,
    arguments: &'a [OsString],
    tell: &'a mut dyn FnMut(Step<'_>),
    signals: HandedOn,
    log: Log,
    has_run: bool,
    said: Vec<String>,
}

/// What becomes of the experiment.
enum Next {
    On,
    Interrupted(u8),
}

impl Conductor<'_> {
    async fn all(&mut self) -> Result<Option<u8>, ConductError> {
        let places = order(self.experiment.variants.len(), self.experiment.repeat, self.log.seed);
        let is_precise = self.log.is_precise();
        let todo: Vec<Place> = places.filter(|place| !is_precise && !self.log.has(*place)).collect();
        let done = u32::try_from(self.log.runs.len()).unwrap_or(u32::MAX);
        let runs = u32::try_from(todo.len()).unwrap_or(u32::MAX);
        (self.tell)(Step::Begun { runs, done, seed: self.log.seed });
        let is_wanted = |variant: &usize| todo.iter().any(|place| place.variant == *variant);
        let wanted: Vec<usize> = (0..self.experiment.variants.len()).filter(is_wanted).collect();
        for round in 0..self.experiment.warmup {
            for variant in &wanted {
                if let Next::Interrupted(code) = self.one(Place { round, variant: *variant }, true).await? {
                    return Ok(Some(code));
                }
            }
        }
        for place in todo {
            if self.log.is_precise() {
                break;
            }
            if let Next::Interrupted(code) = self.one(place, false).await? {
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    async fn one(&mut self, place: Place, is_warmup: bool) -> Result<Next, ConductError> {
        let Some(variant) = self.experiment.variants.get(place.variant) else { return Ok(Next::On) };
        if self.has_run && !self.experiment.cool_down.is_zero() {
            (self.tell)(Step::Cooling);
            tokio::select! {
                () = sleep(self.experiment.cool_down) => {}
                () = self.signals.end() => {}
            }
        }
        if let Next::Interrupted(code) = self.next() {
            return Ok(Next::Interrupted(code));
        }
        self.has_run = true;
        (self.tell)(Step::Running { variant: &variant.name, round: place.round, is_warmup });
        if let Next::Interrupted(code) = self.around(Side::Before, place.variant, variant).await? {
            return Ok(Next::Interrupted(code));
        }
        let next = self.measured(place, variant, is_warmup).await;
        // What was prepared is undone whatever became of the run, whose own error is the one that is told.
        let after = self.around(Side::After, place.variant, variant).await;
        Ok(match (next?, after?) {
            (Next::On, after) => after,
            (interrupted, _) => interrupted,
        })
    }

    async fn measured(&mut self, place: Place, variant: &Variant, is_warmup: bool) -> Result<Next, ConductError> {
        let directory = self.experiment.directory.as_ref().filter(|_| !is_warmup);
        let output = directory.map(|directory| directory.join(variant.folder()));
        let trial = Trial::start(output, self.experiment.shows_output, &variant.command, self.arguments)?;
        let ended = self.ended(trial).await?;
        let next = self.taken(place, variant, ended, is_warmup);
        // A run that does not count leaves nothing behind.
        if let (Some(directory), Err(_) | Ok(Next::Interrupted(_))) = (directory, &next) {
            self.log.tidy(directory, place.variant)?;
        }
        next
    }

    /// Runs the command on one side of a run of the variant with this number, if there is one.
    async fn around(&mut self, side: Side, number: usize, variant: &Variant) -> Result<Next, ConductError> {
        let Experiment { around, shows_output, .. } = self.experiment;
        let Some(command) = around.command(side, number, variant) else { return Ok(self.next()) };
        (self.tell)(Step::Around { variant: &variant.name, side });
        let was_asked_to_end = self.signals.asked_to_end().is_some();
        let (option, name) = (side.option(), || variant.name.clone());
        let status = match around.start(&command, *shows_output) {
            Ok(mut launched) => {
                let pid = launched.pid;
                tokio::select! {
                    status = launched.ended() => status,
                    // It goes on for ever.
                    () = self.signals.forward(pid) => launched.ended().await,
                }
            }
            Err(error) => Err(error),
        };
        let code = match status {
            Ok(status) => exit_code(status),
            Err(source) => return Err(ConductError::Launch { option, variant: name(), command, source }),
        };
        if code != 0 && (was_asked_to_end || timeout(MOST_BEHIND, self.signals.end()).await.is_err()) {
            return Err(ConductError::Around { option, variant: name(), command, code });
        }
        Ok(self.next())
    }

    /// Whether somebody asked to end.
    fn next(&self) -> Next {
        self.signals.asked_to_end().map_or(Next::On, |signal| Next::Interrupted(code_of(signal)))
    }

    async fn ended(&mut self, mut trial: Trial) -> Result<Ended, ConductError> {
        let pid = trial.pid;
        let ended = tokio::select! {
            ended = trial.ended() => ended?,
            // It goes on for ever.
            () = self.signals.forward(pid) => trial.ended().await?,
        };
        for line in &ended.said {
            if !self.said.contains(line) {
                (self.tell)(Step::Said(line));
                self.said.push(line.clone());
            }
        }
        Ok(ended)
    }

    fn taken(&mut self, place: Place, variant: &Variant, ended: Ended, is_warmup: bool) -> Result<Next, ConductError> {
        let name = variant.name.clone();
        let Some(outcome) = ended.outcome else {
            let said = ended.said.last().cloned().unwrap_or_else(|| "it has said why".to_owned());
            return match self.next() {
                Next::On => Err(ConductError::Recording { variant: name, code: exit_code(ended.status), said }),
                interrupted => Ok(interrupted),
            };
        };
        let outcome = Outcome { work: self.experiment.work.or(outcome.work), ..outcome };
        let lacks_work = self.experiment.work_rule.is_some() && outcome.work.is_none();
        let (why, next) = match (self.next(), outcome.exit_code) {
            (Next::Interrupted(signal), _) => ("interrupted".to_owned(), Ok(Next::Interrupted(signal))),
            (Next::On, code) if code != 0 && !self.experiment.ignores_failure => {
                (format!("ended with exit code {code}"), Err(ConductError::Command { variant: name, code }))
            }
            (Next::On, _) if is_warmup => (String::new(), Ok(Next::On)),
            (Next::On, _) if lacks_work => {
                ("printed no units of work".to_owned(), Err(ConductError::NoWork { variant: name }))
            }
            (Next::On, _) => return self.kept(place, outcome),
        };
        let why = match is_warmup {
            true if why.is_empty() => "warm-up".to_owned(),
            true => format!("warm-up, {why}"),
            false => why,
        };
        self.log.left_out.push(LeftOut { place, why, outcome });
        self.keep()?;
        next
    }

    fn kept(&mut self, place: Place, outcome: Outcome) -> Result<Next, ConductError> {
        let order = u32::try_from(self.log.runs.len()).unwrap_or(u32::MAX);
        let record = RunRecord { place, order, outcome };
        self.log.runs.push(record.clone());
        self.keep()?;
        (self.tell)(Step::Ended(&record));
        Ok(Next::On)
    }

    fn keep(&self) -> Result<(), LogError> {
        let directory = self.experiment.directory.as_ref();
        directory.map_or(Ok(()), |directory| self.log.write(directory, self.experiment.owner))
    }
}

/// As a shell has it.
fn code_of(signal: Signal) -> u8 {
    u8::try_from(128 + signal.as_raw()).unwrap_or(u8::MAX)
}
