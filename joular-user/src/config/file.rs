//! Reads the configuration file: flags in TOML.

use std::{fs::File, io::Read as _, path::Path};

use super::ConfigError;
use crate::cli::Flags;

/// No configuration is larger.
const MAX_BYTES: u64 = 1024 * 1024;

/// A configuration file as read.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// For messages.
    pub path: String,
    pub text: String,
    pub flags: Flags,
}

/// More keys than these are not listed.
const MAX_LISTED: usize = 8;

/// The parser's message; of a key that does not exist, the key that was meant instead of all that there are.
fn plainly(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    // Names stand between backticks.
    let mut names = rest.split('`').step_by(2);
    let key = names.next().unwrap_or_default();
    let keys: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let likeness = |known: &&&str| strsim::jaro_winkler(key, known);
    let nearest = keys.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|known| likeness(known) > 0.8);
    match nearest {
        Some(known) => format!("unknown key `{key}`: did you mean `{known}`?"),
        None if keys.len() <= MAX_LISTED => format!("unknown key `{key}`: there are `{}`", keys.join("`, `")),
        None => format!("unknown key `{key}`: keys are the long flags of a recording, see --help and docs/agent.md"),
    }
}

impl ConfigFile {
    /// # Errors
    /// [`ConfigError::File`] and [`ConfigError::Syntax`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        let path = path.display().to_string();
        match read {
            Err(cause) => Err(ConfigError::File { path, cause: cause.to_string() }),
            Ok(length) if length as u64 > MAX_BYTES => {
                Err(ConfigError::File { path, cause: format!("larger than {MAX_BYTES} bytes") })
            }
            Ok(_) => Self::parse(path, text),
        }
    }

    /// # Errors
    /// [`ConfigError::Syntax`] for what is not TOML, a key that does not exist
    /// or a value of the wrong type.
    pub fn parse(path: String, text: String) -> Result<Self, ConfigError> {
        match toml::from_str(&text) {
            Ok(flags) => Ok(Self { path, text, flags }),
            Err(error) => {
                let start = error.span().map_or(0, |span| span.start);
                let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
                Err(ConfigError::Syntax { path, line, message: plainly(error.message().trim()) })
            }
        }
    }

    /// Where a key stands, `path:line: key`, for messages.
    pub fn place_of(&self, key: &str) -> String {
        let sets_key = |line: &str| {
            let rest = line.trim_start().trim_start_matches('"').strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start_matches('"').trim_start().starts_with('='))
        };
        match self.text.lines().position(sets_key) {
            Some(index) => format!("{}:{}: {key}", self.path, index + 1),
            None => format!("{}: {key}", self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_does_not_exist_is_answered_by_the_one_that_was_meant() {
        let many = "`comm`, `jvms`, `pid`, `interval`, `output`, `ship`, `ship-at-end`, `flush`, `keep`";
        for (message, expected) in [
            (
                format!("unknown field `intervall`, expected one of {many}"),
                "unknown key `intervall`: did you mean `interval`?",
            ),
            (format!("unknown field `shipp`, expected one of {many}"), "unknown key `shipp`: did you mean `ship`?"),
            (format!("unknown field `zzz`, expected one of {many}"), "unknown key `zzz`: keys are the long flags of"),
            (
                "unknown field `x`, expected `name` or `main-class`".to_owned(),
                "unknown key `x`: there are `name`, `main-class`",
            ),
            ("invalid type: string".to_owned(), "invalid type: string"),
        ] {
            let plain = plainly(&message);
            assert!(plain.starts_with(expected), "{plain}");
        }
    }
}
