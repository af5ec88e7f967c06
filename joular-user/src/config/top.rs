//! Resolves what is watched on the whole terminal.

use super::{Config, ConfigError, Screen};
use crate::cli::{Flags, TopFlags};

/// A recording or a replay that is shown, and written only if a directory is named.
///
/// # Errors
/// See [`ConfigError`].
pub fn top(flags: TopFlags) -> Result<Config, ConfigError> {
    let flags = Flags::from(flags);
    let no_output = flags.output.is_none();
    let config = Config::resolve(Flags { no_output, ..flags }, None)?;
    Ok(Config { screen: Screen::Quiet, ..config })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::{self, Command},
        config::Input,
    };

    fn resolved(line: &str) -> Result<Config, ConfigError> {
        let words = ["joular-bpf", "top"].into_iter().chain(line.split_whitespace());
        let Some(Command::Top(flags)) = cli::parse(words.map(Into::into)).unwrap().command else { panic!("{line}") };
        top(flags)
    }

    #[test]
    fn every_jvm_is_watched_and_nothing_written_unless_something_else_is_said() {
        let config = resolved("").unwrap();
        assert_eq!((config.output, config.screen), (None, Screen::Quiet));
        assert!(matches!(config.input, Input::Live(live) if live.selection.to_string() == "--jvms"));
        let config = resolved("--comm node --interval 500ms -o here").unwrap();
        assert_eq!(config.output, Some("here".into()));
        assert!(matches!(config.input, Input::Live(live) if live.interval.as_millis() == 500));
        assert!(matches!(resolved("--replay some.jrec").unwrap().input, Input::Replay(_)));
    }

    #[test]
    fn what_a_recording_decided_and_what_makes_no_sense_here_is_refused() {
        let error = resolved("--replay some.jrec --comm java").unwrap_err().to_string();
        assert!(error.contains("--replay"), "{error}");
        for flag in ["--json", "--quiet", "--no-output", "--top=5", "--metrics", "--record=f", "--alloc", "--ship=x"] {
            let error = cli::parse(["joular-bpf", "top", flag].map(Into::into)).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{flag}");
        }
    }
}
