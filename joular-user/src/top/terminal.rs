//! Takes the terminal over and gives it back as it was: at the end, after an error, after a panic and at signals.

use std::{
    io::{self, IsTerminal as _, Write as _},
    os::unix::net::UnixStream,
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use joular_data::caught;
use ratatui::crossterm::{
    cursor,
    event::{self, Event},
    execute,
    style::Print,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use signal_hook::low_level::pipe;

use crate::output::Screen;

/// Clicks and the wheel, with places beyond column 223. Moves would wake the program all the time.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// Why the view cannot be shown here; `None`: it can.
pub fn unfit() -> Option<&'static str> {
    if !io::stdout().is_terminal() {
        Some("standard output is not a terminal")
    } else if matches!(Screen::of(io::stdout()), Screen::Stream) {
        Some("TERM does not name a terminal that understands escape codes")
    } else if !io::stdin().is_terminal() && std::fs::File::open("/dev/tty").is_err() {
        Some("there is no terminal to read keys from")
    } else {
        None
    }
}

/// The terminal is ours as long as it lives.
pub struct Taken(());

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

impl Taken {
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let say = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                // A message on the alternate screen would be gone with it.
                if !caught::is_catching() {
                    give_back();
                }
                say(panic);
            }));
        });
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let taken = Self(());
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, Print(MOUSE_ON))?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Once, whoever comes first. That the terminal has gone is not an error.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), Print(MOUSE_OFF), LeaveAlternateScreen, cursor::Show);
        let _ = io::stdout().flush();
        let _ = disable_raw_mode();
    }
}

/// Hands on keys, clicks and new sizes of the terminal, until `to` returns false or the terminal is gone.
pub fn listen(mut to: impl FnMut(Event) -> bool) {
    while let Ok(event) = event::read() {
        if !to(event) {
            return;
        }
    }
}

/// A stream from which a byte can be read for each of these signals, which do nothing else from now on.
pub fn heard(signals: &[i32]) -> io::Result<UnixStream> {
    let (heard, told) = UnixStream::pair()?;
    for signal in signals {
        pipe::register(*signal, told.try_clone()?)?;
    }
    Ok(heard)
}
