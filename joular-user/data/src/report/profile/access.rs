//! Says what somebody may see of a data set: processes of some services, hosts or namespaces.
//!
//! A [`super::Filter`] that has an [`Access`] selects nothing beyond it, whatever else it says. Of processes beyond it
//! nothing but their number is known, hosts without any other process are not there, and what nobody can assign to a
//! process (phases, events, the recorder's command line) is left out. Figures of whole machines stay: measured energy, and
//! its items.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    catalog::{Catalog, Process, Run},
    filter::Filter,
    names::Names,
    reader::DataSet,
};
use crate::dataset::{error::Result, read::files::RunFiles};

/// What may be seen. By default that is everything.
#[derive(Clone, Debug, Default)]
pub struct Access(Option<Arc<[Allowance]>>);

/// What one rule allows: processes for which all of its conditions hold.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    pub services: Names,
    pub hosts: Names,
    pub namespaces: Names,
}

impl Access {
    /// What any of these allows; without any it is nothing.
    pub fn of(allowances: impl IntoIterator<Item = Allowance>) -> Self {
        Self(Some(allowances.into_iter().collect()))
    }

    pub const fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    pub fn is_nothing(&self) -> bool {
        self.0.as_ref().is_some_and(|allowances| allowances.is_empty())
    }

    /// Whether it says anything about hosts.
    pub fn is_about_hosts(&self) -> bool {
        self.0.iter().flat_map(|allowances| allowances.iter()).any(|allowance| !allowance.hosts.allow_all())
    }

    /// Whether a process may be seen. One of which no service or namespace is known has none that is allowed.
    pub fn allows(&self, catalog: &Catalog, process: &Process) -> bool {
        self.any(|allowance| {
            allowance.services.allow_known(process.service.as_ref())
                && allowance.namespaces.allow_known(process.namespace.as_ref())
                && catalog.runs.get(process.run).is_some_and(|run| allowance.hosts.allow(run.info.host.raw()))
        })
    }

    /// Whether anything on a host may be seen.
    pub fn allows_host(&self, host: &str) -> bool {
        self.any(|allowance| allowance.hosts.allow(host))
    }

    fn any(&self, allows: impl Fn(&Allowance) -> bool) -> bool {
        self.0.as_ref().is_none_or(|allowances| allowances.iter().any(allows))
    }

    /// The runs on hosts with a process that may be seen, without words that may be about others.
    pub(super) fn runs_of(&self, runs: Vec<(Run, RunFiles)>, filter: &Filter) -> Result<Vec<(Run, RunFiles)>> {
        let mut data = DataSet::empty(filter);
        data.add_runs(runs);
        data.read_processes(filter)?;
        let seen = self.hosts_of(&data.catalog);
        let runs = data.catalog.runs.into_iter().zip(data.files).zip(data.hosts);
        let mut runs: Vec<_> = runs.filter(|(_, host)| seen.contains(host)).map(|(run, _)| run).collect();
        runs.iter_mut().for_each(|(run, _)| self.hide_words(run));
        Ok(runs)
    }

    /// The hosts with a process that may be seen, by the first run of each.
    fn hosts_of(&self, catalog: &Catalog) -> BTreeSet<usize> {
        let seen = catalog.processes.iter().filter(|process| self.allows(catalog, process));
        seen.map(|process| process.run).collect()
    }

    /// Forgets what is said of processes that may not be seen.
    pub(super) fn hide_others(&self, catalog: &mut Catalog) {
        let hidden: Vec<bool> = catalog.processes.iter().map(|process| !self.allows(catalog, process)).collect();
        for (process, _) in catalog.processes.iter_mut().zip(hidden).filter(|(_, is_hidden)| *is_hidden) {
            *process = Process { run: process.run, pid: process.pid, start: process.start, ..Process::default() };
        }
    }

    /// Forgets what programs and the recorder said of a run, if not everything may be seen: it may be about any process.
    fn hide_words(&self, run: &mut Run) {
        if !self.is_everything() {
            run.phases.clear();
            run.info.command_line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::RunInfo;

    fn names(texts: &[&str]) -> Names {
        Names::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn catalog() -> Catalog {
        let run = |host: &str| Run {
            info: RunInfo { host: host.into(), command_line: vec!["x".into()], ..RunInfo::default() },
            ..Run::default()
        };
        let process = |run, service: Option<&str>, namespace: Option<&str>| Process {
            run,
            service: service.map(Into::into),
            namespace: namespace.map(Into::into),
            comm: "java".into(),
            main_class: service.map(|name| format!("com.{name}.Main").into()),
            ..Process::default()
        };
        Catalog {
            runs: vec![run("web-1"), run("web-2")],
            processes: vec![
                process(0, Some("shop"), Some("sales")),
                process(0, Some("pay"), Some("money")),
                process(1, Some("shop"), None),
                process(1, None, None),
            ],
            ..Catalog::default()
        }
    }

    #[test]
    fn conditions_of_a_rule_must_all_hold_and_rules_are_alternatives() {
        let catalog = catalog();
        let allowance = |services: &[&str], hosts: &[&str], namespaces: &[&str]| Allowance {
            services: names(services),
            hosts: names(hosts),
            namespaces: names(namespaces),
        };
        for (access, expected) in [
            (Access::default(), [true; 4]),
            (Access::of([]), [false; 4]),
            (Access::of([allowance(&["shop"], &[], &[])]), [true, false, true, false]),
            (Access::of([allowance(&["*"], &[], &[])]), [true, true, true, false]),
            (Access::of([allowance(&[], &["web-2"], &[])]), [false, false, true, true]),
            (Access::of([allowance(&["s*"], &["web-2"], &[])]), [false, false, true, false]),
            (Access::of([allowance(&["shop"], &[], &["money"])]), [false; 4]),
            (Access::of([allowance(&["pay"], &[], &[]), allowance(&[], &[], &["sales"])]), [true, true, false, false]),
        ] {
            let allowed: Vec<bool> = catalog.processes.iter().map(|one| access.allows(&catalog, one)).collect();
            assert_eq!(allowed, expected, "{access:?}");
        }
    }

    #[test]
    fn of_others_nothing_is_left() {
        let mut catalog = catalog();
        let access = Access::of([Allowance { services: names(&["pay"]), ..Allowance::default() }]);
        assert_eq!(access.hosts_of(&catalog), BTreeSet::from([0]));
        access.hide_others(&mut catalog);
        catalog.runs.iter_mut().for_each(|run| access.hide_words(run));
        let text = format!("{catalog:?}");
        assert!(text.contains("com.pay.Main") && !text.contains("shop") && !text.contains("sales"), "{text}");
        assert!(catalog.runs.iter().all(|run| run.info.command_line.is_empty()));
        let shown: Vec<bool> = catalog.processes.iter().map(|one| access.allows(&catalog, one)).collect();
        assert_eq!(shown, [false, true, false, false], "what is hidden stays hidden");
    }
}
