//! Finds the handler of a call path: the method that people wrote for a request, a message or a job.
//!
//! A framework calls handlers at one place of its own, the dispatcher. The handler is the first Java method behind it, towards
//! the leaf, that is not reflection, a proxy, an interceptor or more of the framework ([`rules`]). A path without a dispatcher has
//! no handler: work before and after a handler, and work that other threads do for it.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use foldhash::fast::RandomState;

use self::rules::Rule;
pub use self::rules::{Rules, RulesError};
use super::catalog::{FrameIndex, PathIndex, Paths};
use crate::model::target_text::TargetText;

/// A method that serves requests, messages or jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    pub class: Option<TargetText>,
    /// `package.Class.name`
    pub method: TargetText,
    /// Whose rule found it.
    pub framework: TargetText,
}

/// The handlers of paths.
#[derive(Clone, Debug, Default)]
pub struct Handlers {
    all: Vec<Handler>,
    /// By path: which of them it has.
    of_paths: Vec<Option<usize>>,
}

impl Handlers {
    /// Those of all paths. These have their whole frames, as they were recorded.
    pub fn of(rules: &Rules, paths: &Paths) -> Self {
        let mut finder = Finder::new(rules, paths);
        let mut numbers: HashMap<TargetText, usize, RandomState> = HashMap::default();
        let mut all = Vec::new();
        let of_path = |path| {
            let (rule, frame) = finder.find(path)?;
            let frame = paths.frame(frame);
            let next = all.len();
            let number = *numbers.entry(frame.method()).or_insert_with_key(|method| {
                let framework = rules.rules.get(rule).map_or("", |rule| rule.framework.as_str()).into();
                all.push(Handler { class: frame.class.clone(), method: method.clone(), framework });
                next
            });
            Some(number)
        };
        let of_paths = paths.indices().map(of_path).collect();
        Self { all, of_paths }
    }

    /// By number.
    pub fn all(&self) -> &[Handler] {
        &self.all
    }

    /// The number of a path's handler.
    pub fn number(&self, path: PathIndex) -> Option<usize> {
        self.of_paths.get(path.index()).copied().flatten()
    }

    /// A path's handler.
    pub fn get(&self, path: PathIndex) -> Option<&Handler> {
        self.number(path).and_then(|number| self.all.get(number))
    }
}

/// What a frame behind a dispatcher is.
#[derive(Clone, Copy)]
enum Step {
    /// Between the dispatcher and its handler.
    Skipped,
    /// The same, and interceptors may call it before they go on.
    Platform,
    /// The same, and interceptors call it to go on.
    Proceeds,
    Handler,
    /// There is no handler behind the dispatcher.
    None,
}

/// Patterns are compared with each frame once, not once a path.
struct Finder<'a> {
    rules: &'a Rules,
    paths: &'a Paths,
    /// By frame: the first rule of which it is a dispatcher.
    dispatches: Vec<Option<usize>>,
    steps: HashMap<(usize, FrameIndex), Step, RandomState>,
}

impl<'a> Finder<'a> {
    fn new(rules: &'a Rules, paths: &'a Paths) -> Self {
        let dispatches = paths.frames().iter().map(|frame| {
            let method = frame.kind.is_java().then(|| frame.method())?;
            rules.rules.iter().position(|rule| rule.dispatchers.allow(method.raw()))
        });
        Self { rules, paths, dispatches: dispatches.collect(), steps: HashMap::default() }
    }

    /// The rule that finds a path's handler, and its frame. Of one rule, the first dispatcher from the root counts, because what
    /// a handler has others do is its own work; unless handlers call each other in a chain.
    fn find(&mut self, path: PathIndex) -> Option<(usize, FrameIndex)> {
        let frames = self.paths.path(path);
        let mut best: Option<(usize, FrameIndex)> = None;
        for (at, frame) in frames.iter().enumerate() {
            let Some(rule) = self.dispatches.get(frame.index()).copied().flatten() else { continue };
            let is_innermost = self.rules.rules.get(rule).is_some_and(|rule| rule.is_innermost);
            if best.is_none_or(|(best, _)| rule < best || rule == best && is_innermost)
                && let Some(handler) = self.behind(rule, frames.get(at + 1..).unwrap_or_default())
            {
                best = Some((rule, handler));
            }
        }
        best
    }

    fn behind(&mut self, rule: usize, frames: &[FrameIndex]) -> Option<FrameIndex> {
        for (at, frame) in frames.iter().enumerate() {
            match self.step(rule, *frame) {
                Step::Skipped | Step::Platform | Step::Proceeds => {}
                Step::Handler if self.goes_on(rule, frames.get(at + 1..).unwrap_or_default()) => {}
                Step::Handler => return Some(*frame),
                Step::None => return None,
            }
        }
        None
    }

    /// Whether what people wrote calls these to have the next interceptor or the handler called: it is an interceptor, then.
    fn goes_on(&mut self, rule: usize, frames: &[FrameIndex]) -> bool {
        if !self.rules.rules.get(rule).is_some_and(Rule::has_interceptors) {
            return false;
        }
        let steps = frames.iter().map(|frame| self.step(rule, *frame));
        let mut steps = steps.skip_while(|step| matches!(step, Step::Handler | Step::Platform));
        matches!(steps.next(), Some(Step::Proceeds))
    }

    fn step(&mut self, rule: usize, frame: FrameIndex) -> Step {
        let (rules, paths) = (self.rules, self.paths);
        *self.steps.entry((rule, frame)).or_insert_with(|| {
            let frame = paths.frame(frame);
            if !frame.kind.is_java() {
                return Step::Platform;
            }
            let method = frame.method();
            rules.rules.get(rule).map_or(Step::Handler, |rule| rules.step(rule, method.raw()))
        })
    }
}
