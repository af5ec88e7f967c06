//! Makes states of made-up runs, for tests.

use joular_data::{
    events::RunInfo,
    fixture::{self, Load},
    stacks::StackTable,
};
use ratatui::layout::Rect;

use super::{feed::News, figures::Condenser, state::State};

/// A state on a terminal of this size, after so many windows.
pub fn state(run: RunInfo, load: Load, windows: u64, (width, height): (u16, u16)) -> State {
    let (mut condenser, mut stacks, mut state) = (Condenser::default(), StackTable::default(), State::default());
    condenser.process(&fixture::process(0));
    state.learn(News::Run(Box::new(run)));
    for index in 0..windows {
        let report = fixture::window(load, &mut stacks, index);
        state.learn(News::Window(Box::new(condenser.window(&report, &stacks))));
    }
    state.refresh(Rect::new(0, 0, width, height));
    state
}
