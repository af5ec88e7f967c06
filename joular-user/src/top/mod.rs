//! Shows a run on the whole terminal while it lasts, as `top` does: processes, threads, methods and branches, which can be
//! sorted, filtered and gone into.
//!
//! The recorder's thread takes the figures out of each window ([`figures`]) and puts them into a bounded [`feed`]. A thread
//! of its own sums them ([`sums`]), holds what the user has chosen ([`state`]) and draws ([`mod@draw`]), so no window waits
//! for a terminal.

mod columns;
mod draw;
mod feed;
mod figures;
mod keys;
mod lines;
mod places;
mod rows;
mod session;
mod state;
mod sums;
mod terminal;
#[cfg(test)]
mod testing;
mod tree;

use std::sync::Arc;

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::Pid,
    output::{Output, OutputError, Result},
    stacks::StackTable,
};

use self::{
    feed::{Feed, News},
    figures::Condenser,
    session::Session,
};
pub use self::{
    session::{Ask, Asked},
    terminal::unfit,
};

/// What happens to the view when the run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    Close,
    /// It stays until the user leaves it.
    Stay,
}

/// The view. It takes the terminal over when the run starts, so what fails before is said as usual.
pub struct TopOutput {
    feed: Arc<Feed>,
    condenser: Condenser,
    at_end: AtEnd,
    /// Signals that end the view.
    signals: &'static [i32],
    /// Until the run starts.
    asked: Option<Asked>,
    session: Option<Session>,
}

impl TopOutput {
    /// `asked` is told what the user wants of the run, and that these signals came.
    pub fn new(at_end: AtEnd, signals: &'static [i32], asked: Asked) -> Self {
        let feed = Arc::new(Feed::new(at_end == AtEnd::Stay));
        Self { feed, condenser: Condenser::default(), at_end, signals, asked: Some(asked), session: None }
    }

    fn put(&self, news: News) {
        self.feed.put(news);
        self.session.iter().for_each(Session::has_news);
    }
}

impl Output for TopOutput {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        self.condenser = Condenser::default();
        self.put(News::Run(Box::new(run.clone())));
        if let Some(asked) = self.asked.take() {
            let session = Session::start(Arc::clone(&self.feed), asked, self.signals);
            let session = session.map_err(|source| OutputError::Stream { what: "to the terminal", source })?;
            self.session = Some(session);
        }
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.condenser.process(process);
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.condenser.process_ended((pid, start_boottime_ns));
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let figures = self.condenser.window(report, stacks);
        self.put(News::Window(Box::new(figures)));
        Ok(())
    }

    fn run_ended(&mut self, _end: &RunEnd) -> Result<()> {
        self.put(News::Ended);
        if self.at_end == AtEnd::Close {
            self.session.iter().for_each(Session::close);
        }
        Ok(())
    }
}

impl Drop for TopOutput {
    fn drop(&mut self) {
        self.session.iter().for_each(Session::close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn the_documentation_lists_the_bounds_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bounds.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, table) = text.split_once("## In the view of `top`").unwrap();
        for (most, of) in [
            (sums::MAX_FACTS, "call paths of threads"),
            (sums::MAX_RECENT_ROWS, "rows of the windows of the last minute"),
            (sums::MAX_HISTORY, "windows in the chart"),
            (tree::MAX_NODES, "methods on call paths in the tree"),
            (tree::MAX_ROWS, "rows of the tree"),
            (feed::MAX_WAITING, "windows that wait for the terminal"),
            (messages::MAX_WAITING, "messages that wait"),
        ] {
            assert!(table.contains(&format!("| {most} | {of}")), "{most} {of}");
        }
    }
}
