//! Finishes a drawing: it writes joules where inferno wrote microjoules, still to the microjoule (bytes stay as they
//! are), and adds colours for readers with a dark screen.

use super::{Measure, lines::unit};
use crate::{model::units::MicroJoules, text::exact_joules};

/// Frames keep their colours, on which black text is readable.
const DARK: &str = "
@media (prefers-color-scheme: dark) {
  svg > rect { fill: #1b1d21 }
  svg > text { fill: #e6e6e3 }
  #frames text { fill: #000000 }
  #frames > *:hover { stroke: #ffffff }
}
";

const TITLE: &str = "<title>";
const TITLE_END: &str = "</title>";

/// Finishes the drawing. Names cannot imitate what is looked for: inferno escapes their `<`, and of
/// a title only the last figure is taken, which no name can follow.
pub(super) fn finish(drawn: &[u8]) -> Vec<u8> {
    let drawn = String::from_utf8_lossy(drawn);
    let mut done = String::with_capacity(drawn.len() + DARK.len());
    let (head, mut rest) = drawn.split_once("</style>").unwrap_or(("", &drawn));
    if !head.is_empty() {
        done.extend([head, DARK, "</style>"]);
    }
    while let Some((before, after)) = rest.split_once(TITLE) {
        let Some((title, behind)) = after.split_once(TITLE_END) else { break };
        done.extend([before, TITLE]);
        done.push_str(&in_joules(title).unwrap_or_else(|| title.to_owned()));
        done.push_str(TITLE_END);
        rest = behind;
    }
    done.push_str(rest);
    done.into_bytes()
}

/// `name (1,234,567 µJ, 12.00%)` with `1.234567 J`.
fn in_joules(title: &str) -> Option<String> {
    let (name, figures) = title.rsplit_once(" (")?;
    let (number, rest) = figures.split_once(&format!(" {}, ", unit(Measure::Energy)))?;
    let energy: u64 = number.replace(',', "").parse().ok()?;
    Some(format!("{name} ({} J, {rest}", exact_joules(MicroJoules(energy))))
}
