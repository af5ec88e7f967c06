//! Runs the view on a thread of its own: draws when a window has come, something is typed or the terminal's size changes, and
//! sleeps otherwise.

use std::{
    io::{self, Read as _},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::event::Event,
    layout::{Position, Rect},
};

use super::{
    draw::{Palette, draw},
    feed::Feed,
    keys::action,
    state::{Effect, State},
    terminal::{self, Taken},
};
use crate::{messages, output::Screen};

/// What the user asks of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The run ends.
    Stop,
    /// A replay goes to its end at once.
    ToEnd,
}

/// Told what the user asks. It must not wait.
pub type Asked = Box<dyn FnMut(Ask) + Send>;

/// What wakes the view.
enum Wake {
    Event(Event),
    News,
    /// The run is over, the terminal has gone, or a signal says so.
    Close,
}

/// Events that wait at most; the terminal keeps what is typed beyond that.
const MAX_EVENTS: usize = 64;
/// How long the run waits at its end for a terminal that does not take what is written.
const CLOSING: Duration = Duration::from_secs(2);

/// The view while it is shown.
pub struct Session {
    wake: SyncSender<Wake>,
    /// Closed when the terminal is given back.
    shown: Receiver<()>,
}

impl Session {
    /// Takes the terminal over. These signals end the view, and with it the run.
    ///
    /// # Errors
    /// If the terminal cannot be taken over, or a thread cannot be started.
    pub fn start(feed: Arc<Feed>, asked: Asked, signals: &[i32]) -> io::Result<Self> {
        let (wake, woken) = sync_channel(MAX_EVENTS);
        let (end, shown) = sync_channel(0);
        let mut heard = terminal::heard(signals)?;
        let taken = Taken::take()?;
        let shown_there = Shown { run: Run { feed, asked }, woken, taken, end };
        thread::Builder::new().name("joular-view".to_owned()).spawn(move || shown_there.until_left())?;
        let typed = wake.clone();
        let listen = move || {
            terminal::listen(|event| typed.send(Wake::Event(event)).is_ok());
            let _ = typed.send(Wake::Close);
        };
        thread::Builder::new().name("joular-keys".to_owned()).spawn(listen)?;
        let told = wake.clone();
        let wait = move || {
            if heard.read_exact(&mut [0]).is_ok() {
                let _ = told.send(Wake::Close);
            }
        };
        thread::Builder::new().name("joular-signals".to_owned()).spawn(wait)?;
        Ok(Self { wake, shown })
    }

    /// Says that there is news in the feed. Does not wait.
    pub fn has_news(&self) {
        // If it is full, the view wakes anyway.
        match self.wake.try_send(Wake::News) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Gives the terminal back. A terminal that takes nothing is not waited for long.
    pub fn close(&self) {
        for _ in 0..2 {
            let _ = self.wake.try_send(Wake::Close);
            if self.shown.recv_timeout(CLOSING / 2) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}

/// The run that is shown. It does not go on unseen, whatever ends the view.
struct Run {
    feed: Arc<Feed>,
    asked: Asked,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.feed.close();
        (self.asked)(Ask::Stop);
    }
}

/// The part of the thread that draws.
struct Shown {
    run: Run,
    woken: Receiver<Wake>,
    taken: Taken,
    /// Tells [`Session::close`] that nothing is shown any more.
    end: SyncSender<()>,
}

impl Shown {
    fn until_left(mut self) {
        let messages = messages::Held::hold();
        let outcome = self.show(&messages);
        let Self { run, taken, end, .. } = self;
        drop(run);
        drop(taken);
        drop(messages);
        if let Err(error) = outcome {
            messages::warn(&format!("drawing on the terminal: {error}"));
        }
        drop(end);
    }

    fn show(&mut self, messages: &messages::Held) -> io::Result<()> {
        let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let has_colours = matches!(Screen::of(io::stdout()), Screen::Terminal { colours: true, .. });
        let palette = Palette { has_colours };
        let mut state = State::default();
        let mut seen = 0;
        loop {
            let (news, left_out) = self.run.feed.take();
            news.into_iter().for_each(|news| state.learn(news));
            state.left_out(left_out);
            terminal.autoresize()?;
            state.refresh(Rect::from((Position::ORIGIN, terminal.size()?)));
            let (said, last) = messages.last();
            let notice = last.filter(|_| said > seen);
            terminal.draw(|frame| draw(frame, &state, palette, notice.as_deref()))?;
            let Ok(first) = self.woken.recv() else { return Ok(()) };
            for wake in std::iter::once(first).chain(self.woken.try_iter().take(MAX_EVENTS)) {
                let Wake::Event(event) = wake else {
                    if matches!(wake, Wake::Close) {
                        return Ok(());
                    }
                    continue;
                };
                let Some(action) = action(&event, state.mode) else { continue };
                seen = said;
                match state.apply(action) {
                    Effect::Quit => return Ok(()),
                    Effect::ToEnd => (self.run.asked)(Ask::ToEnd),
                    Effect::None => {}
                }
            }
        }
    }
}
