//! Checks the rules that name services.

use crate::{
    cli::ServiceRuleFlags,
    procs::{
        selection::{LabelPattern, NamePattern},
        service::rules::{Condition, Rule, Rules},
    },
};

/// # Errors
/// If a rule names nothing, has no condition, or has one that is not a pattern; says which and why.
pub fn rules(written: &[ServiceRuleFlags]) -> Result<Rules, String> {
    let numbered = written.iter().enumerate();
    let rules = numbered.map(|(index, written)| {
        rule(written).map_err(|cause| format!("rule {} (\"{}\"): {cause}", index + 1, written.name.escape_debug()))
    });
    Ok(Rules::new(rules.collect::<Result<_, _>>()?))
}

fn rule(written: &ServiceRuleFlags) -> Result<Rule, String> {
    if written.name.is_empty() {
        return Err("name cannot be empty".to_owned());
    }
    let comm = ("comm", &written.comm, Condition::Comm as fn(NamePattern) -> Condition);
    let others = [
        ("main-class", &written.main_class, Condition::MainClass as fn(NamePattern) -> Condition),
        ("cgroup", &written.cgroup, Condition::Cgroup),
        ("container", &written.container, Condition::Container),
        ("unit", &written.unit, Condition::Unit),
        ("namespace", &written.namespace, Condition::Namespace),
        ("command-line", &written.command_line, Condition::CommandLine),
    ];
    let mut conditions = Vec::new();
    for (key, text, condition) in std::iter::once(comm).chain(others) {
        let Some(text) = text else { continue };
        let pattern = if key == "comm" { NamePattern::of_comm(text) } else { NamePattern::new(text) };
        let pattern = pattern.map_err(|cause| format!("{key}: \"{}\": {cause}", text.escape_debug()))?;
        conditions.push(condition(pattern));
    }
    if let Some(text) = &written.label {
        let label = LabelPattern::new(text).map_err(|cause| format!("label: \"{}\": {cause}", text.escape_debug()))?;
        conditions.push(Condition::Label(label));
    }
    if conditions.is_empty() {
        return Err(
            "it has no condition: add comm, main-class, cgroup, container, unit, namespace, label or command-line"
                .to_owned(),
        );
    }
    let version = written.version.as_deref().map(Into::into);
    Ok(Rule { name: written.name.as_str().into(), version, conditions })
}

#[cfg(test)]
mod tests {
    use joular_data::events::ProcessInfo;

    use super::*;
    use crate::config::ConfigFile;

    fn of_file(text: &str) -> Result<Rules, String> {
        let file = ConfigFile::parse("run.toml".into(), text.into()).map_err(|error| error.to_string())?;
        rules(&file.flags.service_rule)
    }

    #[test]
    fn the_first_rule_of_the_file_that_matches_names_the_service() {
        let rules = of_file(
            "[[service-rule]]\nname = 'checkout'\nversion = '7'\ncomm = 'java'\nunit = 'shop*'\n\
             [[service-rule]]\nname = 'jvms'\ncomm = 'java'\n",
        )
        .unwrap();
        let named = |comm: &str, unit: &str| {
            let info = ProcessInfo { comm: comm.into(), unit: Some(unit.into()), ..ProcessInfo::default() };
            let rule = rules.first_match(&info);
            rule.map(|rule| (rule.name.raw().to_owned(), rule.version.is_some()))
        };
        assert_eq!(named("java", "shop.service"), Some(("checkout".to_owned(), true)));
        assert_eq!(named("java", "orders.service"), Some(("jvms".to_owned(), false)));
        assert_eq!(named("node", "shop.service"), None);
    }

    #[test]
    fn a_mistake_in_a_rule_is_named() {
        for (text, expected) in [
            ("name = 'a'\nclass = 'x'", "run.toml:3: unknown key `class`"),
            ("comm = 'java'", "run.toml:1: missing field `name`"),
            ("name = 'a'", "rule 1 (\"a\"): it has no condition"),
            ("name = ''\ncomm = 'java'", "rule 1 (\"\"): name cannot be empty"),
            ("name = 'a'\nunit = '['", "rule 1 (\"a\"): unit: \"[\": not a pattern"),
            ("name = 'a'\ncomm = ''", "rule 1 (\"a\"): comm: \"\": a name cannot be empty"),
        ] {
            let error = of_file(&format!("[[service-rule]]\n{text}\n")).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
