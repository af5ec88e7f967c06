//! Writes a drawing as SVG.
//!
//! Lines and letters have the colour of the text around, so the drawing fits a page in light and in dark.

use std::fmt::Write as _;

use super::drawing::{Anchor, Drawing, FONT_SIZE, Ink, Panel, Place, Shape, Text};
use crate::text::cut;

impl Drawing {
    /// For a file, or to stand within a page.
    pub fn svg(&self) -> String {
        let (width, height) = (figure(self.size.0), figure(self.size.1));
        let mut drawn = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"{FONT_SIZE}\" fill=\"currentColor\" role=\"img\" aria-label=\"{}\">\n",
            xml(&self.label)
        );
        self.panels.iter().for_each(|panel| panel.draw(&mut drawn));
        drawn.push_str("</svg>\n");
        drawn
    }
}

impl Panel {
    fn draw(&self, drawn: &mut String) {
        let _ = writeln!(drawn, "<g transform=\"translate({} {})\">", figure(self.at.0), figure(self.at.1));
        if let Some(title) = &self.title {
            let _ = writeln!(drawn, "<title>{}</title>", xml(title));
        }
        self.shapes.iter().for_each(|shape| shape.draw(drawn));
        drawn.push_str("</g>\n");
    }
}

impl Shape {
    fn draw(&self, drawn: &mut String) {
        let _ = match self {
            Self::Line { through, width, ink } => {
                let width = if *width == 1.0 { String::new() } else { format!(" stroke-width=\"{}\"", figure(*width)) };
                let points = points(through);
                writeln!(drawn, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{}\"{width}/>", ink.css())
            }
            Self::Area { within, opacity, ink } => {
                let points = points(within);
                writeln!(drawn, "<polygon points=\"{points}\" fill=\"{}\" fill-opacity=\"{opacity}\"/>", ink.css())
            }
            Self::Dot { at: (x, y), radius, ink } => writeln!(
                drawn,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
                figure(*x),
                figure(*y),
                figure(*radius),
                ink.css()
            ),
            Self::Text(text) => text.draw(drawn),
        };
    }
}

impl Text {
    fn draw(&self, drawn: &mut String) -> std::fmt::Result {
        let anchor = match self.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if self.is_bold { " font-weight=\"bold\"" } else { "" };
        let text = self.room.map_or_else(|| self.text.clone(), |(columns, keep)| cut(&self.text, columns, keep));
        let (x, y) = (figure(self.at.0), figure(self.at.1));
        writeln!(drawn, "<text x=\"{x}\" y=\"{y}\"{anchor}{weight}>{}</text>", xml(&text))
    }
}

impl Ink {
    const fn css(self) -> &'static str {
        match self {
            Self::Text => "currentColor",
            Self::Blue => "#2e86ab",
            Self::Red => "#d1495b",
            Self::Grey => "#8886",
        }
    }
}

fn points(places: &[Place]) -> String {
    let written: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", figure(*x), figure(*y))).collect();
    written.join(" ")
}

/// To a tenth of a pixel.
fn figure(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), ToOwned::to_owned)
}

/// Text within XML or HTML.
pub(in crate::experiment) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
