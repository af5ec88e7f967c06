//! What the log gets of work that is tried again and again: each cause once while the work fails, and that it works again.

/// So many causes are told apart. Those beyond are not reported, so no peer can fill the log with ever new texts.
const MAX_CAUSES: usize = 8;

/// Causes that were reported since the work last succeeded. One must not hide another, and two that take turns must not fill
/// the log.
#[derive(Debug)]
pub struct Failing<C>(Vec<C>);

impl<C> Default for Failing<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: PartialEq> Failing<C> {
    /// Whether this outcome needs a message: a failure with another cause, or the first success after failures.
    pub fn is_news(&mut self, outcome: Result<(), C>) -> bool {
        let Err(cause) = outcome else {
            return !std::mem::take(&mut self.0).is_empty();
        };
        let is_new = self.0.len() < MAX_CAUSES && !self.0.contains(&cause);
        if is_new {
            self.0.push(cause);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_reported_once_until_the_work_succeeds_again() {
        let mut failing = Failing::default();
        for (outcome, is_news) in [
            (Ok(()), false),
            (Err("full"), true),
            (Err("full"), false),
            (Err("away"), true),
            (Err("full"), false),
            (Ok(()), true),
            (Ok(()), false),
            (Err("away"), true),
        ] {
            assert_eq!(failing.is_news(outcome), is_news, "{outcome:?}");
        }
    }

    #[test]
    fn texts_without_end_are_not_all_reported() {
        let mut failing = Failing::default();
        let reported = (0..1000).filter(|cause| failing.is_news(Err(cause.to_string()))).count();
        assert_eq!(reported, MAX_CAUSES);
        assert!(failing.is_news(Ok(())));
    }
}
