//! Names services by rules of the configuration file.

use std::sync::{Arc, Mutex, PoisonError};

use joular_data::{
    events::{ProcessInfo, Runtime},
    model::target_text::TargetText,
};

use crate::procs::{
    places,
    selection::{LabelPattern, NamePattern},
};

/// Names a service. It holds for processes that meet all its conditions.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: TargetText,
    pub version: Option<TargetText>,
    pub conditions: Vec<Condition>,
}

/// A condition on a process.
#[derive(Clone, Debug)]
pub enum Condition {
    Comm(NamePattern),
    MainClass(NamePattern),
    Cgroup(NamePattern),
    Container(NamePattern),
    Unit(NamePattern),
    /// Kubernetes' namespace of the pod.
    Namespace(NamePattern),
    Label(LabelPattern),
    /// The arguments, one space between two.
    CommandLine(NamePattern),
}

impl Condition {
    fn holds(&self, info: &ProcessInfo) -> bool {
        let is = |pattern: &NamePattern, text: &Option<TargetText>| {
            text.as_ref().is_some_and(|text| pattern.matches(text.raw()))
        };
        match self {
            Self::Comm(pattern) => pattern.matches(info.comm.raw()),
            Self::MainClass(pattern) => {
                matches!(&info.runtime, Runtime::Jvm { main_class, .. } if is(pattern, main_class))
            }
            Self::Cgroup(pattern) => info.cgroup.as_ref().is_some_and(|path| places::is_in_cgroup(pattern, path.raw())),
            Self::Container(pattern) => {
                info.container.as_ref().is_some_and(|id| places::is_container(pattern, id.raw()))
            }
            Self::Unit(pattern) => is(pattern, &info.unit),
            Self::Namespace(pattern) => {
                info.workload.as_ref().is_some_and(|known| pattern.matches(known.namespace.raw()))
            }
            Self::Label(pattern) => info.workload.as_ref().is_some_and(|known| pattern.matches(known)),
            Self::CommandLine(pattern) => {
                let arguments: Vec<&str> = info.command_line.iter().map(TargetText::raw).collect();
                pattern.matches(&arguments.join(" "))
            }
        }
    }
}

/// Rules in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    pub fn first_match(&self, info: &ProcessInfo) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.conditions.iter().all(|condition| condition.holds(info)))
    }
}

/// Rules that can be replaced while processes are watched. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SharedRules(Arc<Mutex<Edition>>);

#[derive(Debug, Default)]
struct Edition {
    number: u64,
    rules: Arc<Rules>,
}

impl SharedRules {
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(Mutex::new(Edition { number: 0, rules: Arc::new(rules) })))
    }

    pub fn now(&self) -> Arc<Rules> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).rules)
    }

    /// Grows each time the rules are replaced.
    pub fn edition(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).number
    }

    /// Has the rules of `others` hold from now on.
    pub fn replace_by(&self, others: &Self) {
        let rules = others.now();
        let mut edition = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *edition = Edition { number: edition.number + 1, rules };
    }
}

#[cfg(test)]
mod tests {
    use joular_data::events::Workload;

    use super::*;

    const ID: &str = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";

    fn process() -> ProcessInfo {
        let mut info = ProcessInfo {
            comm: "java".into(),
            command_line: ["java", "-Dapp=orders", "com.acme.Main"].map(Into::into).to_vec(),
            cgroup: Some(format!("/system.slice/shop.service/{ID}").into()),
            container: Some(ID.into()),
            unit: Some("shop.service".into()),
            workload: Some(Box::new(Workload {
                namespace: "shop".into(),
                labels: vec!["tier=front".into()],
                ..Workload::default()
            })),
            runtime: Runtime::UNKNOWN_JVM,
            ..ProcessInfo::default()
        };
        if let Runtime::Jvm { main_class, .. } = &mut info.runtime {
            *main_class = Some("com.acme.Main".into());
        }
        info
    }

    fn pattern(text: &str) -> NamePattern {
        NamePattern::new(text).unwrap()
    }

    #[test]
    fn each_condition_is_about_its_own_text() {
        for (condition, expected) in [
            (Condition::Comm(pattern("j*")), true),
            (Condition::Comm(pattern("node")), false),
            (Condition::MainClass(pattern("com.acme.*")), true),
            (Condition::MainClass(pattern("Main")), false),
            (Condition::Cgroup(pattern("/system.slice/shop.service")), true),
            (Condition::Cgroup(pattern("/system.slice/shop")), false),
            (Condition::Container(pattern(&ID[..12])), true),
            (Condition::Container(pattern("4f2b")), false),
            (Condition::Unit(pattern("shop.*")), true),
            (Condition::Namespace(pattern("sh*")), true),
            (Condition::Namespace(pattern("default")), false),
            (Condition::Label(LabelPattern::new("tier=f*").unwrap()), true),
            (Condition::Label(LabelPattern::new("tier=back").unwrap()), false),
            (Condition::CommandLine(pattern("*-Dapp=orders *")), true),
            (Condition::CommandLine(pattern("-Dapp=orders")), false),
        ] {
            let shown = format!("{condition:?}");
            let rule = Rule { name: "s".into(), version: None, conditions: vec![condition] };
            assert_eq!(Rules::new(vec![rule]).first_match(&process()).is_some(), expected, "{shown}");
        }
    }

    #[test]
    fn the_first_rule_of_which_all_conditions_hold_counts() {
        let rule = |name: &str, comm: &str, unit: &str| {
            let conditions = vec![Condition::Comm(pattern(comm)), Condition::Unit(pattern(unit))];
            Rule { name: name.into(), version: None, conditions }
        };
        let rules = Rules::new(vec![rule("a", "java", "other"), rule("b", "java", "shop*"), rule("c", "*", "*")]);
        assert_eq!(rules.first_match(&process()).map(|rule| rule.name.raw()), Some("b"));
    }
}
