//! Shows the live view. On a terminal it is a table that is redrawn in place: the cursor goes back
//! up over the last table and clears from there. So the text above stays, nothing has to be
//! restored at the end, and the last table remains. Anywhere else it is one line per window,
//! without any escape code.

use std::{env, ffi::OsStr, io::IsTerminal, os::fd::AsFd};

use joular_data::{attribution::window_report::WindowReport, events::RunInfo, text::line::Size, totals::Totals};

use super::live_text;

/// What the view is shown on.
pub enum Screen {
    Terminal {
        /// Asked before every table, so that the view follows a resized terminal.
        size: Box<dyn Fn() -> Size>,
        colours: bool,
    },
    /// A file, a pipe, or a terminal that only takes lines.
    Stream,
}

impl Screen {
    /// Finds out what `stream` is, and what the environment says of terminals.
    pub fn of(stream: impl AsFd + IsTerminal + 'static) -> Self {
        let (term, no_color) = (env::var_os("TERM"), env::var_os("NO_COLOR"));
        let Some(colours) = colours(stream.is_terminal(), term.as_deref(), no_color.as_deref()) else {
            return Self::Stream;
        };
        let size = move || {
            rustix::termios::tcgetwinsize(&stream)
                .map_or(Size::DEFAULT, |size| Size::new(size.ws_col.into(), size.ws_row.into()))
        };
        Self::Terminal { size: Box::new(size), colours }
    }

    /// How wide tables may be; `None`: as wide as they are.
    pub fn width(&self) -> Option<usize> {
        match self {
            Self::Terminal { size, .. } => Some(size().width),
            Self::Stream => None,
        }
    }
}

/// Whether a stream shows colours; `None` if it takes no escape codes at all: it is not a terminal, or `TERM` does not say
/// that it understands them. `NO_COLOR` is that of <https://no-color.org>: an empty one says nothing.
fn colours(is_terminal: bool, term: Option<&OsStr>, no_color: Option<&OsStr>) -> Option<bool> {
    let takes_codes = is_terminal && term.is_some_and(|term| !term.is_empty() && term != "dumb");
    takes_codes.then(|| no_color.is_none_or(OsStr::is_empty))
}

/// What is on the screen while a run lasts.
pub(super) struct LiveView {
    screen: Screen,
    /// Most methods shown.
    top: usize,
    /// Lines of the table on screen, and the size it was made for.
    shown: Option<(usize, Size)>,
}

impl LiveView {
    pub(super) const fn new(screen: Screen, top: usize) -> Self {
        Self { screen, top, shown: None }
    }

    /// As [`Screen::width`].
    pub(super) fn width(&self) -> Option<usize> {
        self.screen.width()
    }

    /// What a window adds to the screen, to be written at once: nothing flickers then.
    pub(super) fn text(&mut self, run: &RunInfo, totals: &Totals, report: &WindowReport) -> String {
        match &self.screen {
            Screen::Stream => live_text::line(run, totals, report),
            Screen::Terminal { size, colours } => {
                let size = size();
                let lines = live_text::lines(run, totals, report, size, self.top);
                let erase = erase(self.shown, size);
                self.shown = Some((lines.len(), size));
                let drawn: String = lines.iter().map(|line| line.draw(*colours) + "\n").collect();
                format!("{erase}{drawn}")
            }
        }
    }
}

/// Escape codes that remove the last table. After a resize its lines may have been wrapped and can
/// no longer be counted, so the screen is cleared.
fn erase(shown: Option<(usize, Size)>, size: Size) -> String {
    match shown {
        None | Some((0, _)) => String::new(),
        Some((lines, before)) if before == size => format!("\r\x1b[{lines}A\x1b[J"),
        Some(_) => "\x1b[H\x1b[J".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use joular_data::{
        events::{ProcessInfo, RunEnd},
        fixture::{self, SMALL},
        output::{Output, Result},
        stacks::StackTable,
    };

    use super::*;

    /// All that a view says.
    struct Shown {
        view: LiveView,
        totals: Totals,
        text: String,
    }

    impl Output for Shown {
        fn run_started(&mut self, _run: &RunInfo) -> Result<()> {
            Ok(())
        }

        fn process(&mut self, process: &ProcessInfo) {
            self.totals.process(process);
        }

        fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
            self.totals.window(report, stacks);
            self.text += &self.view.text(&fixture::run(), &self.totals, report);
            Ok(())
        }

        fn run_ended(&mut self, _end: &RunEnd) -> Result<()> {
            Ok(())
        }
    }

    fn shown(screen: Screen, windows: u64) -> String {
        let view = LiveView::new(screen, 20);
        let mut shown = Shown { view, totals: Totals::default(), text: String::new() };
        fixture::play(&mut shown, SMALL, windows).unwrap();
        shown.text
    }

    #[test]
    fn a_pipe_gets_a_line_per_window_and_no_escape_code() {
        let text = shown(Screen::Stream, 3);
        assert_eq!(text.lines().count(), 3);
        assert!(!text.contains('\x1b'));
        assert!(text.lines().all(|line| line.contains("(modelled)")), "{text}");
    }

    #[test]
    fn a_terminal_is_redrawn_in_place() {
        let text = shown(Screen::Terminal { size: Box::new(|| Size::new(80, 24)), colours: false }, 2);
        let (first, second) = text.split_once("\r\x1b[").unwrap();
        let (up, second) = second.split_once("A\x1b[J").unwrap();
        assert_eq!(up, first.lines().count().to_string());
        assert!(!first.contains('\x1b') && !second.contains('\x1b'));
    }

    #[test]
    fn a_file_is_a_stream() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(Screen::of(null), Screen::Stream));
    }

    #[test]
    fn a_terminal_has_codes_and_colours_as_the_environment_says() {
        for (is_terminal, term, no_color, expected) in [
            (true, Some("xterm-256color"), None, Some(true)),
            (true, Some("xterm-256color"), Some(""), Some(true)),
            (true, Some("xterm-256color"), Some("1"), Some(false)),
            (true, Some("xterm-256color"), Some("0"), Some(false)),
            (true, Some("linux"), None, Some(true)),
            (true, Some("dumb"), None, None),
            (true, Some("dumb"), Some("1"), None),
            (true, Some(""), None, None),
            (true, None, None, None),
            (false, Some("xterm-256color"), None, None),
            (false, None, Some("1"), None),
        ] {
            let found = colours(is_terminal, term.map(OsStr::new), no_color.map(OsStr::new));
            assert_eq!(found, expected, "{is_terminal} {term:?} {no_color:?}");
        }
    }

    #[test]
    fn a_resized_terminal_is_cleared() {
        let width = Cell::new(80);
        let size = move || Size::new(width.replace(width.get() + 1), 24);
        let text = shown(Screen::Terminal { size: Box::new(size), colours: false }, 2);
        assert_eq!(text.matches("\x1b[H\x1b[J").count(), 1);
    }
}
