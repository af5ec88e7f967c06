//! Reads selectors of labels, `{a="b", c!="d", e=~"f.*", g!~"h"}`, as Prometheus has them.
//!
//! All matchers must hold. A regular expression must match a whole value. A label that something does not have counts as
//! empty, so `{pod=""}` selects what is in no pod. Values are written as Go writes texts: in double quotes with escapes, or
//! in backquotes as they are.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// More matchers than a person writes, and few enough to build an expression of each.
const MOST_MATCHERS: usize = 64;
/// Of a compiled expression.
const MOST_REGEX_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the selector is not one at its character {at}: {what}")]
pub struct SelectorError {
    /// From 1 on.
    at: usize,
    what: String,
}

/// Conditions on labels. The default has none.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    matchers: Vec<Matcher>,
}

#[derive(Clone, Debug)]
pub struct Matcher {
    pub label: String,
    condition: Condition,
    is_negated: bool,
}

#[derive(Clone, Debug)]
enum Condition {
    Is(String),
    Matches(Regex),
}

impl Matcher {
    /// Whether a value is allowed; empty if there is none.
    pub fn allows(&self, value: &str) -> bool {
        let holds = match &self.condition {
            Condition::Is(wanted) => wanted == value,
            Condition::Matches(regex) => regex.is_match(value),
        };
        holds != self.is_negated
    }

    /// The only value that is allowed, if there is one.
    pub fn only(&self) -> Option<&str> {
        match &self.condition {
            Condition::Is(value) if !self.is_negated => Some(value),
            _ => None,
        }
    }
}

impl Selector {
    /// # Errors
    /// If the text is not a selector. One without any character selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut reader = Reader { text, at: 0 };
        reader.skip_spaces();
        if reader.rest().is_empty() {
            return Ok(Self::default());
        }
        reader.expect("{")?;
        let mut matchers = Vec::new();
        loop {
            reader.skip_spaces();
            if reader.takes("}") {
                break;
            }
            if matchers.len() == MOST_MATCHERS {
                return Err(reader.error(format!("there are more than {MOST_MATCHERS} matchers")));
            }
            matchers.push(reader.matcher()?);
            reader.skip_spaces();
            if !reader.takes(",") {
                reader.expect("}")?;
                break;
            }
        }
        reader.skip_spaces();
        if !reader.rest().is_empty() {
            return Err(reader.error("nothing may stand behind the brace".to_owned()));
        }
        Ok(Self { matchers })
    }

    /// What is said of a label.
    pub fn of<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a Matcher> {
        self.matchers.iter().filter(move |matcher| matcher.label == label)
    }

    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Where it is, in bytes; always between two characters.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, what: String) -> SelectorError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        SelectorError { at: before.chars().count() + 1, what }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_here = self.rest().starts_with(token);
        self.at += if is_here { token.len() } else { 0 };
        is_here
    }

    fn expect(&mut self, token: &str) -> Result<(), SelectorError> {
        if self.takes(token) { Ok(()) } else { Err(self.error(format!("there should be {token}"))) }
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let label = self.label()?;
        self.skip_spaces();
        // Longer ones first.
        let operators = [("=~", true, false), ("!~", true, true), ("!=", false, true), ("=", false, false)];
        let found = operators.into_iter().find(|(token, ..)| self.takes(token));
        let Some((_, is_regex, is_negated)) = found else {
            return Err(self.error("there should be one of =, !=, =~, !~".to_owned()));
        };
        self.skip_spaces();
        let begin = self.at;
        let value = self.value()?;
        if !is_regex {
            return Ok(Matcher { label, condition: Condition::Is(value), is_negated });
        }
        let regex = whole(&value).map_err(|error| {
            self.at = begin;
            self.error(format!("the regular expression cannot be used: {}", reason(&error)))
        })?;
        Ok(Matcher { label, condition: Condition::Matches(regex), is_negated })
    }

    fn label(&mut self) -> Result<String, SelectorError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let label = rest.get(..length).unwrap_or_default();
        if label.is_empty() || label.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.error("there should be the name of a label".to_owned()));
        }
        self.at += length;
        Ok(label.to_owned())
    }

    fn value(&mut self) -> Result<String, SelectorError> {
        if self.takes("`") {
            let rest = self.rest();
            let Some((value, _)) = rest.split_once('`') else {
                return Err(self.error("the value has no end".to_owned()));
            };
            self.at += value.len() + 1;
            return Ok(value.to_owned());
        }
        self.expect("\"")?;
        let mut bytes = Vec::new();
        let mut of_char = [0; 4];
        loop {
            match self.next() {
                None => return Err(self.error("the value has no end".to_owned())),
                Some('"') => break,
                Some('\\') => self.escaped(&mut bytes)?,
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut of_char).as_bytes()),
            }
        }
        String::from_utf8(bytes).map_err(|_| self.error("the value is not UTF-8".to_owned()))
    }

    /// What stands for itself behind a backslash: a character, or a byte by its number.
    fn escaped(&mut self, bytes: &mut Vec<u8>) -> Result<(), SelectorError> {
        let mut of_char = [0; 4];
        let unknown = |reader: &Self| reader.error("the character behind the backslash means nothing".to_owned());
        let c = match self.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(c @ ('\\' | '"' | '\'')) => c,
            Some('x') => {
                bytes.push(u8::try_from(self.digits(2, 16)?).map_err(|_| unknown(self))?);
                return Ok(());
            }
            Some('0'..='7') => {
                self.at -= 1;
                bytes.push(u8::try_from(self.digits(3, 8)?).map_err(|_| unknown(self))?);
                return Ok(());
            }
            Some('u') => char::from_u32(self.digits(4, 16)?).ok_or_else(|| unknown(self))?,
            Some('U') => char::from_u32(self.digits(8, 16)?).ok_or_else(|| unknown(self))?,
            _ => return Err(unknown(self)),
        };
        bytes.extend_from_slice(c.encode_utf8(&mut of_char).as_bytes());
        Ok(())
    }

    /// A number of so many digits.
    fn digits(&mut self, number: usize, radix: u32) -> Result<u32, SelectorError> {
        let text = self.rest().get(..number).filter(|text| text.chars().all(|c| c.is_digit(radix)));
        let value = text.and_then(|text| u32::from_str_radix(text, radix).ok());
        let value = value.ok_or_else(|| self.error(format!("there should be {number} digits")))?;
        self.at += number;
        Ok(value)
    }
}

/// An expression that matches whole values.
fn whole(text: &str) -> Result<Regex, regex::Error> {
    let build = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(MOST_REGEX_BYTES)
            .dfa_size_limit(MOST_REGEX_BYTES)
            .dot_matches_new_line(true)
            .build()
    };
    // `a)|(b` is no expression, but would be one within brackets.
    build(text)?;
    build(&format!(r"\A(?:{text})\z"))
}

/// In one line: messages of syntax show the expression over several.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!("it would take more than {limit} bytes"),
        error => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;
