//! Shows a run to people: the live view while it lasts, and the summary at its end, both
//! from one set of totals.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use joular_data::{
    attribution::window_report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    model::units::Pid,
    output::{Output, OutputError, Result},
    stacks::StackTable,
    totals::Totals,
};

use super::{
    live::{LiveView, Screen},
    summary::summary,
};

pub struct ScreenOutput<W> {
    out: W,
    view: LiveView,
    /// Whether windows are shown, too, or the summary alone.
    is_live: bool,
    /// Where the data set is, if one is written.
    data: Option<PathBuf>,
    run: Option<RunInfo>,
    totals: Totals,
}

impl<W: Write> ScreenOutput<W> {
    /// `screen` is what `out` goes to. `top` is how many methods the live view shows at most; without it there is none.
    pub fn new(out: W, screen: Screen, top: Option<usize>, data: Option<PathBuf>) -> Self {
        let view = LiveView::new(screen, top.unwrap_or_default());
        Self { out, view, is_live: top.is_some(), data, run: None, totals: Totals::default() }
    }

    /// Leaves energy of windows in which no sample hit a thread at `[no sample]`.
    #[must_use]
    pub fn without_inference(self) -> Self {
        Self { totals: self.totals.without_inference(), ..self }
    }

    #[cfg(test)]
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Output for ScreenOutput<W> {
    fn run_started(&mut self, run: &RunInfo) -> Result<()> {
        self.run = Some(run.clone());
        self.totals.run(run);
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo) {
        self.totals.process(process);
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        self.totals.process_ended(pid, start_boottime_ns);
    }

    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.totals.window(report, stacks);
        let Some(run) = self.run.as_ref().filter(|_| self.is_live) else { return Ok(()) };
        let text = self.view.text(run, &self.totals, report);
        self.write(&text).map_err(|source| OutputError::Stream { what: "the live view", source })
    }

    fn run_ended(&mut self, end: &RunEnd) -> Result<()> {
        self.totals.finish();
        let Some(run) = &self.run else { return Ok(()) };
        let text = summary(run, end, &self.totals, self.data.as_deref(), self.view.width());
        self.write(&text).map_err(|source| OutputError::Stream { what: "the summary", source })
    }
}
