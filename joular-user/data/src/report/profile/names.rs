//! Matches names and labels that conditions are about.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::filter::FilterError;
use crate::model::{container, target_text::TargetText};

/// Names, exact or with `*`, `?` and `[…]`. None allows everything.
#[derive(Clone, Debug, Default)]
pub struct Names(Option<Patterns>);

#[derive(Clone, Debug)]
struct Patterns {
    /// As they were given: `[unresolved]` is a name, too.
    exact: Vec<String>,
    set: GlobSet,
}

impl Names {
    /// # Errors
    /// If one is not a pattern.
    pub fn parse(names: &[String]) -> Result<Self, FilterError> {
        if names.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for text in names {
            let failed = |error: globset::Error| FilterError::Pattern { text: text.clone(), cause: error.to_string() };
            set.add(Glob::new(text).map_err(failed)?);
        }
        let failed = |error: globset::Error| FilterError::Pattern { text: names.join(","), cause: error.to_string() };
        Ok(Self(Some(Patterns { exact: names.to_vec(), set: set.build().map_err(failed)? })))
    }

    pub const fn allow_all(&self) -> bool {
        self.0.is_none()
    }

    pub fn allow(&self, name: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|patterns| patterns.exact.iter().any(|exact| exact == name) || patterns.set.is_match(name))
    }

    /// The names, if none of them is a pattern; `None` also if everything is allowed.
    pub(super) fn literal(&self) -> Option<&[String]> {
        let patterns = self.0.as_ref()?;
        let is_literal = |name: &String| !name.contains(['*', '?', '[', ']', '{', '}', '\\']);
        patterns.exact.iter().all(is_literal).then_some(patterns.exact.as_slice())
    }

    /// Whether this very name was given.
    pub(super) fn names(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|patterns| patterns.exact.iter().any(|exact| exact == name))
    }

    /// What is not known has no name that could be meant.
    pub(super) fn allow_known(&self, name: Option<&TargetText>) -> bool {
        self.allow_all() || name.is_some_and(|name| self.allow(name.raw()))
    }

    /// A container is also meant by its id's first digits.
    pub(super) fn allow_container(&self, id: Option<&TargetText>) -> bool {
        let is_short = |id: &TargetText| {
            let patterns = self.0.iter().flat_map(|patterns| &patterns.exact);
            patterns.into_iter().any(|exact| container::is_short_for(exact, id.raw()))
        };
        self.allow_known(id) || id.is_some_and(is_short)
    }
}

/// Labels by key, each with the values that are wanted. Different keys must all match.
#[derive(Clone, Debug, Default)]
pub struct Labels(BTreeMap<String, Names>);

impl Labels {
    /// Reads `KEY=VALUE`, where the value may be a pattern.
    ///
    /// # Errors
    /// If there is no key, or a value is not a pattern.
    pub fn parse(texts: &[String]) -> Result<Self, FilterError> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in texts {
            let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
            let (key, value) = pair.ok_or_else(|| FilterError::Label { text: text.clone() })?;
            values.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        values.into_iter().map(|(key, values)| Ok((key, Names::parse(&values)?))).collect::<Result<_, _>>().map(Self)
    }

    /// Whether no label is asked for.
    pub fn allow_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels are wanted, of which `value` gives those of a key.
    pub fn allow<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, values)| value(key).is_some_and(|value| values.allow(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::label;

    #[test]
    fn names_are_exact_or_patterns_and_may_have_brackets() {
        for (pattern, name, expected) in [
            ("java", "java", true),
            ("java", "javac", false),
            ("orders-*", "orders-7", true),
            ("com.acme.*", "com.acme.shop.Cart.add", true),
            ("[unresolved]", "[unresolved]", true),
            ("[no sample]", "[no sample]", true),
            ("worker-[0-9]", "worker-7", true),
        ] {
            let names = Names::parse(&[pattern.to_owned()]).unwrap();
            assert_eq!(names.allow(name), expected, "{pattern} {name}");
        }
        assert!(Names::default().allow("anything"));
    }

    #[test]
    fn values_of_a_label_are_alternatives_and_different_labels_must_all_match() {
        let labels = ["app=checkout", "tier=front", "empty="].map(TargetText::from);
        for (texts, expected) in [
            (&[][..], true),
            (&["app=checkout"], true),
            (&["app=check*", "tier=front"], true),
            (&["app=orders", "app=checkout"], true),
            (&["app=checkout", "tier=back"], false),
            (&["app="], false),
            (&["empty="], true),
            (&["zone=*"], false),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(Labels::parse(&texts).unwrap().allow(|key| label(&labels, key)), expected, "{texts:?}");
        }
        for text in ["app", "=x"] {
            assert_eq!(Labels::parse(&[text.to_owned()]).unwrap_err(), FilterError::Label { text: text.to_owned() });
        }
    }
}
