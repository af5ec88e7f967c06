//! Reports faults of energy during a run, once when they begin and once when they are over. Each
//! window has them in full (`windows.fault`).

use std::collections::{BTreeMap, BTreeSet};

use joular_data::{
    attribution::window_report::{DomainAudit, WindowReport},
    events::{ProcessInfo, RunEnd, RunInfo},
    model::domain::FaultCause,
    output::{Output, Result},
    stacks::StackTable,
    text::escape,
};

/// Domains and causes that are kept; further ones are not told apart.
const MAX_TOLD: usize = 1024;

/// Tells each fault that is new to its domain.
pub struct FaultNotices<F> {
    tell: F,
    /// Faults that were reported, by the domain's position among the run's.
    told: BTreeSet<(usize, FaultCause)>,
    /// Faults of domains whose energy is still to come, and whether their end was reported.
    failed: BTreeMap<usize, (FaultCause, bool)>,
}

impl<F: FnMut(&str)> FaultNotices<F> {
    pub const fn new(tell: F) -> Self {
        Self { tell, told: BTreeSet::new(), failed: BTreeMap::new() }
    }

    /// The notice for a domain's window, if any.
    fn news(&mut self, position: usize, audit: &DomainAudit) -> Option<String> {
        let Some(fault) = audit.fault else {
            let (fault, was_told) = self.failed.get_mut(&position)?;
            let over = if *fault == FaultCause::Stuck { "the counter moves again" } else { "it can be read again" };
            let is_news = !std::mem::replace(was_told, true);
            return is_news.then(|| format!("energy of {}: {over}", name(audit)));
        };
        if self.told.len() >= MAX_TOLD || !self.told.insert((position, fault)) {
            return None;
        }
        if fault.is_failed_read() {
            self.failed.entry(position).or_insert((fault, false));
        }
        Some(format!("energy of {}: {}", name(audit), said(fault, audit.detail.as_deref())))
    }
}

/// `package 0`, `core 3 of package 1`, `machine`.
fn name(audit: &DomainAudit) -> String {
    let domain = escape(&audit.domain);
    match (audit.socket, audit.core) {
        (Some(socket), Some(core)) => format!("{domain} {core} of package {socket}"),
        (Some(socket), None) => format!("{domain} {socket}"),
        (None, _) => domain,
    }
}

fn said(fault: FaultCause, detail: Option<&str>) -> String {
    let later = "its energy comes with the next good reading";
    match (fault, detail) {
        (_, Some(detail)) => format!("{}: {later}", escape(detail)),
        (FaultCause::NoStart, None) => "there was no reading to start from: this window gets no energy".to_owned(),
        (FaultCause::MayHaveWrapped, None) => {
            "the counter may have wrapped more than once since the last reading: this window has the least possible energy"
                .to_owned()
        }
        (FaultCause::Jumped, None) => {
            "the counter moved backwards, or by more than a machine can draw: this window gets no energy".to_owned()
        }
        (FaultCause::Stuck, None) => {
            "the counter does not move: its energy comes when it moves again".to_owned()
        }
        (FaultCause::Suspended, None) => {
            "the machine was suspended: what the counter gained meanwhile goes to no thread".to_owned()
        }
        (cause, None) => format!("it could not be read ({}): {later}", cause.name()),
    }
}

impl<F: FnMut(&str)> Output for FaultNotices<F> {
    fn run_started(&mut self, _run: &RunInfo) -> Result<()> {
        Ok(())
    }

    fn process(&mut self, _process: &ProcessInfo) {}

    fn window(&mut self, report: &WindowReport, _stacks: &StackTable) -> Result<()> {
        for (position, audit) in report.domains.iter().enumerate() {
            if let Some(news) = self.news(position, audit) {
                (self.tell)(&news);
            }
        }
        Ok(())
    }

    fn run_ended(&mut self, _end: &RunEnd) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::{
        domain::{Domain, Label, Meter},
        units::MicroJoules,
    };

    use super::*;

    /// What is said of a package in windows with these faults.
    fn said_of(faults: &[Option<(FaultCause, Option<&str>)>]) -> Vec<String> {
        let mut told = Vec::new();
        let mut notices = FaultNotices::new(|news: &str| told.push(news.to_owned()));
        let domain = Domain::new("package", Some(0), "test", Label::Measured, Meter::Power);
        for fault in faults {
            let audit = DomainAudit {
                fault: fault.map(|(cause, _)| cause),
                detail: fault.and_then(|(_, detail)| detail.map(ToOwned::to_owned)),
                measured: MicroJoules(1),
                ..DomainAudit::new(&domain, &Default::default())
            };
            let report = WindowReport { domains: vec![audit], ..WindowReport::default() };
            notices.window(&report, &StackTable::default()).unwrap();
        }
        told
    }

    #[test]
    fn a_fault_is_told_when_it_begins_and_when_it_is_over() {
        let gone = Some((FaultCause::Gone, Some("reading x: it is gone")));
        let lines = said_of(&[None, gone, gone, None, None, gone, gone, None]);
        assert_eq!(
            lines,
            [
                "energy of package 0: reading x: it is gone: its energy comes with the next good reading",
                "energy of package 0: it can be read again",
            ]
        );
    }

    #[test]
    fn a_counter_that_stood_still_moves_again() {
        let stuck = Some((FaultCause::Stuck, None));
        let lines = said_of(&[None, stuck, None, stuck, None]);
        assert_eq!(
            lines,
            [
                "energy of package 0: the counter does not move: its energy comes when it moves again",
                "energy of package 0: the counter moves again",
            ]
        );
    }

    #[test]
    fn each_cause_is_told_once() {
        let causes = FaultCause::ALL.map(|cause| Some((cause, None)));
        let lines = said_of(&[causes.as_slice(), &causes].concat());
        assert_eq!(lines.len(), FaultCause::ALL.len(), "{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("energy of package 0: ")));
    }

    #[test]
    fn what_a_file_says_cannot_command_the_terminal() {
        let lines = said_of(&[Some((FaultCause::Malformed, Some("reading x: \x1b[2J")))]);
        assert!(!lines[0].contains('\x1b'), "{lines:?}");
    }
}
