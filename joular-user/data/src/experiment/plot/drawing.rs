//! Holds what is drawn, before it is known in which format.

use crate::text::Keep;

/// Places are in CSS pixels (1/96 inch), from the left and from the top.
pub(in crate::experiment) type Place = (f64, f64);

/// A drawing of panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width and height, CSS pixels.
    pub(in crate::experiment) size: (f64, f64),
    /// What it shows, for those who cannot see it.
    pub(in crate::experiment) label: String,
    pub(in crate::experiment) panels: Vec<Panel>,
}

/// Shapes that have a place together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::experiment) struct Panel {
    /// Of its upper left corner, where its shapes count from.
    pub(in crate::experiment) at: Place,
    /// Shown by browsers when somebody points at it.
    pub(in crate::experiment) title: Option<String>,
    /// Those that come later are above others.
    pub(in crate::experiment) shapes: Vec<Shape>,
}

/// The colours of drawings. Also people who tell red and green apart badly tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiment) enum Ink {
    /// That of the text around: black on paper.
    Text,
    Blue,
    Red,
    /// What only guides the eye.
    Grey,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::experiment) enum Shape {
    /// A line through places.
    Line {
        through: Vec<Place>,
        width: f64,
        ink: Ink,
    },
    /// An area within places. Opacity is from 0 to 1.
    Area {
        within: Vec<Place>,
        opacity: f64,
        ink: Ink,
    },
    Dot {
        at: Place,
        radius: f64,
        ink: Ink,
    },
    Text(Text),
}

/// A line of text in the colour of the text around, without characters that control or reorder.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::experiment) struct Text {
    pub(in crate::experiment) at: Place,
    pub(in crate::experiment) anchor: Anchor,
    pub(in crate::experiment) is_bold: bool,
    pub(in crate::experiment) text: String,
    /// At most so many columns of a terminal, and what to keep.
    pub(in crate::experiment) room: Option<(usize, Keep)>,
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiment) enum Anchor {
    Start,
    Middle,
    End,
}

/// Height of letters, CSS pixels.
pub(super) const FONT_SIZE: f64 = 11.0;

impl Shape {
    /// A line of the usual width.
    pub(in crate::experiment) fn line(through: impl IntoIterator<Item = Place>, ink: Ink) -> Self {
        Self::Line { through: through.into_iter().collect(), width: 1.0, ink }
    }

    /// A text that has room.
    pub(in crate::experiment) fn text(at: Place, anchor: Anchor, text: impl Into<String>) -> Self {
        Self::Text(Text { at, anchor, is_bold: false, text: text.into(), room: None })
    }
}
