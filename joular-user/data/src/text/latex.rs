//! Writes LaTeX, for papers. What is written compiles with every engine; a table needs the package booktabs.
//!
//! Names come from processes that may be hostile. Nothing in one is a command.

use super::table::{Column, Table};
use crate::model::target_text::TargetText;

/// A text in which nothing is markup. Signs that fonts of pdfLaTeX lack are written as commands.
pub fn escape(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => said.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => said.extend(['\\', c]),
            '~' => said.push_str("\\textasciitilde{}"),
            '^' => said.push_str("\\textasciicircum{}"),
            '<' => said.push_str("\\textless{}"),
            '>' => said.push_str("\\textgreater{}"),
            '|' => said.push_str("\\textbar{}"),
            // Packages of some languages make it the begin of a command.
            '"' => said.push_str("\\char34{}"),
            '`' => said.push_str("\\char96{}"),
            '±' => said.push_str("$\\pm$"),
            'σ' => said.push_str("$\\sigma$"),
            'µ' => said.push_str("$\\mu$"),
            '≥' => said.push_str("$\\ge$"),
            '…' => said.push_str("\\ldots{}"),
            '°' => said.push_str("$^\\circ$"),
            c => said.push(c),
        }
    }
    said
}

/// A name, in the font of a typewriter.
pub fn code(name: &TargetText) -> String {
    format!("\\texttt{{{}}}", escape(&name.to_string()))
}

/// A `tabular` with the rules of booktabs, names first.
pub fn tabular(table: &Table) -> String {
    let alignment = |column: &Column| if column.is_left { 'l' } else { 'r' };
    let columns: String = table.columns.iter().map(alignment).collect();
    let row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells = table.columns.iter().map(|column| escape(&cell(column)));
        format!("    {} \\\\\n", std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>().join(" & "))
    };
    let heading = row(&escape(&table.heading), &|column| column.heading.clone());
    let rows = table.names.iter().enumerate();
    let rows = rows.map(|(at, name)| row(&code(name), &|column| column.cells.get(at).cloned().unwrap_or_default()));
    format!(
        "  \\begin{{tabular}}{{l{columns}}}\n    \\toprule\n{heading}    \\midrule\n{}    \\bottomrule\n  \\end{{tabular}}\n",
        rows.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_a_command() {
        for (text, expected) in [
            ("plain text, 1.5 J", "plain text, 1.5 J"),
            ("50 % of $x_1 & #2", "50 \\% of \\$x\\_1 \\& \\#2"),
            ("\\input{/etc/passwd}", "\\textbackslash{}input\\{/etc/passwd\\}"),
            ("a^b~c", "a\\textasciicircum{}b\\textasciitilde{}c"),
            ("<init>|\"`", "\\textless{}init\\textgreater{}\\textbar{}\\char34{}\\char96{}"),
            ("1 ± 2 µJ … σ", "1 $\\pm$ 2 $\\mu$J \\ldots{} $\\sigma$"),
        ] {
            assert_eq!(escape(text), expected);
        }
        assert_eq!(code(&"a\u{1b}_b\n".into()), "\\texttt{a\\textbackslash{}x1b\\_b\\textbackslash{}x0a}");
    }

    #[test]
    fn every_backslash_that_is_left_begins_a_command_of_ours() {
        let all: String = (' '..='~').collect();
        let escaped = escape(&all);
        for rest in escaped.split('\\').skip(1) {
            let is_sign = rest.starts_with(['{', '}', '$', '&', '#', '_', '%']);
            let is_command = ["text", "char"].iter().any(|command| rest.starts_with(command));
            assert!(is_sign || is_command, "{rest}");
        }
        let bare = escaped.replace("{}", "");
        let mut before = ' ';
        for c in bare.chars() {
            assert!(!"{}$&#_%~^".contains(c) || before == '\\', "{c} in {bare}");
            before = c;
        }
    }

    #[test]
    fn a_table_has_the_rules_of_booktabs_and_a_row_for_each_name() {
        let rows = [("1.5", "best"), ("22.0", "more")];
        let table = Table {
            columns: vec![
                Column::figures("mean ± σ [J]", rows, |(joules, _)| joules.to_owned()),
                Column::words("verdict", rows, |(_, verdict)| verdict.to_owned()),
            ],
            heading: "variant".to_owned(),
            names: ["[a&b", "n=1"].map(TargetText::from).to_vec(),
        };
        let expected = "  \\begin{tabular}{lrl}\n    \\toprule\n    variant & mean $\\pm$ $\\sigma$ [J] & verdict \\\\\n    \
                        \\midrule\n    \\texttt{[a\\&b} & 1.5 & best \\\\\n    \\texttt{n=1} & 22.0 & more \\\\\n    \
                        \\bottomrule\n  \\end{tabular}\n";
        assert_eq!(tabular(&table), expected);
    }
}
