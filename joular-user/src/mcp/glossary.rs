//! Knows what names mean, in the words of the documents: each row of their tables whose cell begins with a name in code.
//!
//! The documents are the one place where these words stand, and tests compare them with the program. Columns have theirs from
//! the schema.

use std::sync::LazyLock;

use joular_data::dataset::schema;

/// What is said of some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As documents have them; `…` at the beginning stands for anything.
    names: Vec<String>,
    pub text: String,
    /// Where it is said.
    pub source: String,
}

const SCHEMA: &str = "docs/schema.md";
const ANSWERS: (&str, &str) = ("docs/faq.md", include_str!("../../../docs/faq.md"));
const DOCUMENTS: [(&str, &str); 8] = [
    ("docs/mcp.md", include_str!("../../../docs/mcp.md")),
    ("docs/reports.md", include_str!("../../../docs/reports.md")),
    ("docs/comparing.md", include_str!("../../../docs/comparing.md")),
    ("docs/jvm.md", include_str!("../../../docs/jvm.md")),
    ("docs/energy.md", include_str!("../../../docs/energy.md")),
    ("docs/allocation.md", include_str!("../../../docs/allocation.md")),
    ("docs/io.md", include_str!("../../../docs/io.md")),
    ("docs/counters.md", include_str!("../../../docs/counters.md")),
];

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let of_documents = DOCUMENTS.iter().flat_map(|(source, text)| rows(source, text));
    of_documents.chain(answers(ANSWERS)).chain(rows(SCHEMA, &schema::document())).collect()
});

/// All that is said of a name.
pub fn of(name: &str) -> Vec<&'static Entry> {
    let name = name.trim_matches(|c: char| c == '`' || c.is_whitespace());
    let is_of = |pattern: &String| match pattern.strip_prefix('…') {
        Some(end) => !end.is_empty() && name.len() > end.len() && name.ends_with(end),
        None => pattern.eq_ignore_ascii_case(name),
    };
    ENTRIES.iter().filter(|entry| entry.names.iter().any(is_of)).collect()
}

/// Rows of the tables in a document.
fn rows(source: &str, text: &str) -> Vec<Entry> {
    let (mut entries, mut section, mut header) = (Vec::new(), "", None);
    for line in text.lines() {
        let Some(row) = line.strip_prefix('|') else {
            header = None;
            section = line.strip_prefix('#').map_or(section, |title| title.trim_start_matches('#').trim());
            continue;
        };
        let cells = cells(row);
        let Some(titles) = &header else {
            header = Some(cells);
            continue;
        };
        if let Some(entry) = entry(source, section, titles, &cells) {
            entries.push(entry);
        }
    }
    entries
}

fn cells(row: &str) -> Vec<&str> {
    let row = row.trim_end();
    row.strip_suffix('|').unwrap_or(row).split('|').map(str::trim).collect()
}

fn entry(source: &str, section: &str, titles: &[&str], cells: &[&str]) -> Option<Entry> {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        // Items in brackets have no row of their own everywhere.
        let is_name = |code: &&str| cell.starts_with('`') || code.starts_with('[');
        names.extend(in_code(cell).filter(is_name).map(str::to_owned));
    }
    if source == SCHEMA {
        let table = section.split_whitespace().next().unwrap_or_default();
        let of_table: Vec<String> = names.iter().map(|name| format!("{table}.{name}")).collect();
        names.extend(of_table);
    }
    let of_names = cells.iter().position(|cell| cell.starts_with('`'));
    let said =
        titles.iter().zip(cells).enumerate().filter(|(index, (_, cell))| Some(*index) != of_names && !cell.is_empty());
    let said =
        said.map(|(_, (title, cell))| if title.is_empty() { (*cell).to_owned() } else { format!("{title}: {cell}") });
    let text = without_links(&said.collect::<Vec<_>>().join("; "));
    (!names.is_empty() && !text.is_empty()).then(|| Entry { names, text, source: format!("{source}, {section}") })
}

/// Questions with names in code, each with the first paragraph of its answer.
fn answers((source, text): (&str, &str)) -> Vec<Entry> {
    let answer = |question: &str| {
        let (title, answer) = question.split_once("\n\n")?;
        let names: Vec<String> = in_code(title).map(str::to_owned).collect();
        let text = without_links(&answer.split("\n\n").next()?.replace('\n', " "));
        (!names.is_empty()).then(|| Entry { names, text, source: format!("{source}, {title}") })
    };
    text.split("\n### ").skip(1).filter_map(answer).collect()
}

/// What stands between backticks.
fn in_code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Links as their texts.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let (start, label) = before.rsplit_once('[').unwrap_or(("", before));
        plain.extend([start, label]);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use joular_data::{
        model::{domain::Label, frame::Marker},
        report::diff::Verdict,
        stacks::JvmWork,
    };

    use super::*;

    fn text(name: &str) -> String {
        of(name).iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn items_parts_verdicts_labels_and_keys_are_explained() {
        let markers = Marker::ALL.iter().map(|marker| marker.name());
        let parts = JvmWork::ALL.iter().map(|work| work.name());
        let labels = Label::ALL.iter().map(|label| label.name());
        let verdicts = [Verdict::More, Verdict::Less, Verdict::NoChange, Verdict::NotCertain, Verdict::NotEnoughRuns];
        let verdicts = verdicts.iter().map(|verdict| verdict.name());
        let keys =
            ["self_uj", "total_joules", "self_low_uj", "skipped", "left_out", "other_rows", "energy_label", "extent"];
        for name in markers.chain(parts).chain(labels).chain(verdicts).chain(keys) {
            assert!(text(name).len() > 10, "{name}: {}", text(name));
        }
        assert!(text("[no sample]").contains("no sample hit it in that window"), "{}", text("[no sample]"));
        assert!(text("gc").contains("threads of the garbage collector"), "{}", text("gc"));
    }

    #[test]
    fn columns_are_explained_with_and_without_their_table() {
        let of_table = of("windows.idle_uj");
        assert!(of_table.len() == 1 && of_table[0].source == "docs/schema.md, windows", "{of_table:?}");
        assert!(of("idle_uj").contains(&of_table[0]));
        assert!(of("run_id").len() > 5 && !of("METHODS.self_uj").is_empty());
        assert_eq!(of("no such name"), Vec::<&Entry>::new());
        assert_eq!(of("`self_uj` "), of("self_uj"));
    }

    #[test]
    fn texts_have_neither_links_nor_rules_of_tables() {
        for entry in ENTRIES.iter() {
            assert!(!entry.text.contains("](") && !entry.text.contains("---"), "{entry:?}");
        }
        assert_eq!(without_links("see [a](b.md#c), [no sample] and [d](e)."), "see a, [no sample] and d.");
    }
}
