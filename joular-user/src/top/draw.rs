//! Draws the view of a state.

use joular_data::{
    model::units::MicroJoules,
    text::{Keep, cut, figures, watts},
    totals::audit::warnings,
};
use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, RenderDirection, Row as TableRow, Sparkline, Table},
};

use super::{
    columns::Column,
    keys::{HELP, Mode},
    lines::{self, Piece, Tone},
    rows::{Row, View},
    state::{Charted, State},
    sums::Moment,
};

/// Cells for the figures beside the chart, where there is room.
const SCALE: u16 = 11;
const WITH_SCALE: u16 = 60;
/// Milliwatts are drawn: the chart takes whole numbers.
const MILLI: f64 = 1000.0;

/// How tones look; without colours if the user wants none.
#[derive(Clone, Copy)]
pub struct Palette {
    pub has_colours: bool,
}

impl Palette {
    fn of(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Warning => self.coloured(Color::Yellow),
        }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws it all. `notice` is the last thing that the recorder has said.
pub fn draw(frame: &mut Frame<'_>, state: &State, palette: Palette, notice: Option<&str>) {
    let places = state.places();
    pieces(frame, lines::header(state), places.header, palette);
    pieces(frame, lines::shares(state), places.shares, palette);
    chart(frame, state, places.chart, palette);
    views(frame, state, palette);
    table(frame, state, palette);
    let detail = lines::detail(state, places.detail.width.into());
    frame.render_widget(Paragraph::new(detail).style(palette.coloured(Color::Cyan)), places.detail);
    pieces(frame, lines::footer(state, notice, places.footer.width.into()), places.footer, palette);
    if state.mode == Mode::Help {
        help(frame, state);
    }
}

fn pieces(frame: &mut Frame<'_>, pieces: Vec<Piece>, area: Rect, palette: Palette) {
    let fitting = lines::fitting(pieces, area.width.into());
    let spans = fitting.into_iter().map(|(tone, text)| Span::styled(text, palette.of(tone)));
    frame.render_widget(Line::from_iter(spans), area);
}

/// Power over the last windows, the newest at the right, from 0 to the most that is seen.
fn chart(frame: &mut Frame<'_>, state: &State, area: Rect, palette: Palette) {
    let scale = if area.width >= WITH_SCALE { SCALE } else { 0 };
    let [left, right] = [Rect { width: scale, ..area }, Rect { x: area.x + scale, width: area.width - scale, ..area }];
    let power = power(state, right.width.into());
    let most = power.iter().copied().max().unwrap_or(0);
    let top = figures::figure(milliwatts_as_watts(most), state.label());
    if scale > 0 && area.height > 0 {
        let mut texts = vec![format!("{top} W")];
        texts.resize(usize::from(area.height), String::new());
        if let Some(last) = texts.last_mut().filter(|last| last.is_empty()) {
            *last = "0 W".to_owned();
        }
        if let Some(second) = texts.get_mut(1).filter(|second| second.is_empty()) {
            *second = lines::charted(state);
        }
        let width = usize::from(scale) - 2;
        let lines = texts.into_iter().map(|text| Line::from(format!("{:>width$}", cut(&text, width, Keep::Start))));
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), left);
    }
    let newest_first = power.into_iter().rev().collect::<Vec<u64>>();
    let bars = Sparkline::default()
        .data(newest_first)
        .max(most.max(1))
        .direction(RenderDirection::RightToLeft)
        .style(palette.coloured(Color::Green));
    frame.render_widget(bars, right);
}

/// Milliwatts of at most so many bars. A bar is a window, or several if there are more windows than bars.
fn power(state: &State, bars: usize) -> Vec<u64> {
    let (history, before) = state.sums().history();
    let windows = history.len().div_ceil(bars.max(1)).max(1);
    let energy = |moment: &Moment| match state.charted {
        Charted::All => moment.all,
        Charted::Targets => moment.targets,
        Charted::Domain(at) => moment.domains.get(at).copied().unwrap_or_default(),
    };
    let mut bars: Vec<(u64, MicroJoules, u64)> = Vec::new();
    for (at, moment) in (before..).zip(history) {
        // Which windows share a bar stays as it is when they move on.
        let bar = at / windows as u64;
        match bars.last_mut().filter(|(known, ..)| *known == bar) {
            Some((_, sum, ns)) => {
                *sum = sum.saturating_add(energy(moment));
                *ns = ns.saturating_add(moment.length_ns);
            }
            None => bars.push((bar, energy(moment), moment.length_ns)),
        }
    }
    bars.into_iter().map(|(_, energy, ns)| watts_as_milliwatts(watts(energy, ns))).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "power is finite and not negative")]
const fn watts_as_milliwatts(watts: f64) -> u64 {
    (watts * MILLI) as u64
}

#[allow(clippy::cast_precision_loss, reason = "for display")]
const fn milliwatts_as_watts(milliwatts: u64) -> f64 {
    milliwatts as f64 / MILLI
}

fn views(frame: &mut Frame<'_>, state: &State, palette: Palette) {
    let places = state.places();
    for (view, text, begin, end) in places.views() {
        let style =
            if view == state.view { palette.of(Tone::Strong).add_modifier(Modifier::UNDERLINED) } else { Style::new() };
        let area = Rect { x: begin, width: end - begin, ..places.tabs }.intersection(places.tabs);
        frame.render_widget(Span::styled(text, style), area);
    }
}

fn table(frame: &mut Frame<'_>, state: &State, palette: Palette) {
    let places = state.places();
    let columns = Column::shown(state.view, places.heading.width);
    let sort = state.sort();
    let headings = columns.iter().map(|(column, _, width)| {
        let arrow = match (*column == sort.column, sort.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        aligned(*column, &format!("{}{arrow}", column.heading(state.view)), (*width).into())
    });
    let heading =
        Line::styled(headings.collect::<Vec<_>>().join(" "), palette.of(Tone::Strong).add_modifier(Modifier::REVERSED));
    frame.render_widget(Paragraph::new(heading).style(Style::new().add_modifier(Modifier::REVERSED)), places.heading);
    if state.rows.is_empty() {
        return frame.render_widget(Paragraph::new(nothing(state)), places.rows);
    }
    let row = |(at, row): (usize, &Row)| {
        let cells = columns.iter().map(|(column, _, width)| cell(state, row, *column, (*width).into()));
        let style = if at == state.at { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        TableRow::new(cells.collect::<Vec<_>>()).style(style)
    };
    let seen = state.rows.iter().enumerate().skip(state.offset).take(places.rows.height.into()).map(row);
    let widths = columns.iter().map(|(.., width)| Constraint::Length(*width));
    frame.render_widget(Table::new(seen, widths).column_spacing(1), places.rows);
}

/// Figures end at their right, names begin at their left.
fn aligned(column: Column, text: &str, width: usize) -> String {
    let text = cut(text, width, Keep::Start);
    if column == Column::Name { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

fn cell(state: &State, row: &Row, column: Column, width: usize) -> String {
    if column != Column::Name {
        return aligned(column, &column.figure(row, &state.units), width);
    }
    let before = row.place.as_ref().map(|place| {
        let sign = match place.is_open {
            Some(true) => "▾ ",
            Some(false) => "▸ ",
            None => "  ",
        };
        // A deep tree keeps room for names.
        format!("{}{sign}", " ".repeat(place.depth.min(width / 3)))
    });
    let before = before.unwrap_or_default();
    let keep = if state.view == View::Threads { Keep::Start } else { Keep::Name };
    format!("{before}{}", cut(&row.name, width.saturating_sub(before.chars().count()), keep))
}

/// What stands where rows would be.
fn nothing(state: &State) -> &'static str {
    match state.sums().run.windows {
        0 => "Waiting for the first window",
        _ if !state.filter.is_empty() => "Nothing has this in its name: Esc takes the filter away",
        _ => "No target has run yet",
    }
}

fn help(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    let doubts = warnings(&state.sums().run);
    let mut texts: Vec<String> = HELP.iter().map(|(keys, what)| format!("{keys:>13}  {what}")).collect();
    texts.push(String::new());
    texts.extend(doubts);
    texts.push("W self: what the method used itself; W total: with what it called".to_owned());
    let height = u16::try_from(texts.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let width = area.width.min(70);
    let inner = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let lines: Vec<Line<'_>> =
        texts.iter().map(|text| Line::from(cut(text, usize::from(width).saturating_sub(2), Keep::Start))).collect();
    frame.render_widget(Clear, inner);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), inner);
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
