//! Says to which service a process belongs, and of which version the service is.
//!
//! The name is what the first of these tells: a rule of the configuration, the systemd unit, what a
//! JVM runs (its jar or its main class), the process's own name. The version is the rule's, else
//! that of the jar, whatever told the name. docs/identity.md has it for users.

pub mod jar;
pub mod rules;
pub mod unit;

use joular_data::{
    events::{ProcessInfo, Runtime, Service, ServiceFrom},
    model::target_text::TargetText,
};

use self::{jar::JarIdentity, rules::Rules};
use super::java;

/// The service of a process of which everything else is known.
pub fn of(info: &ProcessInfo, jar: Option<JarIdentity>, rules: &Rules) -> Service {
    let (title, jar_version) = jar.map_or((None, None), |jar| (jar.name, jar.version));
    if let Some(rule) = rules.first_match(info) {
        let version = rule.version.clone().or(jar_version);
        return Service { name: rule.name.clone(), version, from: ServiceFrom::Rule };
    }
    let unit = info.unit.as_ref().and_then(|unit| unit::service_name(unit.raw()));
    let (name, from) = if let Some(unit) = unit {
        (unit.into(), ServiceFrom::Unit)
    } else if let Some(title) = title {
        (title, ServiceFrom::Jar)
    } else if let Runtime::Jvm { main_class: Some(main_class), .. } = &info.runtime {
        (main_class.clone(), ServiceFrom::MainClass)
    } else {
        (info.comm.clone(), ServiceFrom::Comm)
    };
    Service { name, version: jar_version, from }
}

/// The service of a process that has another name now. Its files are not read again.
pub fn renamed(info: &ProcessInfo, rules: &Rules) -> Option<Service> {
    let known = info.service.clone()?;
    if let Some(rule) = rules.first_match(info) {
        let version = rule.version.clone().or(known.version);
        return Some(Service { name: rule.name.clone(), version, from: ServiceFrom::Rule });
    }
    match known.from {
        ServiceFrom::Comm => Some(Service { name: info.comm.clone(), ..known }),
        // The rule was for the name before.
        ServiceFrom::Rule => Some(of(info, java::jar_name(&info.command_line).map(jar::of_file_name), rules)),
        ServiceFrom::Unit | ServiceFrom::Jar | ServiceFrom::MainClass => Some(known),
    }
}

/// Longest text that names a service or a version.
const MAX_BYTES: usize = 256;

/// A text that may name something: neither empty nor longer than people read.
fn usable(text: &str) -> Option<TargetText> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_BYTES).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::{
        rules::{Condition, Rule},
        *,
    };
    use crate::procs::selection::NamePattern;

    fn process(comm: &str, unit: Option<&str>, main_class: Option<&str>) -> ProcessInfo {
        let runtime = match Runtime::UNKNOWN_JVM {
            Runtime::Jvm { version, collector, debug_non_safepoints, unwinding, .. } => Runtime::Jvm {
                version,
                main_class: main_class.map(Into::into),
                collector,
                debug_non_safepoints,
                unwinding,
            },
            Runtime::Native => Runtime::Native,
        };
        ProcessInfo { comm: comm.into(), unit: unit.map(Into::into), runtime, ..ProcessInfo::default() }
    }

    fn jar(name: Option<&str>, version: Option<&str>) -> Option<JarIdentity> {
        Some(JarIdentity { name: name.map(Into::into), version: version.map(Into::into) })
    }

    fn rules(comm: &str, name: &str, version: Option<&str>) -> Rules {
        let condition = Condition::Comm(NamePattern::of_comm(comm).unwrap());
        Rules::new(vec![Rule { name: name.into(), version: version.map(Into::into), conditions: vec![condition] }])
    }

    #[test]
    fn the_first_that_says_something_names_the_service() {
        let shop = rules("shop*", "checkout", None);
        for (info, jar, rules, expected) in [
            (process("shop-7", Some("a.service"), None), None, &shop, ("checkout", ServiceFrom::Rule)),
            (process("java", Some("a.service"), Some("x.Main")), None, &shop, ("a", ServiceFrom::Unit)),
            (process("java", None, Some("x.jar")), jar(Some("x"), None), &shop, ("x", ServiceFrom::Jar)),
            (process("java", None, Some("x.Main")), None, &shop, ("x.Main", ServiceFrom::MainClass)),
            (process("java", None, None), None, &shop, ("java", ServiceFrom::Comm)),
            (process("shop", None, None), None, &Rules::default(), ("shop", ServiceFrom::Comm)),
        ] {
            let service = of(&info, jar, rules);
            assert_eq!((service.name.raw(), service.from), expected);
        }
    }

    #[test]
    fn the_version_is_the_rules_and_else_the_jars_whatever_told_the_name() {
        let of_jar = || jar(Some("x"), Some("3.2.0"));
        for (info, rules, expected) in [
            (process("shop", None, Some("x.jar")), rules("shop", "s", Some("9")), "9"),
            (process("shop", None, Some("x.jar")), rules("shop", "s", None), "3.2.0"),
            (process("java", Some("a.service"), Some("x.jar")), Rules::default(), "3.2.0"),
        ] {
            assert_eq!(of(&info, of_jar(), &rules).version, Some(expected.into()));
        }
    }

    #[test]
    fn a_new_name_counts_where_the_name_was_what_is_known() {
        let rules = rules("shop", "checkout", None);
        let rename = |before: &str, unit: Option<&str>, after: &str| {
            let info = process(before, unit, None);
            let service = Some(of(&info, None, &rules));
            let service = renamed(&ProcessInfo { comm: after.into(), service, ..info }, &rules).unwrap();
            (service.name.raw().to_owned(), service.from)
        };
        assert_eq!(rename("java", None, "orders"), ("orders".to_owned(), ServiceFrom::Comm));
        assert_eq!(rename("java", None, "shop"), ("checkout".to_owned(), ServiceFrom::Rule));
        assert_eq!(rename("shop", None, "orders"), ("orders".to_owned(), ServiceFrom::Comm));
        assert_eq!(rename("java", Some("a.service"), "orders"), ("a".to_owned(), ServiceFrom::Unit));
    }
}
