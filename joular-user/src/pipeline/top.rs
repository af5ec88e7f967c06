//! Runs what is shown on the whole terminal: a recording until its watcher leaves, or a replay that takes as long as what was
//! recorded, and stays.

use std::{
    fs::File,
    pin::Pin,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use joular_data::{events::Event, model::units::MonotonicNs, output::Output};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tokio::sync::oneshot;

use super::{Consumer, Failure, Outputs, Until, exit_of, record_with, replay};
use crate::{
    cli::Exit,
    config::{Config, Input},
    messages,
    shutdown::StopReason,
    top::{Ask, AtEnd, TopOutput},
};

/// What watches a recording.
pub(super) struct Watched {
    pub view: Box<dyn Output>,
    /// Resolves when it has left.
    pub left: Pin<Box<dyn Future<Output = StopReason>>>,
}

/// Signals that end the view of a recording, beside those that end every recording.
const OF_A_RECORDING: &[i32] = &[SIGHUP, SIGQUIT];
const OF_A_REPLAY: &[i32] = &[SIGHUP, SIGQUIT, SIGINT, SIGTERM];

/// Shows what the configuration says.
///
/// # Errors
/// As those of a recording or a replay, or if the terminal cannot be taken over.
pub fn show(config: &Config) -> Result<Exit, Failure> {
    match &config.input {
        Input::Live(live) => {
            let recorded = record_with(config, live, Until::Left(watched()))?;
            say_where(config);
            Ok(exit_of(&recorded, live))
        }
        Input::Replay(recording) => {
            let file =
                File::open(recording).map_err(|source| Failure::OpenRecording { path: recording.into(), source })?;
            let (to, asks) = channel();
            let asked = Box::new(move |ask| {
                // That the replay is over already is not an error.
                let _over = to.send(ask);
            });
            let mut outputs = Outputs::open(config, None)?.outputs;
            outputs.push(Box::new(TopOutput::new(AtEnd::Stay, OF_A_REPLAY, asked)));
            let mut consumer = Consumer::new(outputs, None, config.redaction.clone());
            let mut pace = Pace::new(asks);
            let outcome = replay::replay(file, config, &mut consumer, |event| pace.goes_on(event));
            if outcome.is_ok() {
                pace.wait_for_stop();
            }
            consumer.finish()?;
            outcome.map_err(|source| Failure::Replay { path: recording.into(), source })?;
            say_where(config);
            Ok(Exit::Success)
        }
    }
}

fn say_where(config: &Config) {
    if let Some(path) = &config.output {
        messages::info(&format!("the data set is in {}", path.display()));
    }
}

fn watched() -> Watched {
    let (to, left) = oneshot::channel();
    let mut to = Some(to);
    let asked = move |ask| {
        if ask == Ask::Stop
            && let Some(to) = to.take()
        {
            let _over = to.send(());
        }
    };
    let view = Box::new(TopOutput::new(AtEnd::Close, OF_A_RECORDING, Box::new(asked)));
    let left = Box::pin(async move {
        // A view that ended without saying so has left, too.
        let _ = left.await;
        StopReason::Quit
    });
    Watched { view, left }
}

/// Lets windows pass at the times at which they were recorded.
struct Pace {
    asks: Receiver<Ask>,
    /// When the first window began, here and there.
    began: Option<(Instant, MonotonicNs)>,
    is_over: bool,
    has_time: bool,
}

impl Pace {
    const fn new(asks: Receiver<Ask>) -> Self {
        Self { asks, began: None, is_over: false, has_time: true }
    }

    /// Waits until a window has ended. Returns whether the user still watches.
    fn goes_on(&mut self, event: &Event) -> bool {
        match event {
            Event::RunStarted(_) => self.began = None,
            Event::Window(window) => {
                let (began, start) = *self.began.get_or_insert_with(|| (Instant::now(), window.start));
                self.wait_until(began + Duration::from_nanos(window.end.since(start)));
            }
            _ => {}
        }
        !self.is_over
    }

    fn wait_until(&mut self, moment: Instant) {
        loop {
            let left = if self.has_time { moment.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
            match self.asks.recv_timeout(left) {
                Ok(Ask::ToEnd) => self.has_time = false,
                Ok(Ask::Stop) | Err(RecvTimeoutError::Disconnected) => return self.is_over = true,
                Err(RecvTimeoutError::Timeout) => return,
            }
        }
    }

    /// Until the user leaves.
    fn wait_for_stop(&self) {
        while !self.is_over && self.asks.recv().is_ok_and(|ask| ask != Ask::Stop) {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use joular_data::events::Window;

    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    fn window(index: u64) -> Event {
        let at = |index: u64| MonotonicNs(1 + index * HOUR_NS);
        Event::Window(Box::new(Window { start: at(index), end: at(index + 1), ..Window::default() }))
    }

    fn pace(asks: &[Ask]) -> (Pace, Sender<Ask>) {
        let (to, from) = channel();
        asks.iter().for_each(|ask| to.send(*ask).unwrap());
        (Pace::new(from), to)
    }

    #[test]
    fn who_wants_the_end_does_not_wait_an_hour_for_each_window() {
        let (mut pace, to) = pace(&[Ask::ToEnd]);
        assert!((0..100).all(|index| pace.goes_on(&window(index))));
        to.send(Ask::Stop).unwrap();
        assert!(!pace.goes_on(&window(100)));
        pace.wait_for_stop();
    }

    #[test]
    fn who_leaves_ends_the_replay_while_it_waits() {
        let (mut pace, _to) = pace(&[Ask::Stop]);
        assert!(!pace.goes_on(&window(0)));
        // And a view that ended without saying so.
        let (mut pace, to) = self::pace(&[]);
        drop(to);
        assert!(!pace.goes_on(&window(0)));
    }
}
