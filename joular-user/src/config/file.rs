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
                Err(ConfigError::Syntax { path, line, message: error.message().trim().to_owned() })
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
