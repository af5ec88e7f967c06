//! Shows the live view. On a terminal it is a table that is redrawn in place: the cursor goes back up over the last
//! table, and each line is erased and written again. So the text above stays, nothing has to be restored at the end, and
//! the last table remains. Whole screens are never erased: terminals such as tmux would keep each in their history.
//! Anywhere else it is one line per window, without any escape code.

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
                let lines: Vec<String> = lines.iter().map(|line| line.draw(*colours) + "\n").collect();
                let to_first = to_first_line(self.shown, size);
                self.shown = Some((lines.len(), size));
                match to_first {
                    None => lines.concat(),
                    Some(to_first) => over(&to_first, &lines),
                }
            }
        }
    }
}

/// The escape code that brings the cursor to the first line of the last table, if there is one. After a resize its lines
/// may have been wrapped and can no longer be counted, so that is the first line of the screen.
fn to_first_line(shown: Option<(usize, Size)>, size: Size) -> Option<String> {
    match shown {
        None | Some((0, _)) => None,
        Some((lines, before)) if before == size => Some(format!("\r\x1b[{lines}A")),
        Some(_) => Some("\x1b[H".to_owned()),
    }
}

/// Lines over those that are there from the cursor on. Each is erased before it is written: behind a full line the
/// cursor has no place of its own, so that erasing there would take the last letter.
fn over(to_first: &str, lines: &[String]) -> String {
    let written: String = lines.iter().map(|line| format!("\x1b[K{line}")).collect();
    format!("{to_first}{written}\x1b[J")
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
        let (up, second) = second.split_once('A').unwrap();
        assert_eq!(up, first.lines().count().to_string());
        let lines = second.strip_suffix("\x1b[J").unwrap();
        assert!(lines.lines().all(|line| line.starts_with("\x1b[K")), "{lines}");
        assert!(!first.contains('\x1b') && !lines.replace("\x1b[K", "").contains('\x1b'));
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
    fn a_resized_terminal_is_drawn_anew_from_its_first_line() {
        let width = Cell::new(80);
        let size = move || Size::new(width.replace(width.get() + 1), 24);
        let text = shown(Screen::Terminal { size: Box::new(size), colours: false }, 2);
        assert_eq!((text.matches("\x1b[H\x1b[K").count(), text.matches("\x1b[J").count()), (1, 1));
    }

    /// What a terminal of some lines shows, and what it has scrolled away. It knows the codes that the view uses.
    struct Emulated {
        rows: Vec<String>,
        row: usize,
        gone: Vec<String>,
        /// Times that it was erased from its first place on, which tmux keeps in its history.
        erased_whole: usize,
    }

    impl Emulated {
        fn write(&mut self, text: &str) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '\n' if self.row + 1 == self.rows.len() => {
                        self.gone.push(self.rows.remove(0));
                        self.rows.push(String::new());
                    }
                    '\n' => self.row += 1,
                    '\r' => {}
                    '\x1b' => {
                        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                        let count = rest[1..end].parse().unwrap_or(1);
                        match &rest[end..=end] {
                            "A" => self.row = self.row.saturating_sub(count),
                            "H" => self.row = 0,
                            "K" => self.rows[self.row].clear(),
                            "J" => {
                                self.erased_whole += usize::from(self.row == 0);
                                self.rows[self.row..].iter_mut().for_each(String::clear);
                            }
                            other => panic!("{other}"),
                        }
                        rest = &rest[end + 1..];
                    }
                    c => self.rows[self.row].push(c),
                }
            }
        }
    }

    #[test]
    fn nothing_scrolls_away_but_what_was_there_before_and_the_last_table_stands_alone() {
        for height in [2, 12, 24, 60] {
            let size = Size::new(80, height);
            let mut screen = Emulated { rows: vec![String::new(); height], row: 0, gone: Vec::new(), erased_whole: 0 };
            screen.write(&"before\n".repeat(height));
            let view = LiveView::new(Screen::Terminal { size: Box::new(move || size), colours: false }, 20);
            let mut shown = Shown { view, totals: Totals::default(), text: String::new() };
            fixture::play(&mut shown, SMALL, 5).unwrap();
            screen.write(&shown.text);
            assert!(screen.gone.iter().all(|line| line == "before"), "{height}: {:?}", screen.gone);
            assert_eq!(screen.erased_whole, 0);
            let titles = |rows: &[String]| rows.iter().filter(|row| row.starts_with("joular-bpf")).count();
            assert_eq!(titles(&screen.rows), 1, "{height}: {:?}", screen.rows);
            assert!(screen.rows.iter().any(|row| row.contains("window 4")), "{height}: {:?}", screen.rows);
        }
    }
}
