//! Lists the formats of reports and comparisons.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people, on a terminal.
    #[default]
    Text,
    Json,
    Csv,
    Markdown,
}

impl Format {
    /// As flags choose it, of which at most one is given.
    pub const fn of_flags(json: bool, csv: bool, markdown: bool) -> Self {
        match (json, csv, markdown) {
            (true, ..) => Self::Json,
            (_, true, _) => Self::Csv,
            (.., true) => Self::Markdown,
            _ => Self::Text,
        }
    }
}
