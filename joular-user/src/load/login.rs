//! Knows as whom ClickHouse is asked: by a file, or by the environment, and never by an argument.

use std::{env, fmt, path::Path};

use super::LoadingError;
use crate::output::secret_file;

const MAX_BYTES: usize = 4096;
const USER: &str = "CLICKHOUSE_USER";
const PASSWORD: &str = "CLICKHOUSE_PASSWORD";

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Of the file if one is named, else of the environment. `None`: the server's default user.
    pub(super) fn of(file: Option<&Path>) -> Result<Option<Self>, LoadingError> {
        let Some(path) = file else {
            let [user, password] = [USER, PASSWORD].map(|name| env::var(name).unwrap_or_default());
            return Ok(Self::of_parts(user, password));
        };
        let failed = |source| LoadingError::UserFile { path: path.to_owned(), source };
        let bytes = secret_file::read(path, MAX_BYTES).map_err(failed)?;
        let login = String::from_utf8(bytes).ok().and_then(|text| Self::parse(&text));
        login.map(Some).ok_or_else(|| LoadingError::User(path.display().to_string()))
    }

    fn of_parts(user: String, password: String) -> Option<Self> {
        let user = if user.is_empty() && !password.is_empty() { "default".to_owned() } else { user };
        (!user.is_empty()).then_some(Self { user, password })
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.trim_end_matches(['\r', '\n']);
        let (user, password) = line.split_once(':')?;
        let is_fit = |text: &str| text.chars().all(|c| !c.is_control());
        (!user.is_empty() && is_fit(user) && is_fit(password))
            .then(|| Self { user: user.to_owned(), password: password.to_owned() })
    }

    pub(super) fn has_password(&self) -> bool {
        !self.password.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_user_and_a_password_which_may_have_colons() {
        let login = Login::parse("loader:a:b c\n").unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("loader", "a:b c"));
        assert!(!format!("{login:?}").contains("a:b"));
        for text in ["", "loader", ":x", "a:b\nc:d", "a\t:b"] {
            assert_eq!(Login::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_password_alone_is_that_of_the_default_user() {
        let of = |user: &str, password: &str| Login::of_parts(user.to_owned(), password.to_owned());
        assert_eq!(of("", ""), None);
        assert_eq!(of("", "x").unwrap().user, "default");
        assert!(!of("a", "").unwrap().has_password());
    }
}
