use joular_data::fixture::{self, SMALL};

use super::{
    super::{figures::Figures, testing},
    *,
};

fn state(windows: u64) -> State {
    testing::state(fixture::run(), SMALL, windows, (80, 24))
}

fn names(state: &State) -> Vec<&str> {
    state.rows.iter().map(|row| row.name.as_str()).collect()
}

fn type_in(state: &mut State, text: &str) {
    state.apply(Action::BeginFilter);
    for c in text.chars() {
        state.apply(Action::Type(c));
    }
    state.apply(Action::EndFilter);
}

#[test]
fn who_goes_into_a_process_a_thread_and_a_method_comes_back_as_it_was() {
    let mut state = state(3);
    assert_eq!((state.view, state.rows.len()), (View::Processes, 2));
    state.apply(Action::Move(Motion::By(1)));
    let process = state.row().unwrap().name.clone();
    let mut shown = Vec::new();
    for view in [View::Threads, View::Methods, View::Branches] {
        state.apply(Action::Enter);
        assert_eq!(state.view, view);
        shown.push(state.rows.len());
    }
    assert_eq!(shown[0], 3, "threads of one process only");
    assert_eq!(state.within().next(), Some(process.as_str()));
    assert_eq!(state.within().count(), 3);
    for (view, within) in [(View::Methods, 2), (View::Threads, 1), (View::Processes, 0), (View::Processes, 0)] {
        state.apply(Action::Up);
        assert_eq!((state.view, state.within().count()), (view, within));
    }
    assert_eq!(state.row().unwrap().name, process);
}

#[test]
fn what_is_within_something_stays_within_it_in_every_view() {
    let mut state = state(3);
    state.apply(Action::Enter);
    let energy = |state: &State| state.units.whole;
    let whole = energy(&state);
    for view in View::ALL {
        state.apply(Action::Show(view));
        assert_eq!((energy(&state), state.within().count()), (whole, 1), "{view:?}");
    }
    // Into the same process once more.
    state.apply(Action::Show(View::Processes));
    state.apply(Action::Enter);
    assert_eq!((state.view, state.within().count()), (View::Threads, 1));
}

#[test]
fn a_filter_is_typed_kept_and_taken_away() {
    let mut state = state(3);
    state.apply(Action::Show(View::Threads));
    let all = state.rows.len();
    type_in(&mut state, "GC\u{1b}");
    assert_eq!((state.filter.as_str(), state.mode), ("GC", Mode::Plain));
    assert!(state.rows.len() < all && !state.rows.is_empty());
    assert!(names(&state).iter().all(|name| name.contains("GC")));
    // Inside of what it found it does not hold, and above it does again.
    state.apply(Action::Enter);
    assert_eq!(state.filter, "");
    state.apply(Action::Up);
    assert_eq!(state.filter, "GC");
    state.apply(Action::Up);
    assert_eq!((state.filter.as_str(), state.rows.len()), ("", all));
    type_in(&mut state, &"x".repeat(500));
    assert_eq!((state.filter.len(), state.rows.len(), state.at), (MAX_FILTER, 0, 0));
    state.apply(Action::Enter);
    state.apply(Action::Move(Motion::Last));
    assert_eq!(state.view, View::Threads, "there is no row to go into");
}

#[test]
fn a_held_view_stays_while_windows_come() {
    let mut state = state(3);
    let before = (state.sums().run.windows, state.units.whole);
    state.apply(Action::Pause);
    let now = state.sums().run.clone();
    let sums = joular_data::totals::RunSums { windows: now.windows + 1, ..now.clone() };
    state.learn(News::Window(Box::new(Figures { sums, now, length_ns: fixture::SECOND, ..Figures::default() })));
    state.apply(Action::Show(View::Methods));
    assert_eq!((state.sums().run.windows, state.units.whole), before);
    state.apply(Action::Pause);
    assert_eq!(state.sums().run.windows, before.0 + 1);
}

#[test]
fn the_chosen_row_stays_chosen_when_others_pass_it() {
    let mut state = state(3);
    state.apply(Action::Show(View::Threads));
    state.apply(Action::Move(Motion::Last));
    let last = state.row().unwrap().name.clone();
    state.apply(Action::Reverse);
    assert_eq!((state.row().unwrap().name.clone(), state.at), (last, 0));
    // The first row is whatever is first.
    state.apply(Action::Move(Motion::First));
    let first = state.row().unwrap().name.clone();
    state.apply(Action::Reverse);
    assert_eq!(state.at, 0);
    assert_ne!(state.row().unwrap().name, first);
}

#[test]
fn rows_scroll_so_that_the_chosen_one_is_seen() {
    let mut state = testing::state(fixture::run(), fixture::BUSY, 2, (80, 24));
    state.apply(Action::Show(View::Threads));
    let height = usize::from(state.places().rows.height);
    for (motion, at) in [
        (Motion::By(1), 1),
        (Motion::Page(1), 1 + height),
        (Motion::By(-3), height - 2),
        (Motion::Last, 119),
        (Motion::Page(1), 119),
        (Motion::First, 0),
        (Motion::By(-1), 0),
    ] {
        state.apply(Action::Move(motion));
        assert_eq!(state.at, at, "{motion:?}");
        assert!((state.offset..state.offset + height).contains(&state.at), "{motion:?}: {}", state.offset);
    }
    state.refresh(Rect::new(0, 0, 40, 12));
    state.refresh(Rect::new(0, 0, 0, 0));
}

#[test]
fn clicks_choose_rows_sort_by_columns_and_change_views() {
    let mut state = state(3);
    let places = state.places();
    let click = |state: &mut State, x: u16, y: u16| {
        state.apply(Action::Click { x, y });
    };
    click(&mut state, 30, places.rows.y + 1);
    assert_eq!(state.at, 1);
    click(&mut state, 30, places.rows.y + 9);
    assert_eq!(state.at, 1, "there is no row");
    click(&mut state, 2, places.heading.y);
    assert_eq!(state.sort(), Sort { column: Column::Id, is_reversed: false });
    click(&mut state, 2, places.heading.y);
    assert!(state.sort().is_reversed);
    click(&mut state, 79, places.heading.y);
    assert_eq!(state.sort().column, Column::Name);
    let (view, _, begin, _) = places.views().nth(2).unwrap();
    click(&mut state, begin, places.tabs.y);
    assert_eq!(state.view, view);
    click(&mut state, 500, 500);
}

#[test]
fn branches_open_and_close_and_lead_up() {
    let mut state = state(3);
    state.apply(Action::Show(View::Branches));
    let all = state.rows.len();
    let at = state.rows.iter().position(|row| row.place.as_ref().unwrap().is_open == Some(true)).unwrap();
    state.apply(Action::Move(Motion::By(isize::try_from(at).unwrap())));
    state.apply(Action::Open(false));
    assert!(state.rows.len() < all);
    state.apply(Action::Enter);
    assert_eq!(state.rows.len(), all);
    state.apply(Action::Open(true));
    assert_eq!(state.rows.len(), all, "it is open already");
    // From a row below it, closing goes to what it is in.
    let depth = |state: &State| state.row().unwrap().place.as_ref().unwrap().depth;
    state.apply(Action::Move(Motion::By(1)));
    let below = depth(&state);
    assert!(below > 0);
    while state.row().unwrap().place.as_ref().unwrap().is_open == Some(true) {
        state.apply(Action::Open(false));
    }
    state.apply(Action::Open(false));
    assert_eq!(depth(&state), below - 1);
}

#[test]
fn the_chart_goes_through_what_there_is() {
    let mut state = state(1);
    let mut charted = Vec::new();
    for _ in 0..3 {
        charted.push(state.charted);
        state.apply(Action::StepChart);
    }
    assert_eq!(charted, [Charted::All, Charted::Targets, Charted::All], "the only domain is all");
}

#[test]
fn quitting_and_the_end_are_asked_of_the_run() {
    let mut state = state(1);
    assert_eq!(state.apply(Action::Quit), Effect::Quit);
    assert_eq!(state.apply(Action::ToEnd), Effect::ToEnd);
    state.learn(News::Ended);
    assert!(state.has_ended);
    state.learn(News::Run(Box::new(fixture::run())));
    assert!(!state.has_ended && state.sums().run.windows == 0);
}
