//! Defines what users add to what is secret.

use std::ops::Range;

use globset::{GlobBuilder, GlobMatcher};
use regex::Regex;
use thiserror::Error;

use super::MARKER;

/// What is secret beside what is built in.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Values under names that match, in any case. Names have no dashes before them.
    Name(GlobMatcher),
    /// What matches: of a pattern with groups, the groups; else all of it.
    Pattern(Regex),
}

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    #[error("a name cannot be empty")]
    Empty,
    #[error("not a pattern: {0}")]
    Name(String),
    #[error("not a regular expression: {0}")]
    Pattern(String),
    #[error("it matches the empty text, so it would match everywhere")]
    MatchesNothing,
}

impl Rule {
    /// By names, with `*`, `?`, `[…]` and `{a,b}`.
    ///
    /// # Errors
    /// If the text is not such a pattern.
    pub fn name(text: &str) -> Result<Self, RuleError> {
        let text = text.trim_start_matches('-');
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        let glob = GlobBuilder::new(text).case_insensitive(true).build();
        let glob = glob.map_err(|error| RuleError::Name(error.kind().to_string()))?;
        Ok(Self::Name(glob.compile_matcher()))
    }

    /// By a regular expression.
    ///
    /// # Errors
    /// If the text is none, or matches the empty text.
    pub fn pattern(text: &str) -> Result<Self, RuleError> {
        let pattern = Regex::new(text).map_err(|error| {
            let text = error.to_string();
            RuleError::Pattern(text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
        })?;
        if pattern.is_match("") { Err(RuleError::MatchesNothing) } else { Ok(Self::Pattern(pattern)) }
    }

    pub(super) fn names(&self, name: &str) -> bool {
        matches!(self, Self::Name(glob) if glob.is_match(name))
    }

    /// Adds what matches a pattern. What is redacted already matches none.
    pub(super) fn find(&self, text: &str, mut add: impl FnMut(Range<usize>)) {
        let Self::Pattern(pattern) = self else { return };
        let mut start = 0;
        for part in text.split(MARKER) {
            for captures in pattern.captures_iter(part) {
                let groups = usize::from(captures.len() > 1)..captures.len();
                for group in groups.filter_map(|group| captures.get(group)) {
                    add(start + group.start()..start + group.end());
                }
            }
            start += part.len() + MARKER.len();
        }
    }
}
