//! Writes the lines around the table: where the energy goes, what is shown, which keys there are. Pure: a state and a width
//! in, pieces of text out. A piece that has no room is left out.

use joular_data::{
    model::{domain::Label, units::MicroJoules},
    text::{Keep, count, cut, escape, figures, share, watts},
    totals::audit::{source, warnings},
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    keys::Mode,
    state::{Charted, State},
};

/// How a piece of text is emphasised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Warning,
}

pub type Piece = (Tone, String);

const GAP: usize = 2;
/// Columns of a doubt.
const LONGEST_DOUBT: usize = 30;

/// The pieces that have room beside those before them, with gaps between them.
pub fn fitting(pieces: impl IntoIterator<Item = Piece>, width: usize) -> Vec<Piece> {
    let mut left = width;
    let mut shown: Vec<Piece> = Vec::new();
    for (tone, text) in pieces {
        let gap = if shown.is_empty() { 0 } else { GAP };
        if let Some(rest) = left.checked_sub(gap + text.width()).filter(|_| !text.is_empty()) {
            shown.push((tone, format!("{}{text}", " ".repeat(gap))));
            left = rest;
        }
    }
    shown
}

/// Power, targets, the source of energy, and how the view stands.
pub fn header(state: &State) -> Vec<Piece> {
    let Some(run) = state.run() else { return vec![(Tone::Plain, "joular-bpf top".to_owned())] };
    let label = state.label();
    let of_source = match label {
        Some(Label::Measured) | None => Tone::Plain,
        Some(_) => Tone::Warning,
    };
    let power = |energy| figures::figure(watts(energy, state.units.ns), label);
    let shares = state.shares;
    let targets = format!("targets {} W, {:.1} %", power(shares.targets), share(shares.targets, shares.all));
    let elapsed = state.sums().run.elapsed_ns / 1_000_000_000;
    let (is_held, has_ended) = (state.is_held(), state.has_ended && !state.is_held());
    let how = if is_held {
        "HELD"
    } else if has_ended {
        "ENDED"
    } else {
        ""
    };
    vec![
        (Tone::Strong, format!("{} W", power(shares.all))),
        (of_source, source(run, label)),
        (Tone::Strong, how.to_owned()),
        (Tone::Plain, targets),
        (Tone::Plain, format!("{}:{:02}", elapsed / 60, elapsed % 60)),
        (Tone::Plain, format!("on {}", run.host)),
    ]
}

/// What is not of targets, what may be wrong, and the time that watts are of.
pub fn shares(state: &State) -> Vec<Piece> {
    let label = state.label();
    let power = |energy| figures::figure(watts(energy, state.units.ns), label);
    let others = state.shares.others;
    let mut pieces = vec![(Tone::Plain, format!("over {}:", state.horizon.name()))];
    let doubts = warnings(&state.sums().run);
    pieces.extend(doubts.iter().map(|doubt| (Tone::Warning, shortly(doubt).to_owned())));
    if state.sums().left_out > 0 {
        pieces.push((Tone::Warning, format!("{} not shown", count(state.sums().left_out, "window"))));
    }
    for (name, energy) in [
        ("idle", state.shares.idle),
        ("others", others.other_processes),
        ("kernel", others.kernel),
        ("joular-bpf", others.profiler),
    ] {
        pieces.push((Tone::Plain, format!("{name} {} W", power(energy))));
    }
    let rest =
        MicroJoules(others.total().0.saturating_sub(others.other_processes.0 + others.kernel.0 + others.profiler.0));
    if rest.0 > 0 {
        pieces.push((Tone::Plain, format!("unattributed {} W", power(rest))));
    }
    pieces.push((Tone::Plain, format!("{} J in all", figures::figure(state.sums().run.measured.joules(), label))));
    pieces
}

/// A doubt up to its first cause, or its kind where that is long. The help has the whole.
fn shortly(doubt: &str) -> &str {
    let first = doubt.split(',').next().filter(|first| first.width() <= LONGEST_DOUBT);
    first.or_else(|| doubt.split(':').next()).unwrap_or_default()
}

/// What the chart shows.
pub fn charted(state: &State) -> String {
    match state.charted {
        Charted::All => "all".to_owned(),
        Charted::Targets => "targets".to_owned(),
        Charted::Domain(at) => state.sums().domains().get(at).map(|name| escape(name)).unwrap_or_default(),
    }
}

/// The whole name of the chosen row; of a branch, with the methods above it in the row.
pub fn detail(state: &State, width: usize) -> String {
    let Some(row) = state.row() else { return String::new() };
    let name = match &row.place {
        Some(place) if place.chain.len() > 1 => {
            let names: Vec<String> = place.chain.iter().map(|method| escape(method.key.name())).collect();
            names.join(" › ")
        }
        _ => row.name.clone(),
    };
    // Of a chain the end says most.
    let keep = if row.place.is_some() { Keep::Name } else { Keep::Start };
    cut(&name, width, keep)
}

/// Keys, or what is typed, or what the recorder has said meanwhile.
pub fn footer(state: &State, notice: Option<&str>, width: usize) -> Vec<Piece> {
    if state.mode == Mode::Typing {
        let hint = (Tone::Plain, "Enter keep  Esc clear".to_owned());
        return vec![(Tone::Strong, cut(&format!("/{}_", escape(&state.filter)), width, Keep::Name)), hint];
    }
    if let Some(notice) = notice {
        return vec![(Tone::Warning, cut(notice, width, Keep::Start))];
    }
    let mut pieces = Vec::new();
    let within: Vec<&str> = state.within().collect();
    if !within.is_empty() {
        let names: Vec<String> = within.iter().map(|name| cut(name, 24, Keep::Name)).collect();
        pieces.push((Tone::Strong, cut(&format!("in {}", names.join(" › ")), width, Keep::Name)));
        pieces.push((Tone::Plain, "Esc up".to_owned()));
    }
    if !state.filter.is_empty() {
        pieces.push((Tone::Strong, cut(&format!("filter: {}", escape(&state.filter)), width, Keep::Start)));
    }
    let keys =
        ["q quit", "? help", "/ filter", "s sort", "Enter into", "Space hold", "+ - time", "d chart", "r reverse"];
    pieces.extend(keys.map(|key| (Tone::Plain, key.to_owned())));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_without_room_are_left_out_and_later_ones_may_fit() {
        let pieces = ["12.3 W", "a long piece of text", "", "1:23"].map(|text| (Tone::Plain, text.to_owned()));
        let text = |width| fitting(pieces.clone(), width).into_iter().map(|(_, text)| text).collect::<String>();
        assert_eq!(text(80), "12.3 W  a long piece of text  1:23");
        assert_eq!(text(20), "12.3 W  1:23");
        assert_eq!(text(3), "");
        for width in 0..50 {
            assert!(text(width).width() <= width);
        }
    }
}
