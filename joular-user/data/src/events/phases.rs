//! Follows which phases are open.
//!
//! A phase that begins while others of the same process are open is within them: its path has their names, too. Names
//! may be used again, at the same time by several processes, and in any order: an end closes the phase of that name that
//! began last, of the same process if there is one.

use super::mark::{Mark, MarkKind};
use crate::model::{target_text::TargetText, units::Pid};

/// Open phases that are kept. Begins beyond it are not followed.
const MAX_OPEN: usize = 64;

/// Name of a phase that has none.
const NO_NAME: &str = "phase";

/// The phases that are open.
#[derive(Clone, Debug, Default)]
pub struct OpenPhases {
    open: Vec<Phase>,
    begun: u64,
}

/// A phase that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// 0, 1, 2, … in the order of beginning.
    pub number: u64,
    pub name: TargetText,
    /// Names of the phases that it is within, and its own: `load/parse`.
    pub path: TargetText,
    pid: Option<Pid>,
}

/// What a mark meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Began(Phase),
    Ended(Phase),
    /// No phase of that name is open, or too many are.
    Ignored,
    /// It is about no phase.
    Event,
}

impl Step {
    /// The phase that a mark begins or ends.
    pub const fn phase(&self) -> Option<&Phase> {
        match self {
            Self::Began(phase) | Self::Ended(phase) => Some(phase),
            Self::Ignored | Self::Event => None,
        }
    }
}

impl OpenPhases {
    /// Those that are open, in the order of beginning.
    pub fn iter(&self) -> impl Iterator<Item = &Phase> {
        self.open.iter()
    }

    /// Takes the next mark.
    pub fn take(&mut self, mark: &Mark) -> Step {
        match mark.kind {
            MarkKind::Event => Step::Event,
            MarkKind::Begin => self.begin(mark),
            MarkKind::End => self.end(mark),
        }
    }

    fn begin(&mut self, mark: &Mark) -> Step {
        if self.open.len() >= MAX_OPEN {
            return Step::Ignored;
        }
        let name = mark.name.clone().unwrap_or_else(|| NO_NAME.into());
        let around = self.open.iter().rev().find(|phase| phase.pid == mark.pid);
        let path = match around {
            Some(around) => format!("{}/{}", around.path.raw(), name.raw()).into(),
            None => name.clone(),
        };
        let phase = Phase { number: self.begun, name, path, pid: mark.pid };
        self.begun += 1;
        self.open.push(phase.clone());
        Step::Began(phase)
    }

    fn end(&mut self, mark: &Mark) -> Step {
        let is_meant = |phase: &Phase| mark.name.as_ref().is_none_or(|name| *name == phase.name);
        let of_process = self.open.iter().rposition(|phase| is_meant(phase) && phase.pid == mark.pid);
        match of_process.or_else(|| self.open.iter().rposition(is_meant)) {
            Some(at) => Step::Ended(self.open.remove(at)),
            None => Step::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events::MarkFrom, model::units::MonotonicNs};

    /// `begin a`, `end a`, `end`, `event x`; `2:begin a` is of process 2.
    fn mark(text: &str) -> Mark {
        let (pid, text) = text.split_once(':').map_or((None, text), |(pid, text)| (pid.parse().ok().map(Pid), text));
        let (kind, name) = text.split_once(' ').map_or((text, None), |(kind, name)| (kind, Some(name.into())));
        let kind = MarkKind::ALL.into_iter().find(|known| known.name() == kind).unwrap();
        Mark { at: MonotonicNs(0), kind, name, attributes: None, pid, from: MarkFrom::Socket }
    }

    /// What each mark meant: `+path`, `-path`, `?` or `.`.
    fn steps(marks: &[&str]) -> Vec<String> {
        let mut phases = OpenPhases::default();
        let step = |text: &&str| match phases.take(&mark(text)) {
            Step::Began(phase) => format!("+{}", phase.path),
            Step::Ended(phase) => format!("-{}", phase.path),
            Step::Ignored => "?".to_owned(),
            Step::Event => ".".to_owned(),
        };
        marks.iter().map(step).collect()
    }

    #[test]
    fn phases_nest_and_repeat() {
        assert_eq!(
            steps(&["begin a", "begin b", "end b", "begin b", "event x", "end b", "end a", "begin a", "end"]),
            ["+a", "+a/b", "-a/b", "+a/b", ".", "-a/b", "-a", "+a", "-a"]
        );
        assert_eq!(steps(&["begin a", "begin a", "end a", "end a", "end a"]), ["+a", "+a/a", "-a/a", "-a", "?"]);
    }

    #[test]
    fn phases_may_overlap() {
        assert_eq!(steps(&["begin a", "begin b", "end a", "end b"]), ["+a", "+a/b", "-a", "-a/b"]);
    }

    #[test]
    fn phases_of_other_processes_are_not_around() {
        assert_eq!(
            steps(&["1:begin a", "2:begin a", "2:begin b", "1:end a", "2:end", "2:end"]),
            ["+a", "+a", "+a/b", "-a", "-a/b", "-a"]
        );
        assert_eq!(steps(&["1:begin a", "2:end a"]), ["+a", "-a"], "a script has another process for each mark");
    }

    #[test]
    fn phases_without_end_are_bounded() {
        let mut phases = OpenPhases::default();
        let begun = (0..1000).filter(|_| phases.take(&mark("begin a")) != Step::Ignored).count();
        assert_eq!((begun, phases.iter().count()), (MAX_OPEN, MAX_OPEN));
        assert_eq!(steps(&["begin"]), ["+phase"]);
    }
}
