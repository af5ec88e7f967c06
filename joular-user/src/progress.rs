//! Shows on a terminal how far a long step is. Elsewhere nothing is shown: logs and pipes get results and messages only.

use std::{io, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Screen;

/// A bar on standard error, which goes when this is dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// So many steps are to be done. `label` says what.
    pub fn of_steps(label: &str, steps: u64) -> Self {
        Self::styled(ProgressBar::new(steps), "{msg} {wide_bar} {pos}/{len}, {eta} left", label)
    }

    /// Nobody knows how long it takes.
    pub fn waiting(label: &str) -> Self {
        Self::styled(ProgressBar::new_spinner(), "{spinner} {msg} ({elapsed})", label)
    }

    fn styled(bar: ProgressBar, template: &str, label: &str) -> Self {
        if matches!(Screen::of(io::stderr()), Screen::Stream) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(label.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// One step more is done.
    pub fn step(&self) {
        self.0.inc(1);
    }

    pub fn say(&self, label: &str) {
        self.0.set_message(label.to_owned());
    }

    /// Prints something else meanwhile.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
