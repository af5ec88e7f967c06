//! Says what a key or the mouse means.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};

use super::rows::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    Show(View),
    StepView {
        is_next: bool,
    },
    StepSort {
        is_next: bool,
    },
    Reverse,
    StepHorizon {
        longer: bool,
    },
    StepChart,
    Move(Motion),
    Enter,
    Up,
    /// Opens or closes a node of the tree.
    Open(bool),
    Pause,
    Help,
    /// A replay goes to its end at once.
    ToEnd,
    BeginFilter,
    Type(char),
    Erase,
    EndFilter,
    CancelFilter,
    Click {
        x: u16,
        y: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    By(isize),
    Page(isize),
    First,
    Last,
}

/// What keys are for at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Plain,
    /// A filter is typed.
    Typing,
    /// The help covers the view.
    Help,
}

/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;

/// `None`: it means nothing.
pub fn action(event: &Event, mode: Mode) -> Option<Action> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(*key, mode),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) if mode == Mode::Help => Some(Action::Help),
            MouseEventKind::Down(MouseButton::Left) => Some(Action::Click { x: mouse.column, y: mouse.row }),
            MouseEventKind::ScrollDown => Some(Action::Move(Motion::By(WHEEL))),
            MouseEventKind::ScrollUp => Some(Action::Move(Motion::By(-WHEEL))),
            _ => None,
        },
        _ => None,
    }
}

fn of_key(key: KeyEvent, mode: Mode) -> Option<Action> {
    let with = |modifier| key.modifiers.contains(modifier);
    match (key.code, mode) {
        (KeyCode::Char('c'), _) if with(KeyModifiers::CONTROL) => Some(Action::Quit),
        (code, Mode::Typing) => while_typing(code, with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT)),
        (KeyCode::Char('q'), _) => Some(Action::Quit),
        (_, Mode::Help) => Some(Action::Help),
        (KeyCode::Char(_), Mode::Plain) if with(KeyModifiers::CONTROL) || with(KeyModifiers::ALT) => None,
        (code, Mode::Plain) => plain(code),
    }
}

const fn while_typing(code: KeyCode, has_modifier: bool) -> Option<Action> {
    match code {
        KeyCode::Char(c) if !has_modifier => Some(Action::Type(c)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::EndFilter),
        KeyCode::Esc => Some(Action::CancelFilter),
        KeyCode::Up => Some(Action::Move(Motion::By(-1))),
        KeyCode::Down => Some(Action::Move(Motion::By(1))),
        _ => None,
    }
}

const fn plain(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('1') => Action::Show(View::Processes),
        KeyCode::Char('2') => Action::Show(View::Threads),
        KeyCode::Char('3') => Action::Show(View::Methods),
        KeyCode::Char('4') => Action::Show(View::Branches),
        KeyCode::Tab => Action::StepView { is_next: true },
        KeyCode::BackTab => Action::StepView { is_next: false },
        KeyCode::Char('s' | '>') => Action::StepSort { is_next: true },
        KeyCode::Char('<') => Action::StepSort { is_next: false },
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('+' | '=') => Action::StepHorizon { longer: true },
        KeyCode::Char('-') => Action::StepHorizon { longer: false },
        KeyCode::Char('d') => Action::StepChart,
        KeyCode::Char('f') => Action::ToEnd,
        KeyCode::Char('/') => Action::BeginFilter,
        KeyCode::Char(' ' | 'p') => Action::Pause,
        KeyCode::Char('h' | '?') | KeyCode::F(1) => Action::Help,
        KeyCode::Enter => Action::Enter,
        KeyCode::Esc | KeyCode::Backspace => Action::Up,
        KeyCode::Right => Action::Open(true),
        KeyCode::Left => Action::Open(false),
        KeyCode::Up | KeyCode::Char('k') => Action::Move(Motion::By(-1)),
        KeyCode::Down | KeyCode::Char('j') => Action::Move(Motion::By(1)),
        KeyCode::PageUp => Action::Move(Motion::Page(-1)),
        KeyCode::PageDown => Action::Move(Motion::Page(1)),
        KeyCode::Home | KeyCode::Char('g') => Action::Move(Motion::First),
        KeyCode::End | KeyCode::Char('G') => Action::Move(Motion::Last),
        _ => return None,
    })
}

/// Keys and what they do, for the help.
pub const HELP: [(&str, &str); 15] = [
    ("1 2 3 4 Tab", "processes, threads, methods, branches"),
    ("↑ ↓ PgUp PgDn", "choose a row; also Home, End and the wheel"),
    ("Enter", "go into a process, a thread or a method"),
    ("Esc Backspace", "go back up; take the filter away"),
    ("→ ←", "open and close a branch; so does Enter"),
    ("s > <", "sort by the next column, by the one before"),
    ("r", "sort the other way round"),
    ("/", "filter by a part of a name; also by a pid"),
    ("+ -", "watts over 1 window, 10 s, 60 s, all"),
    ("d", "draw all energy, targets, or one domain"),
    ("Space p", "hold the view; recording goes on"),
    ("f", "go to the end of a replay at once"),
    ("mouse", "click a row, a heading to sort, a view"),
    ("h ?", "this help"),
    ("q Ctrl-C", "quit"),
];

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::MouseEvent;

    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers, mode: Mode) -> Option<Action> {
        action(&Event::Key(KeyEvent::new(code, modifiers)), mode)
    }

    fn char(c: char, mode: Mode) -> Option<Action> {
        key(KeyCode::Char(c), KeyModifiers::NONE, mode)
    }

    #[test]
    fn keys_do_what_the_help_says() {
        for (c, expected) in [
            ('q', Action::Quit),
            ('1', Action::Show(View::Processes)),
            ('4', Action::Show(View::Branches)),
            ('s', Action::StepSort { is_next: true }),
            ('<', Action::StepSort { is_next: false }),
            ('r', Action::Reverse),
            ('/', Action::BeginFilter),
            (' ', Action::Pause),
            ('p', Action::Pause),
            ('?', Action::Help),
            ('h', Action::Help),
            ('+', Action::StepHorizon { longer: true }),
            ('-', Action::StepHorizon { longer: false }),
            ('f', Action::ToEnd),
        ] {
            assert_eq!(char(c, Mode::Plain), Some(expected), "{c}");
        }
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE, Mode::Plain), Some(Action::Up));
        assert_eq!(key(KeyCode::Char('x'), KeyModifiers::NONE, Mode::Plain), None);
        assert_eq!(key(KeyCode::Char('p'), KeyModifiers::CONTROL, Mode::Plain), None);
    }

    #[test]
    fn a_filter_takes_every_character_and_ctrl_c_always_quits() {
        for c in ['q', '1', '/', ' ', 'é'] {
            assert_eq!(char(c, Mode::Typing), Some(Action::Type(c)));
        }
        for mode in [Mode::Plain, Mode::Typing, Mode::Help] {
            assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL, mode), Some(Action::Quit));
        }
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE, Mode::Typing), Some(Action::CancelFilter));
        assert_eq!(char('x', Mode::Help), Some(Action::Help), "any key closes the help");
        assert_eq!(char('q', Mode::Help), Some(Action::Quit));
    }

    #[test]
    fn the_mouse_clicks_and_scrolls() {
        let mouse = |kind| Event::Mouse(MouseEvent { kind, column: 3, row: 4, modifiers: KeyModifiers::NONE });
        let click = MouseEventKind::Down(MouseButton::Left);
        assert_eq!(action(&mouse(click), Mode::Plain), Some(Action::Click { x: 3, y: 4 }));
        assert_eq!(action(&mouse(click), Mode::Help), Some(Action::Help));
        let wheel = mouse(MouseEventKind::ScrollUp);
        assert_eq!(action(&wheel, Mode::Plain), Some(Action::Move(Motion::By(-3))));
        assert_eq!(action(&mouse(MouseEventKind::Moved), Mode::Plain), None);
    }
}
