//! Takes secrets out of command lines and of texts that quote them.
//!
//! What is secret follows from names: `-Dpassword=…`, `--token …`, `"api_key": "…"`; from places: user information in URLs
//! and JDBC strings; and from the user's own [`Rule`]s. A marker takes its place, which tells neither its length nor
//! anything else of it. Redacting twice is redacting once, the time is linear in the text's length, and a text without a
//! secret stays as it is. A secret under a name that does not tell is not found.

mod found;
mod names;
mod pairs;
mod rules;
#[cfg(test)]
mod tests;
mod urls;
mod values;

use std::{borrow::Cow, collections::HashSet, str::FromStr, sync::Arc};

pub use self::{
    found::Why,
    rules::{Rule, RuleError},
};
use self::{
    found::{Found, in_order, replaced},
    names::{bare, is_option, is_telling},
    values::Text,
};

/// What stands where a secret was.
pub const MARKER: &str = "[redacted]";

/// A shorter value may stand elsewhere by chance: `true`, `8080`, `admin`.
const MIN_REPEATED_CHARS: usize = 6;
/// With a marker in place of a secret, what is beside it may look like another one. So a text is gone through again, in
/// practice once.
const MAX_ROUNDS: usize = 4;
/// Options whose value is the header of a request.
const HEADER_OPTIONS: [&str; 3] = ["-H", "--header", "--proxy-header"];

/// How much is shown of command lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLines {
    None,
    #[default]
    Redacted,
    Full,
}

impl CommandLines {
    pub const ALL: [Self; 3] = [Self::None, Self::Redacted, Self::Full];

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Redacted => "redacted",
            Self::Full => "full",
        }
    }
}

impl FromStr for CommandLines {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|choice| choice.name() == text).ok_or("not none, redacted or full")
    }
}

/// How command lines, and what quotes them, are redacted.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    pub shown: CommandLines,
    rules: Arc<[Rule]>,
}

/// A secret in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Which word it is in, from 0.
    pub word: usize,
    pub why: Why,
}

/// A command line that was looked through.
#[derive(Clone, Debug, Default)]
pub struct Redacted {
    /// As it is shown.
    pub words: Vec<String>,
    pub secrets: Vec<Secret>,
    /// What was taken out.
    hidden: HashSet<String>,
}

impl Redaction {
    /// Redacts or not, with these rules beside the built-in ones.
    pub fn new(shown: CommandLines, rules: Vec<Rule>) -> Self {
        Self { shown, rules: rules.into() }
    }

    /// The same rules, with another choice of what is shown.
    #[must_use]
    pub fn showing(&self, shown: CommandLines) -> Self {
        Self { shown, rules: Arc::clone(&self.rules) }
    }

    /// A command line, a word per argument, as it is to be shown.
    pub fn words<W: AsRef<str>>(&self, words: &[W]) -> Redacted {
        let as_it_is = || words.iter().map(|word| word.as_ref().to_owned()).collect();
        match self.shown {
            CommandLines::Full => Redacted { words: as_it_is(), ..Redacted::default() },
            CommandLines::None => Redacted { words: Vec::new(), ..self.without_secrets(words) },
            CommandLines::Redacted => self.without_secrets(words),
        }
    }

    fn without_secrets<W: AsRef<str>>(&self, words: &[W]) -> Redacted {
        let mut redacted = self.once(words);
        let mut has_changed = !redacted.secrets.is_empty();
        for _ in 0..MAX_ROUNDS {
            if !has_changed {
                break;
            }
            let again = self.once(&redacted.words);
            has_changed = !again.secrets.is_empty();
            redacted.words = again.words;
            redacted.secrets.extend(again.secrets);
        }
        redacted
    }

    fn once<W: AsRef<str>>(&self, words: &[W]) -> Redacted {
        let mut all: Vec<Vec<Found>> = Vec::with_capacity(words.len());
        let (mut is_value, mut is_header) = (None, false);
        for word in words {
            let word = word.as_ref();
            let of_option = is_value.take().filter(|_| word != "--");
            let is_header_too = is_header || HEADER_OPTIONS.iter().any(|option| word.starts_with(option));
            let mut found = self.find(&Text { text: word, is_argument: true, is_header: is_header_too });
            if let Some(name) = of_option {
                found = in_order(word, vec![Found { range: 0..word.len(), why: Why::Name(name) }]);
            }
            is_value = (is_option(word) && self.tells(bare(word))).then(|| word.to_owned());
            is_header = HEADER_OPTIONS.contains(&word);
            all.push(found);
        }
        let hidden = hidden(words, &all);
        let mut redacted = Redacted { hidden, ..Redacted::default() };
        for (place, (word, mut found)) in words.iter().zip(all).enumerate() {
            let word = word.as_ref();
            if !redacted.hidden.is_empty() {
                found.extend(repeated(word, &redacted.hidden, MIN_REPEATED_CHARS));
                found = in_order(word, found);
            }
            redacted.words.push(replaced(word, &found).into_owned());
            redacted.secrets.extend(found.into_iter().map(|found| Secret { word: place, why: found.why }));
        }
        redacted
    }

    /// A text of any kind, such as a command line whose words are joined. Where a value ends is less clear there than in
    /// words of their own.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.shown {
            CommandLines::Full => Cow::Borrowed(text),
            CommandLines::None | CommandLines::Redacted => self.settled(text, false),
        }
    }

    /// One word of a command line, such as the name of what runs, without secrets.
    pub fn word<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if self.shown == CommandLines::Full {
            return Cow::Borrowed(word);
        }
        self.settled(word, true)
    }

    /// Another text of the process that has this command line, such as what it runs: without secrets, if it has any.
    pub fn named(&self, redacted: &Redacted, text: &str) -> Option<String> {
        let shown = redacted.text(text);
        let shown = self.word(&shown);
        (shown != text).then(|| shown.into_owned())
    }

    fn settled<'a>(&self, text: &'a str, is_argument: bool) -> Cow<'a, str> {
        let mut settled = Cow::Borrowed(text);
        for _ in 0..=MAX_ROUNDS {
            match replaced(&settled, &self.find(&Text { text: &settled, is_argument, is_header: false })) {
                Cow::Owned(next) => settled = Cow::Owned(next),
                Cow::Borrowed(_) => break,
            }
        }
        settled
    }

    /// Why there are secrets in a text.
    pub fn secrets_in(&self, text: &str) -> Vec<Why> {
        let found = self.find(&Text { text, is_argument: false, is_header: false });
        found.into_iter().map(|found| found.why).collect()
    }

    /// A text with the user information of URLs taken out, such as a message that quotes one.
    pub fn urls<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.shown == CommandLines::Full {
            return Cow::Borrowed(text);
        }
        let mut found = Vec::new();
        urls::find(text, |range| found.push(Found { range, why: Why::UserInfo }));
        replaced(text, &in_order(text, found))
    }

    /// Whether a name says that its value is secret.
    pub fn tells(&self, name: &str) -> bool {
        is_telling(name) || self.rules.iter().any(|rule| rule.names(name))
    }

    fn find(&self, text: &Text<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        pairs::find(text, &|name| self.tells(name), |name, range| {
            found.push(Found { range, why: Why::Name(name.to_owned()) });
        });
        urls::find(text.text, |range| found.push(Found { range, why: Why::UserInfo }));
        for (number, rule) in self.rules.iter().enumerate() {
            rule.find(text.text, |range| found.push(Found { range, why: Why::Pattern(number) }));
        }
        in_order(text.text, found)
    }
}

impl Redacted {
    /// Another text of the same process, such as what it runs, as it is shown.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.hidden.contains(text) {
            return Cow::Borrowed(MARKER);
        }
        replaced(text, &in_order(text, repeated(text, &self.hidden, MIN_REPEATED_CHARS).collect()))
    }

    /// A message that may quote words of the command line.
    pub fn message<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        let mut all: Vec<&String> = self.hidden.iter().filter(|hidden| is_long(hidden, MIN_REPEATED_CHARS)).collect();
        // What contains another one goes first.
        all.sort_by_key(|hidden| std::cmp::Reverse(hidden.len()));
        for hidden in all {
            if text.contains(hidden.as_str()) {
                text = Cow::Owned(text.replace(hidden.as_str(), MARKER));
            }
        }
        text
    }
}

/// The texts that are taken out of words, and the parts of them that are secret on their own.
fn hidden<W: AsRef<str>>(words: &[W], all: &[Vec<Found>]) -> HashSet<String> {
    let mut hidden = HashSet::new();
    for (word, found) in words.iter().zip(all) {
        for Found { range, why } in found {
            let value = word.as_ref().get(range.clone()).unwrap_or_default();
            hidden.insert(value.to_owned());
            match why {
                Why::UserInfo => hidden.extend(value.split_once([':', '/']).map(|(_, password)| password.to_owned())),
                // `Bearer …`
                _ => hidden.extend(value.split_once(' ').map(|(_, secret)| secret.to_owned())),
            }
        }
    }
    hidden.remove(MARKER);
    hidden.remove("");
    hidden
}

fn is_long(text: &str, least: usize) -> bool {
    text.chars().nth(least - 1).is_some()
}

/// Where what is hidden stands again: as the whole word, after its first `=`, or between two separators.
fn repeated(word: &str, hidden: &HashSet<String>, least: usize) -> impl Iterator<Item = Found> {
    const SEPARATORS: [char; 12] = ['=', ':', ',', ';', '&', '?', '@', '"', '\'', ' ', '\t', '\n'];
    let is_hidden = |part: &str| is_long(part, least) && hidden.contains(part);
    let mut found = Vec::new();
    if is_hidden(word) {
        found.push(0..word.len());
    } else {
        let after_equals = word.find('=').map(|at| at + 1..word.len());
        found.extend(after_equals.filter(|range| is_hidden(&word[range.clone()])));
        let mut start = 0;
        for part in word.split(SEPARATORS) {
            if is_hidden(part) {
                found.push(start..start + part.len());
            }
            start += part.len() + 1;
        }
    }
    found.into_iter().map(|range| Found { range, why: Why::Repeated })
}
