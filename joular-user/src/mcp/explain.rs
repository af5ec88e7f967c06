//! Explains names: in the words of the documents, or for a method by its row.

use joular_data::{
    model::units::UnixMicros,
    report::{profile::Stop, ranking::By},
    text::escape,
};
use serde_json::{Value, json};

use super::{
    figures,
    glossary::{self, Entry},
    tools::{Found, Work},
};
use crate::query::{Query, Refusal, tables};

/// Keys of a row that are explained with it.
const FIGURES: [&str; 8] = [
    "self_uj",
    "total_uj",
    "self_low_uj",
    "self_percent",
    "self_watts",
    "self_cpu_ns",
    "self_samples",
    "self_inferred_uj",
];

pub fn work(query: &Query, now: UnixMicros, stop: &Stop) -> Result<Work, Refusal> {
    let name = query.one("name").unwrap_or_default().trim().to_owned();
    let entries = glossary::of(&name);
    if !entries.is_empty() {
        return Ok(Box::new(move |_| {
            let value = json!({ "name": name, "entries": shown(entries) });
            Ok(Found { value, lists: vec!["/entries".to_owned()] })
        }));
    }
    let methods = query.with("by", Some(By::Method.name())).with("top", Some("0"));
    let request = tables::request(&methods, query.part("", now, stop)?)?;
    Ok(Box::new(move |place| {
        let mut found = figures::with_tables(tables::value(place, &request)?);
        let rows = found.value.pointer_mut("/tables/0/rows").and_then(Value::as_array_mut).map(std::mem::take);
        let is_it = |row: &Value| {
            let names = ["method", "name"].into_iter().filter_map(|key| row.get(key)?.as_str());
            names.into_iter().any(|one| one == name || escape(one) == name)
        };
        let rows: Vec<Value> = rows.unwrap_or_default().into_iter().filter(is_it).collect();
        if rows.is_empty() {
            return Err(Refusal::missing("unknown_name", unknown(&name)));
        }
        if let Some(answer) = found.value.as_object_mut() {
            answer.remove("tables");
            answer.insert("name".to_owned(), json!(name));
            answer.insert("methods".to_owned(), json!(rows));
            let entries = FIGURES.iter().flat_map(|key| glossary::of(key).into_iter().take(1));
            answer.insert("entries".to_owned(), json!(shown(entries)));
        }
        found.lists.extend(["/methods", "/entries"].map(str::to_owned));
        Ok(found)
    }))
}

fn shown(entries: impl IntoIterator<Item = &'static Entry>) -> Vec<Value> {
    entries.into_iter().map(|entry| json!({ "text": entry.text, "source": entry.source })).collect()
}

fn unknown(name: &str) -> String {
    let name = escape(name);
    format!(
        "'{name}' is neither a column, a key, an item in brackets, a part of a JVM, a verdict or a label, nor a method with \
         energy in this part of the data set: `top` lists methods"
    )
}
