//! Matches regular languages whose letters are methods.

use std::collections::BTreeSet;

/// Root first.
#[derive(Clone, Debug)]
pub enum Language {
    /// `package.Class.method`; `*` stands for any text.
    Method(String),
    Sequence(Vec<Self>),
    Either(Vec<Self>),
    /// At least and at most so often.
    Times(Box<Self>, usize, usize),
}

/// How a path relates to a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// One of its words.
    Word,
    /// The beginning of a word: the thread was on its way.
    Prefix,
    /// Neither.
    No,
}

impl Language {
    pub fn method(pattern: &str) -> Self {
        Self::Method(pattern.to_owned())
    }

    pub fn optional(self) -> Self {
        self.times(0, 1)
    }

    pub fn any_number(self) -> Self {
        self.times(0, usize::MAX)
    }

    pub fn times(self, least: usize, most: usize) -> Self {
        Self::Times(Box::new(self), least, most)
    }

    pub fn matches(&self, path: &[&str]) -> Match {
        let mut is_prefix = false;
        let ends = self.ends(path, &BTreeSet::from([0]), &mut is_prefix);
        match (ends.contains(&path.len()), is_prefix) {
            (true, _) => Match::Word,
            (false, true) => Match::Prefix,
            (false, false) => Match::No,
        }
    }

    /// Whether the method can stand on any of its paths.
    pub fn has(&self, method: &str) -> bool {
        match self {
            Self::Method(pattern) => fits(pattern, method),
            Self::Sequence(parts) | Self::Either(parts) => parts.iter().any(|part| part.has(method)),
            Self::Times(part, _, most) => *most > 0 && part.has(method),
        }
    }

    /// Where words that begin at one of `starts` can end. `is_prefix` tells
    /// whether the path ended while a word could still go on.
    fn ends(&self, path: &[&str], starts: &BTreeSet<usize>, is_prefix: &mut bool) -> BTreeSet<usize> {
        match self {
            Self::Method(pattern) => {
                *is_prefix |= starts.contains(&path.len());
                let fitting = starts.iter().filter(|at| path.get(**at).is_some_and(|method| fits(pattern, method)));
                fitting.map(|at| at + 1).collect()
            }
            Self::Sequence(parts) => {
                parts.iter().fold(starts.clone(), |starts, part| part.ends(path, &starts, is_prefix))
            }
            Self::Either(parts) => parts.iter().flat_map(|part| part.ends(path, starts, is_prefix)).collect(),
            Self::Times(part, least, most) => {
                let mut ends = if *least == 0 { starts.clone() } else { BTreeSet::new() };
                let mut starts = starts.clone();
                // A part that takes nothing cannot go on for ever: paths are finite.
                for round in 1..=(*most).min(path.len() + 1).max(*least) {
                    starts = part.ends(path, &starts, is_prefix);
                    if starts.is_empty() {
                        break;
                    }
                    if round >= *least {
                        ends.extend(&starts);
                    }
                }
                ends
            }
        }
    }
}

/// Methods, one after the other.
pub fn sequence(parts: impl IntoIterator<Item = Language>) -> Language {
    Language::Sequence(parts.into_iter().collect())
}

pub fn either(parts: impl IntoIterator<Item = Language>) -> Language {
    Language::Either(parts.into_iter().collect())
}

/// Any number of methods that fit any of these.
pub fn any_of(patterns: &[&str]) -> Language {
    either(patterns.iter().map(|pattern| Language::method(pattern))).any_number()
}

fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    rest.is_empty() || text.char_indices().any(|(at, _)| fits(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &Language, path: &str, expected: Match) {
        let path: Vec<&str> = path.split_whitespace().collect();
        assert_eq!(language.matches(&path), expected, "{path:?}");
    }

    #[test]
    fn exactly_so_many_frames_and_no_other_number() {
        let language = sequence([Language::method("run"), Language::method("f").times(3, 3), Language::method("leaf")]);
        for (path, expected) in [
            ("run f f f leaf", Match::Word),
            ("run f f f", Match::Prefix),
            ("run f", Match::Prefix),
            ("run f f leaf", Match::No),
            ("run f f f f leaf", Match::No),
            ("f f f leaf", Match::No),
            ("run f f f leaf leaf", Match::No),
            ("run f g f leaf", Match::No),
        ] {
            check(&language, path, expected);
        }
    }

    #[test]
    fn branches_keep_apart_what_belongs_together() {
        let of = |name: &str| {
            sequence([Language::method(&format!("{name}.step")), Language::method(&format!("{name}.leaf"))])
        };
        let language = either([of("A"), of("B")]);
        check(&language, "A.step A.leaf", Match::Word);
        check(&language, "A.step B.leaf", Match::No);
        assert!(language.has("B.leaf") && !language.has("C.leaf"));
    }

    #[test]
    fn any_number_of_named_methods_and_no_others() {
        let language = sequence([any_of(&["java.lang.invoke.*", "jdk.*.invoke"]), Language::method("target")]);
        check(&language, "target", Match::Word);
        check(&language, "java.lang.invoke.A.b jdk.internal.X.invoke target", Match::Word);
        check(&language, "java.lang.String.x target", Match::No);
        check(&language, "jdk.internal.X.run target", Match::No);
        check(&any_of(&["a"]).any_number(), "a a a", Match::Word);
    }
}
