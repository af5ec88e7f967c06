//! Resolves who the targets are.

use joular_data::model::units::Pid;

use super::{ConfigError, Places};
use crate::{
    cli::Flags,
    procs::selection::{Belonging, LabelPattern, NamePattern, Selection},
};

impl Places {
    pub(super) fn selection(&self, flags: &Flags) -> Result<Selection, ConfigError> {
        if flags.all {
            return Ok(Selection::All);
        }
        if !flags.pid.is_empty() {
            if flags.pid.contains(&0) {
                return Err(self.invalid("pid", "0 is not a process: ids start at 1"));
            }
            return Ok(Selection::Pids(flags.pid.iter().copied().map(Pid).collect()));
        }
        let [names, containers, pods, namespaces, labels, cgroups, services] = flags.conditions();
        let names = self.patterns(names, NamePattern::of_comm)?;
        let belonging = Belonging {
            containers: self.patterns(containers, NamePattern::new)?,
            pods: self.patterns(pods, NamePattern::new)?,
            namespaces: self.patterns(namespaces, NamePattern::new)?,
            labels: self.patterns(labels, LabelPattern::new)?,
            cgroups: self.patterns(cgroups, NamePattern::new)?,
            services: self.patterns(services, NamePattern::new)?,
        };
        for (key, texts) in [namespaces, labels] {
            if !texts.is_empty() && flags.kubernetes.is_none() {
                return Err(self.invalid(key, "who knows pods is not given: give --kubernetes too"));
            }
        }
        let belonging = Box::new(belonging);
        Ok(match (names.is_empty(), belonging.is_empty()) {
            (true, _) if flags.jvms => Selection::Jvms(belonging),
            (true, true) => Selection::Jvms(belonging),
            (false, true) => Selection::Names(names),
            (_, false) => Selection::PartOf(names, belonging),
        })
    }

    fn patterns<P>(
        &self,
        (key, texts): (&str, &[String]),
        pattern: impl Fn(&str) -> Result<P, String>,
    ) -> Result<Vec<P>, ConfigError> {
        let invalid = |text: &String, cause| self.invalid(key, format!("\"{}\": {cause}", text.escape_debug()));
        texts.iter().map(|text| pattern(text).map_err(|cause| invalid(text, cause))).collect()
    }

    /// Refuses targets that exclude each other in one place.
    pub(super) fn refuse_several_targets(&self, flags: &Flags) -> Result<(), ConfigError> {
        let choose = "choose one of --comm, --jvms, --pid, --all and --replay";
        if flags.jvms && flags.has("comm") {
            return Err(self.conflict("jvms", "comm", choose));
        }
        let alone = ["pid", "all", "replay"];
        let conditions = flags.conditions().map(|(key, _)| key).into_iter().chain(["jvms"]);
        let count = flags.conditions().len() + 1;
        for (at, first) in conditions.chain(alone).enumerate() {
            for second in alone.into_iter().skip((at + 1).saturating_sub(count)) {
                if flags.has(first) && flags.has(second) {
                    return Err(self.conflict(second, first, choose));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigFile, Input};

    fn resolved(line: &str, text: &str) -> Result<Selection, ConfigError> {
        let arguments = std::iter::once("joular-bpf").chain(line.split_whitespace());
        let flags = crate::cli::parse(arguments.map(Into::into)).unwrap().flags;
        let config = Config::resolve(flags, Some(ConfigFile::parse("run.toml".into(), text.into())?))?;
        match config.input {
            Input::Live(live) => Ok(live.selection),
            Input::Replay(_) => panic!("a replay"),
        }
    }

    #[test]
    fn targets_are_chosen_by_what_they_are_part_of_alone_or_with_a_name() {
        for (line, text, expected) in [
            ("--container 4f2b7c0a9d8e", "", "--container 4f2b7c0a9d8e"),
            ("--comm java --pod 1a2b", "", "--comm java --pod 1a2b"),
            ("--cgroup /a /b --service shop*", "", "--cgroup /a /b --service shop*"),
            ("", "service = ['shop']\ncomm = ['java']\n", "--comm java --service shop"),
            ("--namespace shop --label app=a* tier= --kubernetes", "", "--namespace shop --label app=a* tier="),
            ("--label app=a", "kubernetes = 'kubelet'", "--label app=a"),
            ("--service orders", "pod = ['1a2b']\n", "--service orders"),
            ("--comm java", "container = ['4f2b']\n", "--comm java"),
            ("", "", "--jvms"),
            ("--jvms --cgroup /a", "", "--jvms --cgroup /a"),
            ("--jvms", "comm = ['java']\n", "--jvms"),
            ("--pid 7", "jvms = true\n", "--pid 7"),
            ("--all", "container = ['4f2b']\n", "--all"),
        ] {
            assert_eq!(resolved(line, text).unwrap().to_string(), expected, "{line} {text}");
        }
    }

    #[test]
    fn what_excludes_each_other_and_what_is_no_pattern_is_refused() {
        for (line, text, expected) in [
            ("--service shop --pid 1", "", "--pid cannot be used with --service: choose one of"),
            ("--jvms --comm java", "", "--jvms cannot be used with --comm: choose one of"),
            ("--jvms --pid 7", "", "--pid cannot be used with --jvms: choose one of"),
            ("--container 4f2b --all", "", "--all cannot be used with --container: choose one of"),
            ("--namespace shop", "", "--namespace: who knows pods is not given: give --kubernetes too"),
            ("", "label = ['a=b']\n", "run.toml:1: label: who knows pods is not given"),
            ("--label app --kubernetes", "", "--label: \"app\": not a label: write KEY=VALUE"),
            ("--cgroup [", "", "--cgroup: \"[\": not a pattern"),
            ("", "pod = ['']\n", "run.toml:1: pod: \"\": a name cannot be empty"),
        ] {
            let error = resolved(line, text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
