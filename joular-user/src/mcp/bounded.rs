//! Makes answers fit for a reader with little room: whole rows go from the end of lists, and how many is said.

use std::collections::BTreeMap;

use joular_data::text::{Keep, cut, escape};
use serde_json::{Map, Value, json};

use super::tools::Found;
use crate::query::Refusal;

/// Bytes of an answer's JSON. It stands in a message twice: as text and as an object.
pub const MOST_BYTES: usize = 32_000;

/// Bytes for what is said of a list that was cut.
const NOTE: usize = 160;

/// Characters of a message.
const MOST_OF_MESSAGE: usize = 1000;

/// What a list lost.
#[derive(Default)]
struct Lost {
    rows: usize,
    /// Energy of these rows, if they have any.
    self_uj: Option<u64>,
}

/// The answer with every text spelled out that would act on a terminal, in at most [`MOST_BYTES`]. Rows that are left out are
/// counted in `left_out`, by list.
///
/// # Errors
/// If it does not fit without any row.
pub fn fitting(found: Found) -> Result<Value, Refusal> {
    let Found { value, lists } = found;
    let mut value = spelled_out(value);
    let mut size = size(&value);
    if size <= MOST_BYTES {
        return Ok(value);
    }
    let most = MOST_BYTES.saturating_sub(NOTE * (lists.len() + 1));
    let mut rows: Vec<(&str, Vec<usize>, usize)> = Vec::new();
    for list in &lists {
        let sizes: Vec<usize> = items(&value, list).iter().map(|row| self::size(row) + 1).collect();
        let whole = sizes.iter().sum();
        rows.push((list, sizes, whole));
    }
    let mut lost: BTreeMap<&str, usize> = BTreeMap::new();
    while size > most {
        // The longest list has most that is of little weight.
        let longest = rows.iter_mut().max_by_key(|(_, _, whole)| *whole);
        let Some((list, last, whole)) = longest.and_then(|(list, sizes, whole)| Some((*list, sizes.pop()?, whole)))
        else {
            return Err(Refusal::later(
                "too_large",
                "the answer is too large: ask for less of the data set".to_owned(),
            ));
        };
        *whole = whole.saturating_sub(last);
        size = size.saturating_sub(last);
        *lost.entry(list).or_default() += 1;
    }
    let notes: Map<String, Value> =
        lost.into_iter().map(|(list, rows)| (name(list), said(&cut_off(&mut value, list, rows)))).collect();
    if let Some(object) = value.as_object_mut() {
        object.insert("left_out".to_owned(), Value::Object(notes));
    }
    Ok(value)
}

/// A message of bounded length that acts on no terminal.
pub fn message(text: &str) -> String {
    cut(&escape(text), MOST_OF_MESSAGE, Keep::Start)
}

fn items<'a>(value: &'a Value, list: &str) -> &'a [Value] {
    value.pointer(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `tables/0/rows` of `/tables/0/rows`.
fn name(list: &str) -> String {
    list.trim_start_matches('/').to_owned()
}

fn cut_off(value: &mut Value, list: &str, rows: usize) -> Lost {
    let Some(items) = value.pointer_mut(list).and_then(Value::as_array_mut) else { return Lost::default() };
    let gone = items.split_off(items.len().saturating_sub(rows));
    let energies = gone.iter().filter_map(|row| row.get("self_uj")?.as_u64());
    let self_uj = energies.fold(None, |sum: Option<u64>, energy| Some(sum.unwrap_or(0).saturating_add(energy)));
    Lost { rows: gone.len(), self_uj }
}

fn said(lost: &Lost) -> Value {
    match lost.self_uj {
        Some(energy) => json!({ "rows": lost.rows, "self_uj": energy }),
        None => json!({ "rows": lost.rows }),
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Names are spelled out as they are for terminals. Values are a few levels deep.
fn spelled_out(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape(&text)),
        Value::Array(values) => values.into_iter().map(spelled_out).collect(),
        Value::Object(values) => {
            Value::Object(values.into_iter().map(|(name, value)| (escape(&name), spelled_out(value))).collect())
        }
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(rows: &[(String, u64)], notes: &[String]) -> Found {
        let rows: Vec<Value> = rows.iter().map(|(name, uj)| json!({ "name": name, "self_uj": uj })).collect();
        let value = json!({ "table": { "rows": rows }, "notes": notes, "whole": 1 });
        Found { value, lists: vec!["/table/rows".to_owned(), "/notes".to_owned()] }
    }

    #[test]
    fn what_fits_is_whole() {
        let found = found(&[("a".to_owned(), 1)], &["b".to_owned()]);
        assert_eq!(fitting(found.clone()), Ok(found.value));
    }

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out() {
        let found = found(&[("\u{1b}[2J\u{202e}\n".to_owned(), 1)], &[]);
        assert_eq!(fitting(found).unwrap()["table"]["rows"][0]["name"], r"\x1b[2J\u{202e}\x0a");
    }

    #[test]
    fn what_does_not_fit_without_rows_is_refused() {
        let value = json!({ "text": "x".repeat(MOST_BYTES) });
        assert_eq!(fitting(Found { value, lists: vec!["/rows".to_owned()] }).unwrap_err().code, "too_large");
    }

    proptest! {
        #[test]
        fn whole_rows_go_from_the_end_and_are_counted(
            rows in proptest::collection::vec(("[a-z]{0,300}", 0..1_000_000_u64), 0..300),
            notes in proptest::collection::vec("[a-z]{0,900}", 0..60),
        ) {
            let whole = found(&rows, &notes);
            let fits = fitting(whole.clone()).unwrap();
            prop_assert!(size(&fits) <= MOST_BYTES);
            for (list, name) in [("/table/rows", "table/rows"), ("/notes", "notes")] {
                let (before, after) = (items(&whole.value, list), items(&fits, list));
                prop_assert_eq!(&before[..after.len()], after);
                let left_out = fits["left_out"][name]["rows"].as_u64().unwrap_or(0);
                prop_assert_eq!(usize::try_from(left_out).unwrap(), before.len() - after.len());
            }
            let energy = |value: &Value| items(value, "/table/rows").iter().map(|row| row["self_uj"].as_u64().unwrap()).sum::<u64>();
            let left_out = fits["left_out"]["table/rows"]["self_uj"].as_u64().unwrap_or(0);
            prop_assert_eq!(energy(&fits) + left_out, energy(&whole.value));
        }
    }
}
