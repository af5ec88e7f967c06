//! Resolves what is shown of command lines, and checks the rules of what is secret.

use std::path::Path;

use joular_data::redact::{CommandLines, Redaction, Rule};

use super::{ConfigError, ConfigFile, Places};
use crate::cli::{CommandLineFlags, Flags, RedactFlags, RedactRuleFlags};

impl Places {
    pub(super) fn redaction(&self, flags: &Flags) -> Result<Redaction, ConfigError> {
        let shown = flags.command_line.as_deref().map(|text| self.parse::<CommandLines>("command-line", text));
        let rules = rules(&flags.redact).map_err(|cause| self.invalid("[[redact]]", cause))?;
        Ok(Redaction::new(shown.transpose()?.unwrap_or_default(), rules))
    }
}

/// What a command shows of command lines that redacts unless it is told otherwise.
///
/// # Errors
/// If it is none of the choices, or if there is something wrong with the configuration file.
pub fn redaction(flags: &CommandLineFlags) -> Result<Redaction, ConfigError> {
    let file = flags.config.as_deref().map(ConfigFile::read).transpose()?;
    let typed = Flags { command_line: flags.command_line.clone(), ..Flags::default() };
    let (places, merged) = Places::merged(typed, file)?;
    places.redaction(&merged)
}

/// What a command shows of command lines that keeps what was recorded unless it is told otherwise.
///
/// # Errors
/// As [`secrets`].
pub fn redaction_if_asked(flags: &RedactFlags) -> Result<Redaction, ConfigError> {
    match flags.redact {
        true => secrets(flags.config.as_deref()),
        false => Ok(Redaction::default().showing(CommandLines::Full)),
    }
}

/// What is secret, by what is built in and by the rules of a configuration file.
///
/// # Errors
/// If there is something wrong with the configuration file.
pub fn secrets(config: Option<&Path>) -> Result<Redaction, ConfigError> {
    let flags = CommandLineFlags { config: config.map(Path::to_path_buf), ..CommandLineFlags::default() };
    Ok(redaction(&flags)?.showing(CommandLines::Redacted))
}

fn rules(written: &[RedactRuleFlags]) -> Result<Vec<Rule>, String> {
    let numbered = written.iter().enumerate();
    numbered.map(|(index, written)| rule(written).map_err(|cause| format!("rule {}: {cause}", index + 1))).collect()
}

fn rule(written: &RedactRuleFlags) -> Result<Rule, String> {
    let (key, text, rule) = match (&written.name, &written.pattern) {
        (Some(name), None) => ("name", name, Rule::name(name)),
        (None, Some(pattern)) => ("pattern", pattern, Rule::pattern(pattern)),
        (None, None) => return Err("it says nothing: add name or pattern".to_owned()),
        (Some(_), Some(_)) => return Err("it has a name and a pattern: make two rules of it".to_owned()),
    };
    rule.map_err(|cause| format!("{key}: \"{}\": {cause}", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigFile};

    fn of_file(line: &str, text: &str) -> Result<Redaction, String> {
        let arguments = ["joular-bpf", "--all"].into_iter().chain(line.split_whitespace());
        let flags = crate::cli::parse(arguments.map(Into::into)).unwrap().flags;
        let file = ConfigFile::parse("run.toml".into(), text.into()).map_err(|error| error.to_string())?;
        let config = Config::resolve(flags, Some(file)).map_err(|error| error.to_string())?;
        Ok(config.redaction)
    }

    #[test]
    fn command_lines_are_redacted_unless_told_otherwise() {
        for (line, text, expected) in [
            ("", "", CommandLines::Redacted),
            ("", "command-line = 'none'", CommandLines::None),
            ("--command-line full", "command-line = 'none'", CommandLines::Full),
        ] {
            assert_eq!(of_file(line, text).unwrap().shown, expected, "{line} {text}");
        }
    }

    #[test]
    fn rules_of_the_file_add_to_what_is_secret() {
        let redaction = of_file("", "[[redact]]\nname = 'pin*'\n[[redact]]\npattern = 'AKIA[0-9A-Z]+'\n").unwrap();
        let shown = redaction.words(&["x", "--pin-code=1", "aAKIA7b", "-Dpassword=x"]).words;
        assert_eq!(shown, ["x", "--pin-code=[redacted]", "a[redacted]b", "-Dpassword=[redacted]"]);
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, expected) in [
            ("command-line = 'some'", "run.toml:1: command-line: \"some\": not none, redacted or full"),
            ("[[redact]]\nword = 'x'", "run.toml:2: unknown key `word`"),
            ("[[redact]]", "run.toml: [[redact]]: rule 1: it says nothing"),
            (
                "[[redact]]\nname = 'a'\n[[redact]]\nname = ''",
                "run.toml: [[redact]]: rule 2: name: \"\": a name cannot",
            ),
            ("[[redact]]\nname = '['", "run.toml: [[redact]]: rule 1: name: \"[\": not a pattern"),
            ("[[redact]]\npattern = '('", "run.toml: [[redact]]: rule 1: pattern: \"(\": not a regular expression"),
            ("[[redact]]\npattern = 'a*'", "run.toml: [[redact]]: rule 1: pattern: \"a*\": it matches the empty text"),
            ("[[redact]]\nname = 'a'\npattern = 'b'", "run.toml: [[redact]]: rule 1: it has a name and a pattern"),
        ] {
            let error = of_file("", text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
