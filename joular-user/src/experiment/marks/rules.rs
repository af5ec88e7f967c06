//! Finds marks in lines of output, by patterns that the user gave.
//!
//! A named group of a pattern gives the name of the phase or event; others become attributes. Patterns take time in
//! proportion to a line's length, whatever they are and whatever the line is.

use joular_data::events::MarkKind;
use regex::bytes::{Captures, Regex};

use super::said::{MAX_LINE_BYTES, MAX_NAME_BYTES, Said};

/// The group that gives the name, if there are several.
const NAME_GROUP: &str = "name";

#[derive(Debug, thiserror::Error)]
#[error("'{pattern}' is not a pattern: {cause}")]
pub struct RuleError {
    pattern: String,
    cause: String,
}

/// Patterns, each with what a match says.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<(MarkKind, Regex)>);

impl Rules {
    /// Patterns of a kind.
    ///
    /// # Errors
    /// If one cannot be understood.
    pub fn new(kind: MarkKind, patterns: &[String]) -> Result<Self, RuleError> {
        let compiled = |pattern: &String| {
            let refused = |error: regex::Error| RuleError { pattern: pattern.clone(), cause: cause(&error) };
            Ok((kind, Regex::new(pattern).map_err(refused)?))
        };
        patterns.iter().map(compiled).collect::<Result<_, _>>().map(Self)
    }

    /// These, and others behind them.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a line says, in the order of the rules.
    pub(super) fn said(&self, line: &[u8]) -> impl Iterator<Item = Said> {
        self.0.iter().filter_map(move |(kind, pattern)| Some(said(*kind, pattern, &pattern.captures(line)?)))
    }
}

/// The last line of an error is its cause; the lines before it draw the pattern.
fn cause(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

fn said(kind: MarkKind, pattern: &Regex, matched: &Captures<'_>) -> Said {
    let groups = || pattern.capture_names().flatten();
    let name_group = groups().find(|group| *group == NAME_GROUP).or_else(|| groups().next());
    let text = |group: &str| Some(shortened(matched.name(group)?.as_bytes(), MAX_NAME_BYTES));
    let name = match name_group {
        Some(group) => text(group),
        // An end without a name ends what began last.
        None if kind == MarkKind::End => None,
        None if kind == MarkKind::Begin => Some("phase".to_owned()),
        None => matched.get(0).map(|whole| shortened(whole.as_bytes(), MAX_NAME_BYTES)),
    };
    let others = groups().filter(|group| Some(*group) != name_group);
    let pairs: Vec<String> = others.filter_map(|group| Some(format!("{group}={}", text(group)?))).collect();
    let attributes = shortened(pairs.join(" ").as_bytes(), MAX_LINE_BYTES);
    Said { kind, name: name.map(Into::into), attributes: (!attributes.is_empty()).then(|| attributes.into()) }
}

/// At most so many bytes of a text, and no part of a character.
fn shortened(text: &[u8], most: usize) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(begin: &str, end: &str, event: &str) -> Rules {
        let of = |kind, pattern: &str| Rules::new(kind, &[pattern.to_owned()]).unwrap();
        of(MarkKind::End, end).and(of(MarkKind::Begin, begin)).and(of(MarkKind::Event, event))
    }

    /// What a line says: `begin load [attributes]`.
    fn shown(rules: &Rules, line: &str) -> Vec<String> {
        let text = |said: Said| {
            let parts = [said.name, said.attributes].into_iter().flatten().map(|part| format!(" {part}"));
            format!("{}{}", said.kind.name(), parts.collect::<String>())
        };
        rules.said(line.as_bytes()).map(text).collect()
    }

    #[test]
    fn groups_name_phases_and_events() {
        let rules = rules("^=== (?<phase>\\w+)", "^done (?<phase>\\w+)", "^took (?<ms>\\d+) ms at (?<name>\\S+)");
        assert_eq!(shown(&rules, "=== load ==="), ["begin load"]);
        assert_eq!(shown(&rules, "done load"), ["end load"]);
        assert_eq!(shown(&rules, "took 12 ms at disk"), ["event disk ms=12"]);
        assert!(shown(&rules, "load ===").is_empty());
    }

    #[test]
    fn without_groups_an_end_is_of_what_began_last_and_an_event_is_what_matched() {
        let rules = rules("start", "stop", "GC\\(\\d+\\)");
        assert_eq!(shown(&rules, "start"), ["begin phase"]);
        assert_eq!(shown(&rules, "stop, then start"), ["end", "begin phase"]);
        assert_eq!(shown(&rules, "[info] GC(7) Pause"), ["event GC(7)"]);
    }

    #[test]
    fn what_lines_say_is_bounded_and_need_not_be_text() {
        let rules = rules("(?<a>.+)", "x{100}", "never");
        assert_eq!(shown(&rules, &"é".repeat(500))[0].len(), "begin ".len() + MAX_NAME_BYTES);
        assert_eq!(rules.said(b"\xff\xfe").count(), 0, "no characters");
    }

    #[test]
    fn what_is_no_pattern_is_refused_and_what_is_slow_elsewhere_is_not() {
        let refused = Rules::new(MarkKind::Begin, &["a(".to_owned()]).unwrap_err().to_string();
        assert!(refused.starts_with("'a(' is not a pattern: ") && !refused.contains('\n'), "{refused}");
        let slow = Rules::new(MarkKind::Begin, &["^(a+)+$".to_owned()]).unwrap();
        let line = format!("{}b", "a".repeat(60_000));
        assert_eq!(slow.said(line.as_bytes()).count(), 0);
    }
}
