//! Describes lines on a terminal: its size, and what is emphasised.

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

impl Size {
    pub const DEFAULT: Self = Self { width: 80, height: 24 };

    /// Terminals that do not know their size say 0.
    pub fn new(width: usize, height: usize) -> Self {
        let or = |value, default| if value == 0 { default } else { value };
        Self { width: or(width, Self::DEFAULT.width), height: or(height, Self::DEFAULT.height) }
    }
}

/// A line and how it is emphasised where colours are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Heading,
    Warning,
}

impl Line {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { text: text.into(), style }
    }

    pub fn draw(&self, colours: bool) -> String {
        match self.style {
            Style::Heading if colours => format!("\x1b[1m{}\x1b[0m", self.text),
            Style::Warning if colours => format!("\x1b[33m{}\x1b[0m", self.text),
            _ => self.text.clone(),
        }
    }
}
