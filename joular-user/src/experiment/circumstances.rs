//! Says what all runs of an experiment must have in common, so that one which goes on later can tell whether they do.

use std::collections::{BTreeMap, BTreeSet};

use joular_data::redact::{CommandLines, Redaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Under what an experiment's runs are measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circumstances {
    pub host: String,
    pub cpu_model: String,
    pub online_cpus: u32,
    pub kernel: String,
    /// Of joular-bpf.
    pub version: String,
    /// Options that change what is measured, by their names, but for those that have their default.
    pub options: BTreeMap<String, Value>,
}

impl Circumstances {
    /// The same, with options as they are to be shown.
    #[must_use]
    pub fn redacted(mut self, redaction: &Redaction) -> Self {
        if redaction.shown == CommandLines::Full {
            return self;
        }
        for (name, value) in &mut self.options {
            let texts: Vec<&mut String> = match value {
                Value::String(text) => vec![text],
                Value::Array(values) => values.iter_mut().filter_map(text_of).collect(),
                _ => Vec::new(),
            };
            for text in texts {
                // As it is typed, in two words.
                let shown = redaction.showing(CommandLines::Redacted).words(&[format!("--{name}"), text.clone()]).words;
                *text = shown.into_iter().nth(1).unwrap_or_default();
            }
        }
        self
    }

    /// The first thing that differs, in words for people.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let facts = [
            ("the host", self.host != other.host),
            ("the processor", (&self.cpu_model, self.online_cpus) != (&other.cpu_model, other.online_cpus)),
            ("the kernel", self.kernel != other.kernel),
            ("the version of joular-bpf", self.version != other.version),
        ];
        let fact = facts.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what.to_owned());
        let names: BTreeSet<&String> = self.options.keys().chain(other.options.keys()).collect();
        let option = names.into_iter().find(|name| self.options.get(*name) != other.options.get(*name));
        fact.or_else(|| option.map(|name| format!("--{name}")))
    }
}

const fn text_of(value: &mut Value) -> Option<&mut String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_options_are_not_kept() {
        let options =
            [("otlp", "http://u:pw@h".into()), ("mark", serde_json::json!(["token=x"])), ("user", "me".into())];
        let options = options.map(|(name, value): (&str, Value)| (name.to_owned(), value));
        let one = Circumstances { options: options.into(), ..Default::default() };
        let shown = one.clone().redacted(&Redaction::default());
        let text = serde_json::to_string(&shown.options).unwrap();
        assert_eq!(text, r#"{"mark":["token=[redacted]"],"otlp":"http://[redacted]@h","user":"me"}"#);
        assert_eq!(one.clone().redacted(&Redaction::default().showing(CommandLines::Full)), one);
    }

    #[test]
    fn what_differs_first_is_named() {
        let one =
            Circumstances { host: "a".into(), options: [("frequency".into(), 99.into())].into(), ..Default::default() };
        let with = |name: &str, value: Value| {
            let mut other = one.clone();
            other.options.insert(name.to_owned(), value);
            other
        };
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&with("frequency", 199.into())).as_deref(), Some("--frequency"));
        assert_eq!(with("user", "me".into()).difference(&one).as_deref(), Some("--user"));
        let other_kernel = Circumstances { kernel: "6.1".into(), ..with("user", "me".into()) };
        assert_eq!(one.difference(&other_kernel).as_deref(), Some("the kernel"));
        let fewer = Circumstances { online_cpus: 2, ..one.clone() };
        assert_eq!(one.difference(&fewer).as_deref(), Some("the processor"));
    }
}
