//! Reads the secret that clients have to show.

use std::{fmt, hint::black_box, path::Path};

use crate::output::secret_file::{self, SecretFileError};

const MAX_BYTES: usize = 4096;

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error(
        "a token is 1 to {MAX_BYTES} visible ASCII characters in one line: write one, e.g. with `openssl rand -hex 32`"
    )]
    Content,
}

impl Token {
    /// Reads the token of a file that only its owner and group may read.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        // With a line break of either kind behind it.
        let bytes = secret_file::read(path, MAX_BYTES + 2)?;
        Self::parse(&bytes).ok_or(TokenError::Content)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let token = bytes.trim_ascii_end();
        let is_token = (1..=MAX_BYTES).contains(&token.len()) && token.iter().all(u8::is_ascii_graphic);
        is_token.then(|| Self(token.to_owned()))
    }

    /// To be shown to somebody else.
    pub fn text(&self) -> &str {
        // It has ASCII characters only.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Whether this is the token. The time it takes depends on the lengths only.
    pub fn is(&self, given: &[u8]) -> bool {
        let differs = self.0.iter().zip(given).fold(0, |differs, (a, b)| black_box(differs | (a ^ b)));
        self.0.len() == given.len() && differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_visible_word() {
        for (text, token) in [("secret\n", Some("secret")), ("", None), ("\n", None), ("a b", None), ("a\nb", None)] {
            assert_eq!(Token::parse(text.as_bytes()), token.map(|token| Token(token.into())), "{text:?}");
        }
        assert!(Token::parse(&[b'a'; MAX_BYTES]).is_some() && Token::parse(&[b'a'; MAX_BYTES + 1]).is_none());
    }

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token(b"secret".to_vec());
        for (given, is_it) in [("secret", true), ("secre", false), ("secrets", false), ("Secret", false), ("", false)] {
            assert_eq!(token.is(given.as_bytes()), is_it, "{given:?}");
        }
    }
}
