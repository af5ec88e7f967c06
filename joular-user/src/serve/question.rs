//! Makes questions, each within its terms: there is no other way to make one, so none can go beyond them.

use std::{cell::RefCell, path::Path};

use joular_data::{
    model::units::UnixMicros,
    report::profile::{Filter, Stop},
};

use super::{
    answer::Answer,
    terms::{Reads, Terms},
};
use crate::query::Refusal;

/// Reads a data set for an answer.
pub type Work = Box<dyn FnOnce(&Path) -> Result<Answer, Refusal> + Send>;

/// A question that is understood.
pub struct Question {
    /// Equal questions of those who may see the same have equal keys.
    pub key: String,
    pub work: Work,
    pub stop: Stop,
    pub reads: Reads,
    /// The parts of the data set that the answer is made of.
    pub parts: Vec<Filter>,
    /// Where it begins, if the question did not say that.
    pub begin: Option<UnixMicros>,
    _checked: Checked,
}

/// That a question is within its terms.
struct Checked;

/// What a question is made within.
pub struct Bounds<'a> {
    pub terms: &'a Terms,
    stop: Stop,
    parts: RefCell<Vec<Filter>>,
    begin: RefCell<Option<UnixMicros>>,
}

impl<'a> Bounds<'a> {
    pub fn new(terms: &'a Terms) -> Self {
        Self { terms, stop: Stop::default(), parts: RefCell::default(), begin: RefCell::default() }
    }

    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// A part that the answer will be made of, as far as the terms allow. What is read has to be read with this.
    #[must_use]
    pub fn limited(&self, filter: Filter) -> Filter {
        let mut filter = Filter { stop: self.stop.clone(), ..filter };
        if let Some(begin) = self.terms.limit(&mut filter) {
            *self.begin.borrow_mut() = Some(begin);
        }
        self.parts.borrow_mut().push(filter.clone());
        filter
    }

    /// The question. `asked` is equal for equal ones; where it has relative times, the moment belongs to it.
    ///
    /// # Errors
    /// If whoever asks may not see what it is about.
    pub fn question(self, asked: &str, is_relative: bool, reads: Reads, work: Work) -> Result<Question, Refusal> {
        let Self { terms, stop, parts, begin } = self;
        let (parts, begin) = (parts.into_inner(), begin.into_inner());
        terms.check(reads, &parts)?;
        let moment = if is_relative || begin.is_some() { terms.now.0 } else { 0 };
        let key = format!("{asked}#{moment}#{}", terms.sight.key);
        Ok(Question { key, work, stop, reads, parts, begin, _checked: Checked })
    }
}
