//! Says where the parts of the view are on a terminal of any size. What draws and what understands clicks ask here.

use ratatui::layout::Rect;

use super::rows::View;

/// Parts from top to bottom. Those without room have no height.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub header: Rect,
    /// Where the energy goes.
    pub shares: Rect,
    pub chart: Rect,
    pub tabs: Rect,
    pub heading: Rect,
    pub rows: Rect,
    /// The whole name of the chosen row.
    pub detail: Rect,
    pub footer: Rect,
}

/// Where labels of all views have room.
const WIDE: u16 = 46;

impl Places {
    pub fn of(area: Rect) -> Self {
        let chart = match area.height {
            0..10 => 0,
            10..16 => 1,
            16..20 => 2,
            20..40 => 4,
            _ => 6,
        };
        let if_higher = |least: u16| u16::from(area.height >= least);
        let heights = [if_higher(4), if_higher(8), chart, if_higher(5), if_higher(2), 0, if_higher(16), if_higher(3)];
        let rows = area.height.saturating_sub(heights.iter().sum());
        let mut y = area.y;
        let mut next = |height: u16| {
            let part = Rect { y, height, ..area };
            y = y.saturating_add(height);
            part
        };
        let [header, shares, chart, tabs, heading, _, detail, footer] = heights;
        Self {
            header: next(header),
            shares: next(shares),
            chart: next(chart),
            tabs: next(tabs),
            heading: next(heading),
            rows: next(rows),
            detail: next(detail),
            footer: next(footer),
        }
    }

    /// The names of views with the cells where they begin and end.
    pub fn views(&self) -> impl Iterator<Item = (View, String, u16, u16)> + use<> {
        let gap = if self.tabs.width >= WIDE { 2 } else { 1 };
        let mut x = self.tabs.x;
        View::ALL.into_iter().enumerate().map(move |(index, view)| {
            let text = match (view, gap) {
                (View::Processes, 1) => "1 procs".to_owned(),
                _ => format!("{} {}", index + 1, view.name()),
            };
            let begin = x;
            let end = begin.saturating_add(u16::try_from(text.len()).unwrap_or(0));
            x = end.saturating_add(gap);
            (view, text, begin, end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fill_every_terminal_without_overlapping() {
        for height in 0..100 {
            let places = Places::of(Rect::new(0, 0, 80, height));
            let Places { header, shares, chart, tabs, heading, rows, detail, footer } = places;
            let parts = [header, shares, chart, tabs, heading, rows, detail, footer];
            assert_eq!(parts.iter().map(|part| part.height).sum::<u16>(), height);
            assert!(parts.windows(2).all(|pair| pair[0].bottom() == pair[1].y), "{height}: {places:?}");
            assert!(height < 12 || rows.height >= 5, "{height}: {places:?}");
        }
    }

    #[test]
    fn the_names_of_views_fit_forty_columns() {
        for width in [40, 46, 80] {
            let last = Places::of(Rect::new(0, 0, width, 12)).views().last();
            assert!(last.is_some_and(|(view, _, _, end)| view == View::Branches && end <= width), "{width}");
        }
    }
}
