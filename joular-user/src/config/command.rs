//! Resolves how a command is run and recorded.

use std::{path::PathBuf, sync::Arc};

use joular_data::events::MarkKind;

use super::{Config, ConfigError, ConfigFile, Input, Screen};
use crate::{
    cli::{Flags, RunFlags, merge::TARGETS},
    experiment::{Rules, User, marks::RuleError, user::ONLY_ROOT, work::WorkRule},
    privileges::{self, lent},
};

/// A recording of a command.
#[derive(Clone, Debug)]
pub struct CommandRun {
    pub config: Config,
    /// `None`: the user who runs joular-bpf.
    pub user: Option<User>,
    /// What lines of its output mean.
    pub rules: Rules,
    /// Which of them say how much work was done.
    pub work: Option<Arc<WorkRule>>,
    /// Whether its output is seen.
    pub shows_output: bool,
}

impl CommandRun {
    /// Reads the configuration file, if one is named, and resolves.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn resolve(flags: &RunFlags) -> Result<Self, ConfigError> {
        let file = flags.flags.config.as_deref().map(ConfigFile::read).transpose()?;
        let user = match (&flags.user, privileges::invoking_user()) {
            (Some(name), _) => Some(User::named(name)),
            (None, Some(invoking)) => Some(User::invoking(invoking)),
            (None, None) => None,
        };
        let user = user.transpose().map_err(|error| invalid("--user", error.to_string()))?;
        if user.as_ref().is_some_and(|user| !lent::may_act_for(user.ids().0)) {
            return Err(invalid("--user", ONLY_ROOT.to_owned()));
        }
        let work = flags.experiment.work_regex.as_deref().map(WorkRule::new);
        let work = work.transpose().map_err(|cause| invalid("--work-regex", cause))?.map(Arc::new);
        let config = config(flags.flags.clone(), file)?;
        Ok(Self { config, user, rules: rules(flags)?, work, shows_output: true })
    }

    /// The same as one run of an experiment, which writes to `output` and says nothing.
    #[must_use]
    pub fn as_run(mut self, output: Option<PathBuf>, shows_output: bool) -> Self {
        self.config.output = output;
        self.config.screen = Screen::Quiet;
        self.shows_output = shows_output;
        self
    }
}

/// Ends come first: a line may end a phase and begin the next one.
fn rules(flags: &RunFlags) -> Result<Rules, ConfigError> {
    let of = |place: &str, kind, patterns: &[String]| {
        Rules::new(kind, patterns).map_err(|error: RuleError| invalid(place, error.to_string()))
    };
    let ends = of("--phase-end", MarkKind::End, &flags.phase_end)?;
    let begins = of("--phase-start", MarkKind::Begin, &flags.phase_start)?;
    Ok(ends.and(begins).and(of("--mark", MarkKind::Event, &flags.mark)?))
}

fn config(flags: Flags, file: Option<ConfigFile>) -> Result<Config, ConfigError> {
    if let Some(name) = flags.first_of(TARGETS) {
        return Err(invalid(&format!("--{name}"), "the command after -- is what is recorded: leave it out".to_owned()));
    }
    let is_silent = flags.quiet || flags.json;
    // Whoever else is chosen in a file is not meant here.
    let no_output = flags.no_output || flags.output.is_none();
    let mut config = Config::resolve(Flags { all: true, no_output, ..flags }, file)?;
    if !is_silent {
        config.screen = Screen::Summary;
    }
    config.is_beside_command = true;
    match &config.input {
        Input::Live(_) => Ok(config),
        Input::Replay(_) => Err(invalid("--replay", "a command is measured: leave it out".to_owned())),
    }
}

fn invalid(place: &str, cause: String) -> ConfigError {
    ConfigError::Invalid { place: place.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn resolved(line: &str) -> Result<Config, ConfigError> {
        let arguments = ["joular-bpf", "run"].into_iter().chain(line.split_whitespace());
        match cli::parse(arguments.map(Into::into)).unwrap().command {
            Some(Command::Run(flags)) => CommandRun::resolve(&flags).map(|run| run.config),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_recorded_without_a_data_set_unless_one_is_named() {
        let config = resolved("-- sleep 1").unwrap();
        assert_eq!((config.output, config.screen), (None, Screen::Summary));
        let config = resolved("--output here --quiet -- sleep 1").unwrap();
        assert_eq!((config.output, config.screen), (Some("here".into()), Screen::Quiet));
        assert_eq!(resolved("--json -- sleep --all").unwrap().screen, Screen::Json);
    }

    #[test]
    fn what_is_no_pattern_is_refused_by_the_name_of_its_option() {
        for flag in ["--phase-start", "--phase-end", "--mark"] {
            let arguments = ["joular-bpf", "run", flag, "a(", "--", "sleep", "1"].map(Into::into);
            let Some(Command::Run(flags)) = cli::parse(arguments).unwrap().command else { panic!("no run") };
            let error = CommandRun::resolve(&flags).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{flag}: 'a(' is not a pattern: ")), "{error}");
        }
    }

    #[test]
    fn nothing_else_can_be_a_target() {
        for flag in ["--pid 1", "--all", "--comm java", "--service a", "--replay f"] {
            let error = resolved(&format!("{flag} -- sleep 1")).unwrap_err().to_string();
            assert!(error.contains("the command after --"), "{flag}: {error}");
        }
        assert!(
            resolved("--user nobody-at-all -- sleep 1").unwrap_err().to_string().contains("--user: there is no user")
        );
    }
}
