//! Reads the rules of who may see which part of a data set.

use std::{fs::File, io::Read as _, path::Path};

use joular_data::report::profile::{Access, Allowance, FilterError, Names};
use serde::Deserialize;

use super::ConfigError;

/// No file of rules is larger.
const MOST_BYTES: u64 = 1 << 20;

/// Who may see what. Nobody may see more.
#[derive(Clone, Debug, Default)]
pub struct AccessRules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    group: Option<String>,
    users: Vec<String>,
    /// `None`: everything.
    allowance: Option<Allowance>,
}

/// What somebody may see.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    pub access: Access,
    /// Those who may see the same have the same one, and others have not.
    pub key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    access: Vec<WrittenRule>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRule {
    group: Option<String>,
    users: Vec<String>,
    services: Vec<String>,
    hosts: Vec<String>,
    namespaces: Vec<String>,
    everything: bool,
}

impl AccessRules {
    /// # Errors
    /// If the file cannot be read, is not TOML, or a rule does not say who may see what.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |cause: String| ConfigError::Invalid {
            place: "--access".to_owned(),
            cause: format!("{}: {cause}", path.display()),
        };
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
        let length = read.map_err(|error| failed(error.to_string()))?;
        if length as u64 > MOST_BYTES {
            return Err(failed(format!("it is larger than {MOST_BYTES} bytes")));
        }
        Self::parse(&text).map_err(failed)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let numbered = written.access.into_iter().enumerate();
        numbered.map(|(index, rule)| rule.read().map_err(|cause| format!("rule {}: {cause}", index + 1))).collect()
    }

    /// What a user may see who is in these groups: what any rule allows that names the user or a group.
    pub fn sight(&self, user: &str, groups: &[&str]) -> Sight {
        let names_them = |rule: &Rule| {
            rule.users.iter().any(|one| one == user)
                || rule.group.as_deref().is_some_and(|group| groups.contains(&group))
        };
        let own: Vec<(usize, &Rule)> = self.0.iter().enumerate().filter(|(_, rule)| names_them(rule)).collect();
        if own.iter().any(|(_, rule)| rule.allowance.is_none()) {
            return Sight::default();
        }
        let numbers: Vec<String> = own.iter().map(|(index, _)| index.to_string()).collect();
        let allowances = own.iter().filter_map(|(_, rule)| rule.allowance.clone());
        Sight { access: Access::of(allowances), key: format!("rules {}", numbers.join(",")) }
    }
}

impl FromIterator<Rule> for AccessRules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl WrittenRule {
    fn read(self) -> Result<Rule, String> {
        let names = |names: &[String]| Names::parse(names).map_err(|error: FilterError| error.to_string());
        if self.group.as_ref().is_none_or(String::is_empty) && self.users.is_empty() {
            return Err("it is about nobody: add group = \"…\" or users = [\"…\"]".to_owned());
        }
        let has_conditions = [&self.services, &self.hosts, &self.namespaces].iter().any(|names| !names.is_empty());
        let allowance = match (self.everything, has_conditions) {
            (true, false) => None,
            (false, true) => Some(Allowance {
                services: names(&self.services)?,
                hosts: names(&self.hosts)?,
                namespaces: names(&self.namespaces)?,
            }),
            (true, true) => return Err("it allows everything, and a part: make two rules of it".to_owned()),
            (false, false) => {
                return Err("it allows nothing: add services, hosts or namespaces, or everything = true".to_owned());
            }
        };
        Ok(Rule { group: self.group, users: self.users, allowance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_have_what_any_of_their_rules_allows() {
        let rules = AccessRules::parse(
            "[[access]]\ngroup = \"team-a\"\nservices = [\"shop\", \"a-*\"]\n\
             [[access]]\nusers = [\"ann\", \"bob\"]\nhosts = [\"web-*\"]\nnamespaces = [\"sales\"]\n\
             [[access]]\ngroup = \"sre\"\neverything = true\n",
        )
        .unwrap();
        for (user, groups, key) in [
            ("ann", &[][..], "rules 1"),
            ("ann", &["team-a"], "rules 0,1"),
            ("cid", &["team-a", "other"], "rules 0"),
            ("cid", &["sre", "team-a"], ""),
            ("cid", &["team-b"], "rules "),
            ("team-a", &["ann"], "rules "),
            ("", &[""], "rules "),
        ] {
            let sight = rules.sight(user, groups);
            assert_eq!(sight.key, key, "{user} {groups:?}");
            assert_eq!(sight.access.is_everything(), key.is_empty(), "{user} {groups:?}");
            assert_eq!(sight.access.is_nothing(), key == "rules ", "{user} {groups:?}");
        }
        assert!(AccessRules::parse("").unwrap().sight("ann", &[]).access.is_nothing(), "without rules nobody sees any");
    }

    #[test]
    fn a_rule_that_does_not_say_who_or_what_is_refused() {
        for (text, words) in [
            ("[[access]]\nservices = [\"shop\"]", "rule 1: it is about nobody"),
            ("[[access]]\ngroup = \"\"\nservices = [\"shop\"]", "rule 1: it is about nobody"),
            ("[[access]]\ngroup = \"a\"", "rule 1: it allows nothing"),
            ("[[access]]\ngroup = \"a\"\nservices = []", "rule 1: it allows nothing"),
            ("[[access]]\ngroup = \"a\"\neverything = true\nhosts = [\"x\"]", "rule 1: it allows everything, and"),
            ("[[access]]\ngroup = \"a\"\nservice = [\"shop\"]", "unknown field `service`"),
            ("[[access]]\ngroup = \"a\"\nservices = \"shop\"", "invalid type"),
            ("[[access]]\ngroup = \"a\"\nservices = [\"a[\"]", "rule 1: 'a[' is not a pattern"),
            ("[access]\n", "invalid type"),
        ] {
            let error = AccessRules::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
