//! Lays out tables for people: aligned, as wide as there is room for, or as Markdown.
//!
//! Rows are about something that has a name. In Markdown a name is a code span, in which nothing is markup. The two
//! characters that could end a span or a cell are spelled out like control characters.

use std::fmt::Write as _;

use super::{
    Keep, cut,
    line::{Line, Style},
};
use crate::model::target_text::TargetText;

/// A name gets this much room even if figures are left out for it.
const NAME_ROOM: usize = 32;

/// A column of figures or words.
#[derive(Clone, Debug)]
pub struct Column {
    pub heading: String,
    pub cells: Vec<String>,
    /// Where room is scarce, columns with the greatest number are left out first. A column of 0 stays even if there is
    /// nothing in it.
    pub expendable: u8,
    /// Whether cells begin below each other: words do, and figures end below each other.
    pub is_left: bool,
}

impl Column {
    pub fn figures<R>(heading: &str, rows: impl IntoIterator<Item = R>, cell: impl Fn(R) -> String) -> Self {
        let cells = rows.into_iter().map(cell).collect();
        Self { heading: heading.to_owned(), cells, expendable: 0, is_left: false }
    }

    pub fn words<R>(heading: &str, rows: impl IntoIterator<Item = R>, cell: impl Fn(R) -> String) -> Self {
        Self { is_left: true, ..Self::figures(heading, rows, cell) }
    }

    /// The same, left out where room is scarce: see [`Self::expendable`].
    #[must_use]
    pub fn expendable(self, expendable: u8) -> Self {
        Self { expendable, ..self }
    }

    /// Whether no row has anything of it: cells are empty, zero, or say that nothing is known.
    fn is_empty(&self) -> bool {
        let is_nothing = |c: char| matches!(c, '0' | '.' | '-' | '–' | ' ');
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.chars().all(is_nothing))
    }

    fn width(&self) -> usize {
        self.cells.iter().chain([&self.heading]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn cell(&self, row: usize) -> &str {
        self.cells.get(row).map_or("", |cell| cell)
    }
}

/// Figures by row, and what rows are about.
#[derive(Clone, Debug)]
pub struct Table {
    pub columns: Vec<Column>,
    /// What names are names of.
    pub heading: String,
    pub names: Vec<TargetText>,
}

impl Table {
    /// Aligned lines, names last, without columns in which no row has anything. On a terminal of this width, more
    /// columns are left out until names have room, and names are cut.
    pub fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let is_shown = |column: &&Column| column.expendable == 0 || !column.is_empty();
        let mut columns: Vec<&Column> = self.columns.iter().filter(is_shown).collect();
        if let Some(width) = width {
            while columns.iter().map(|column| column.width() + 2).sum::<usize>() + NAME_ROOM > width
                && columns.len() > 2
            {
                let least = columns.iter().enumerate().max_by_key(|(_, column)| column.expendable);
                columns.remove(least.map_or(0, |(at, _)| at));
            }
        }
        let widths: Vec<usize> = columns.iter().map(|column| column.width()).collect();
        let figures = |cell: &dyn Fn(&Column) -> String| -> String {
            let padded = |(column, width): (&&Column, &usize)| match column.is_left {
                true => format!("{:<width$}  ", cell(column)),
                false => format!("{:>width$}  ", cell(column)),
            };
            columns.iter().zip(&widths).map(padded).collect()
        };
        let heading = figures(&|column| column.heading.clone()) + &self.heading;
        let mut lines = vec![Line::new(Style::Heading, heading)];
        for (row, name) in self.names.iter().enumerate() {
            let text = figures(&|column| column.cell(row).to_owned());
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(text.chars().count()));
            let name = cut(&name.to_string(), room, Keep::Name);
            lines.push(Line::new(Style::Plain, text + &name));
        }
        lines
    }

    /// The same lines as a text.
    pub fn text(&self, width: Option<usize>) -> String {
        self.lines(width).into_iter().map(|line| line.text + "\n").collect()
    }

    /// A table of GitHub-flavoured Markdown.
    pub fn markdown(&self, are_names_first: bool) -> String {
        let row = |name: &str, cells: &dyn Fn(&Column) -> String| {
            let mut cells: Vec<String> = self.columns.iter().map(cells).collect();
            cells.insert(if are_names_first { 0 } else { cells.len() }, name.to_owned());
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = row(&self.heading, &|column| column.heading.clone());
        let mut rule: Vec<&str> =
            self.columns.iter().map(|column| if column.is_left { "---" } else { "---:" }).collect();
        rule.insert(if are_names_first { 0 } else { rule.len() }, "---");
        let _ = writeln!(text, "|{}|", rule.join("|"));
        for (at, name) in self.names.iter().enumerate() {
            text.push_str(&row(&code(name), &|column| column.cell(at).to_owned()));
        }
        text
    }
}

/// A name as a code span of Markdown, in one cell of a table.
pub fn code(name: &TargetText) -> String {
    let safe = name.to_string().replace('|', "\\x7c").replace('`', "\\x60");
    if safe.trim().is_empty() { safe } else { format!("`{safe}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let rows = [("1.5", "best"), ("22.0", "more")];
        let figures = Column::figures("J", rows, |(joules, _)| joules.to_owned());
        let spare = Column { expendable: 9, ..Column::figures("SAMPLES", rows, |_| "1000000".to_owned()) };
        let words = Column::words("verdict", rows, |(_, verdict)| verdict.to_owned());
        let names = ["a|b", "com.example.A"].map(TargetText::from).to_vec();
        Table { columns: vec![figures, spare, words], heading: "method".to_owned(), names }
    }

    #[test]
    fn figures_end_below_each_other_and_words_begin() {
        let expected =
            "   J  SAMPLES  verdict  method\n 1.5  1000000  best     a|b\n22.0  1000000  more     com.example.A\n";
        assert_eq!(table().text(None), expected);
    }

    #[test]
    fn where_room_is_scarce_the_most_expendable_column_goes_and_names_lose_their_beginning() {
        let lines = table().lines(Some(47));
        assert_eq!(lines[0].text, "   J  verdict  method");
        assert_eq!(table().lines(Some(18))[2].text, "22.0  more     ….A", "two columns stay");
        assert_eq!(table().lines(Some(10))[2].text.chars().count(), 15, "two columns stay");
    }

    #[test]
    fn a_column_in_which_no_row_has_anything_is_left_out_unless_it_must_stay() {
        let with = |cells: [&str; 2], expendable| {
            let column = Column {
                heading: "IO".to_owned(),
                cells: cells.map(str::to_owned).to_vec(),
                expendable,
                is_left: false,
            };
            let table = table();
            Table { columns: [&table.columns[..], &[column]].concat(), ..table }.text(None).contains("  IO  ")
        };
        for (cells, is_shown) in [
            (["", ""], false),
            (["0.000", "0"], false),
            (["0.0–0.0", "-"], false),
            (["–", ""], false),
            (["0.000", "0.001"], true),
            (["", "no"], true),
        ] {
            assert_eq!(with(cells, 1), is_shown, "{cells:?}");
            assert!(with(cells, 0), "{cells:?}");
        }
    }

    #[test]
    fn a_table_of_markdown_has_names_in_code_spans() {
        let last = "| J | SAMPLES | verdict | method |\n|---:|---:|---|---|\n| 1.5 | 1000000 | best | `a\\x7cb` |\n";
        assert!(table().markdown(false).starts_with(last), "{}", table().markdown(false));
        assert!(
            table().markdown(true).contains("\n|---|---:|---:|---|\n| `a\\x7cb` | 1.5 |"),
            "{}",
            table().markdown(true)
        );
    }

    #[test]
    fn nothing_in_a_name_is_markup() {
        for (name, expected) in [
            ("com.acme.Shop.<init>", "`com.acme.Shop.<init>`"),
            ("a|b`c", "`a\\x7cb\\x60c`"),
            ("a\\|b", "`a\\\\x7cb`"),
            ("line\n| break", "`line\\x0a\\x7c break`"),
            ("", ""),
        ] {
            assert_eq!(code(&name.into()), expected);
        }
    }
}
