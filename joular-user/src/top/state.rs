//! Holds what the view shows and what its user has chosen. Pure: windows and actions in, rows out.

use std::collections::HashSet;

use joular_data::{events::RunInfo, model::domain::Label};
use ratatui::layout::Rect;

use super::{
    columns::{Column, Sort, Units},
    feed::News,
    keys::{Action, Mode, Motion},
    places::Places,
    rows::{Key, Query, Row, View, rows},
    sums::{Horizon, Shares, Sums},
};

/// Nodes of trees that were opened or closed by hand; beyond that all are as they were.
const MAX_TURNED: usize = 4096;
/// Characters of a filter.
const MAX_FILTER: usize = 100;

/// What an action asks of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Quit,
    /// A replay goes to its end at once.
    ToEnd,
}

/// What the user went into, and how it was above.
#[derive(Clone, Debug)]
struct Step {
    key: Key,
    name: String,
    view: View,
    filter: String,
}

/// What the chart shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charted {
    #[default]
    All,
    Targets,
    /// Index into [`Sums::domains`].
    Domain(usize),
}

#[derive(Default)]
pub struct State {
    run: Option<Box<RunInfo>>,
    sums: Sums,
    /// What is shown while the view is held.
    held: Option<Box<Sums>>,
    pub has_ended: bool,
    pub view: View,
    pub horizon: Horizon,
    pub charted: Charted,
    sorts: [Sort; View::ALL.len()],
    pub filter: String,
    pub mode: Mode,
    steps: Vec<Step>,
    turned: HashSet<u64>,
    /// The chosen row, once one was chosen, and where it is.
    chosen: Option<Key>,
    pub at: usize,
    /// The first row that is seen.
    pub offset: usize,
    pub rows: Vec<Row>,
    pub units: Units,
    pub shares: Shares,
    area: Rect,
}

impl State {
    pub fn learn(&mut self, news: News) {
        match news {
            // One file may hold several runs.
            News::Run(run) => {
                let (area, view) = (self.area, self.view);
                *self = Self { run: Some(run), area, view, ..Self::default() };
            }
            News::Window(figures) => self.sums.window(*figures),
            News::Ended => self.has_ended = true,
        }
    }

    pub const fn left_out(&mut self, windows: u64) {
        self.sums.left_out = self.sums.left_out.saturating_add(windows);
    }

    pub fn run(&self) -> Option<&RunInfo> {
        self.run.as_deref()
    }

    /// What is shown: of now, or of when the view was held.
    pub fn sums(&self) -> &Sums {
        self.held.as_deref().unwrap_or(&self.sums)
    }

    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub fn label(&self) -> Option<Label> {
        self.sums().run.label
    }

    pub fn sort(&self) -> Sort {
        self.sorts.get(self.view as usize).copied().unwrap_or_default()
    }

    /// Names of what the view is within.
    pub fn within(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.name.as_str())
    }

    /// The chosen row.
    pub fn row(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    pub fn places(&self) -> Places {
        Places::of(self.area)
    }

    /// Makes the rows anew, for a terminal of this size. The chosen row stays chosen wherever it is now.
    pub fn refresh(&mut self, area: Rect) {
        self.area = area;
        let over = self.sums().over(self.horizon);
        let within: Vec<Key> = self.steps.iter().map(|step| step.key).collect();
        let filter = self.filter.to_lowercase();
        let query =
            Query { view: self.view, within: &within, filter: &filter, sort: self.sort(), turned: &self.turned };
        let (rows, units) = rows(self.sums(), &over, query);
        (self.rows, self.units, self.shares) = (rows, Units { label: self.label(), ..units }, over.shares);
        if let Some(at) = self.chosen.and_then(|key| self.rows.iter().position(|row| row.key == key)) {
            self.at = at;
        }
        self.keep_in_sight();
    }

    pub fn apply(&mut self, action: Action) -> Effect {
        match action {
            Action::Quit => return Effect::Quit,
            Action::ToEnd => return Effect::ToEnd,
            Action::Show(view) => self.show(view),
            Action::StepView { is_next } => self.show(self.view.step(is_next)),
            Action::StepSort { is_next } => self.change_sort(|sort, view| sort.step(view, is_next)),
            Action::Reverse => self.change_sort(|sort, _| sort.is_reversed = !sort.is_reversed),
            Action::StepHorizon { longer } => self.horizon = self.horizon.step(longer),
            Action::StepChart => self.step_chart(),
            Action::Move(motion) => self.go(motion),
            Action::Enter => self.enter(),
            Action::Up => self.up(),
            Action::Open(is_open) => self.open(is_open),
            Action::Pause if self.is_held() => self.held = None,
            Action::Pause => self.held = Some(Box::new(self.sums.clone())),
            Action::Help if self.mode == Mode::Help => self.mode = Mode::Plain,
            Action::Help => self.mode = Mode::Help,
            Action::BeginFilter => self.mode = Mode::Typing,
            Action::Type(c) if self.filter.chars().count() < MAX_FILTER && !c.is_control() => self.filter.push(c),
            Action::Type(_) => {}
            Action::Erase => drop(self.filter.pop()),
            Action::EndFilter => self.mode = Mode::Plain,
            Action::CancelFilter => {
                self.filter.clear();
                self.mode = Mode::Plain;
            }
            Action::Click { x, y } => self.click(x, y),
        }
        self.refresh(self.area);
        Effect::None
    }

    fn show(&mut self, view: View) {
        if self.view != view {
            (self.view, self.chosen, self.at, self.offset) = (view, None, 0, 0);
        }
    }

    fn change_sort(&mut self, change: impl FnOnce(&mut Sort, View)) {
        if let Some(sort) = self.sorts.get_mut(self.view as usize) {
            change(sort, self.view);
        }
    }

    fn step_chart(&mut self) {
        let domains = self.sums().domains().len();
        self.charted = match self.charted {
            Charted::All => Charted::Targets,
            Charted::Targets if domains > 1 => Charted::Domain(0),
            Charted::Domain(at) if at + 1 < domains => Charted::Domain(at + 1),
            Charted::Targets | Charted::Domain(_) => Charted::All,
        };
    }

    fn go(&mut self, motion: Motion) {
        let page = isize::try_from(self.places().rows.height.max(1)).unwrap_or(1);
        let by = |at: usize, rows: isize| at.saturating_add_signed(rows);
        let at = match motion {
            Motion::By(rows) => by(self.at, rows),
            Motion::Page(pages) => by(self.at, pages.saturating_mul(page)),
            Motion::First => 0,
            Motion::Last => usize::MAX,
        };
        self.choose(at);
    }

    fn choose(&mut self, at: usize) {
        self.at = at.min(self.rows.len().saturating_sub(1));
        // The first row is whatever is first.
        self.chosen = self.row().map(|row| row.key).filter(|_| self.at > 0);
    }

    fn keep_in_sight(&mut self) {
        self.at = self.at.min(self.rows.len().saturating_sub(1));
        let height = usize::from(self.places().rows.height).max(1);
        let last = self.rows.len().saturating_sub(height);
        self.offset = self.offset.clamp(self.at.saturating_sub(height - 1), self.at).min(last);
    }

    fn enter(&mut self) {
        let Some(row) = self.row() else { return };
        let (key, name) = (row.key, row.name.clone());
        let below = match key {
            Key::Process(_) => View::Threads,
            Key::Thread(_) => View::Methods,
            Key::Method(_) => View::Branches,
            Key::Node(_) => return self.open_or_close(),
        };
        if !self.steps.iter().any(|step| step.key == key) {
            let filter = std::mem::take(&mut self.filter);
            self.steps.push(Step { key, name, view: self.view, filter });
        }
        self.show(below);
    }

    fn up(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
            return;
        }
        let Some(Step { key, view, filter, .. }) = self.steps.pop() else { return };
        self.show(view);
        (self.filter, self.chosen) = (filter, Some(key));
    }

    fn open(&mut self, is_open: bool) {
        let place = self.row().and_then(|row| row.place.as_ref());
        if place.and_then(|place| place.is_open) == Some(!is_open) {
            self.open_or_close();
        } else if !is_open && let Some(depth) = place.map(|place| place.depth) {
            // What is closed already leads to what it is in.
            let is_above = |row: &Row| row.place.as_ref().is_some_and(|place| place.depth < depth);
            let above = self.rows.iter().take(self.at).rposition(is_above);
            self.choose(above.unwrap_or(self.at));
        }
    }

    fn open_or_close(&mut self) {
        let Some(Row { key: Key::Node(node), .. }) = self.row() else { return };
        let node = *node;
        if self.turned.len() >= MAX_TURNED {
            self.turned.clear();
        }
        if !self.turned.remove(&node) {
            self.turned.insert(node);
        }
        self.chosen = Some(Key::Node(node));
    }

    fn click(&mut self, x: u16, y: u16) {
        let places = self.places();
        let is_in = |part: Rect| part.contains((x, y).into());
        if is_in(places.tabs) {
            let view = places.views().find(|(_, _, begin, end)| (*begin..*end).contains(&x));
            view.into_iter().for_each(|(view, ..)| self.show(view));
        } else if is_in(places.heading) {
            let columns = Column::shown(self.view, places.heading.width);
            let column = columns.into_iter().find(|(_, begin, width)| x < places.heading.x + begin + width);
            column.into_iter().for_each(|(column, ..)| self.change_sort(|sort, _| sort.by(column)));
        } else if is_in(places.rows) {
            let at = self.offset + usize::from(y - places.rows.y);
            if at < self.rows.len() {
                self.choose(at);
            }
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
