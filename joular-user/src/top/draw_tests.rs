use joular_data::{
    events::RunInfo,
    fixture::{self, BUSY, SMALL},
};
use ratatui::{Terminal, backend::TestBackend, layout::Rect};

use super::{
    super::{
        keys::{Action, Motion},
        testing,
    },
    *,
};
use crate::output::snapshot::check_snapshot_in;

/// The text of the view, line by line.
fn drawn(state: &State, notice: Option<&str>) -> String {
    let Rect { width, height, .. } = Rect::new(0, 0, state.places().header.width, state.places().footer.bottom());
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Palette { has_colours: true }, notice)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(line).collect()
}

fn state(size: (u16, u16), actions: &[Action]) -> State {
    let mut state = testing::state(fixture::run(), SMALL, 12, size);
    for action in actions {
        state.apply(*action);
    }
    state
}

#[test]
fn every_view_is_as_reviewed_on_large_and_small_terminals() {
    for view in View::ALL {
        for size in [(80, 24), (40, 12)] {
            let text = drawn(&state(size, &[Action::Show(view)]), None);
            check_snapshot_in("top", &format!("{}-{}x{}.txt", view.name(), size.0, size.1), &text);
        }
    }
}

#[test]
fn the_help_is_as_reviewed_and_fits_small_terminals() {
    check_snapshot_in("top", "help-80x24.txt", &drawn(&state((80, 24), &[Action::Help]), None));
    let small = drawn(&state((40, 12), &[Action::Help]), None);
    assert!(small.contains("Keys") && small.lines().count() == 12, "{small}");
}

#[test]
fn what_one_is_in_what_is_typed_and_what_was_said_stand_below() {
    let footer =
        |actions: &[Action], notice| drawn(&state((80, 24), actions), notice).lines().last().unwrap().to_owned();
    assert_eq!(footer(&[Action::Move(Motion::By(1)), Action::Enter], None).find("in "), Some(0));
    let typed = [Action::BeginFilter, Action::Type('g'), Action::Type('c')];
    assert!(footer(&typed, Some("never mind")).starts_with("/gc_"));
    assert!(footer(&[&typed[..], &[Action::EndFilter]].concat(), None).contains("filter: gc"));
    assert_eq!(footer(&[], Some("a counter could not be read")), "a counter could not be read");
    let header = drawn(&state((80, 24), &[Action::Pause]), None);
    assert!(header.lines().next().unwrap().contains("HELD"), "{header}");
}

#[test]
fn nothing_is_drawn_beyond_any_terminal_and_no_size_fails() {
    let mut state = testing::state(fixture::run(), BUSY, 3, (80, 24));
    for size in [(0, 0), (1, 1), (3, 2), (7, 5), (20, 9), (40, 12), (59, 17), (300, 100), (80, 24)] {
        for view in View::ALL {
            state.apply(Action::Show(view));
            for action in [Action::Help, Action::Help, Action::StepChart] {
                state.refresh(Rect::new(0, 0, size.0, size.1));
                state.apply(action);
                let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
                terminal.draw(|frame| draw(frame, &state, Palette { has_colours: false }, None)).unwrap();
            }
        }
    }
}

#[test]
fn names_of_processes_do_nothing_on_the_terminal() {
    let run = RunInfo { host: "a\x1b[2Jb".into(), energy_source: "c\x1b[2Jd".into(), ..fixture::run() };
    let text = drawn(&testing::state(run, SMALL, 2, (120, 24)), None);
    assert!(!text.contains('\x1b') && text.contains("a\\x1b[2Jb") && text.contains("c\\x1b[2Jd"), "{text}");
}

#[test]
fn before_the_first_window_the_view_says_so() {
    let text = drawn(&testing::state(fixture::run(), SMALL, 0, (40, 12)), None);
    assert!(text.contains("Waiting for the first window"), "{text}");
}

#[test]
fn bars_are_of_the_last_windows_and_share_them_where_there_are_more() {
    let state = testing::state(fixture::run(), SMALL, 20, (80, 24));
    let one_each = power(&state, 30);
    assert_eq!(one_each.len(), 20);
    let shared = power(&state, 10);
    assert_eq!(shared.len(), 10);
    assert_eq!(shared[0], u64::midpoint(one_each[0], one_each[1]));
    assert_eq!(power(&state, 0).len(), 1);
}
