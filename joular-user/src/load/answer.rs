//! Says what an answer of ClickHouse means, and what to do about it.
//!
//! Errors have a number, by
//! <https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp>, and a text that begins with it.

use joular_data::{loading::WarehouseError, model::target_text::TargetText};

/// Of what an error says.
const MAX_SHOWN_BYTES: usize = 400;

/// What is to be done about an error, and whether it may go by itself.
const ADVICE: &[(&[u32], bool, &str)] = &[
    (&[60, 81], false, "make the tables: joular-bpf load --schema | clickhouse client"),
    (&[192, 193, 194, 516], false, "check CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, or --user-file"),
    (&[497], false, "grant its user the role that joular-bpf load --schema makes for loaders"),
    (&[16, 47, 53, 70], false, "bring the tables to this version: joular-bpf load --schema | clickhouse client"),
    (&[115], false, "its version is too old: docs/fleet/clickhouse.md says which one it needs"),
    (&[164], false, "its user may only read: name another one"),
    (&[241], true, "give its queries more memory: max_memory_usage"),
    (&[243], true, "free space there, or keep less: joular-bpf load --schema --keep"),
    (&[252], true, "it merges too slowly: look at its disks"),
    (&[159, 160, 202, 209, 210, 242, 439, 999], true, "it has too much to do, or is restarting"),
];

/// The text of an answer, or why it is none.
pub(super) fn judged(status: u16, code: Option<u32>, text: String) -> Result<String, WarehouseError> {
    let code = code.or_else(|| code_in(&text));
    if status == 200 && code.is_none_or(|code| code == 0) {
        return Ok(text);
    }
    let known = ADVICE.iter().find(|(codes, ..)| code.is_some_and(|code| codes.contains(&code)));
    let said = said(&text);
    match known {
        Some((_, true, advice)) => Err(WarehouseError::Later(format!("it answers{said}: {advice}"))),
        Some((_, false, advice)) => Err(WarehouseError::Refused(format!("it answers{said}: {advice}"))),
        None if matches!(status, 429 | 502..=504) => {
            Err(WarehouseError::Later(format!("it answers {status}{said}: it has too much to do, or is restarting")))
        }
        None if matches!(status, 401 | 403) => Err(WarehouseError::Refused(format!(
            "it answers {status}{said}: check CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, or --user-file"
        ))),
        None => Err(WarehouseError::Refused(format!(
            "it answers {status}{said}: check that the address is that of ClickHouse's HTTP interface (8123, or 8443 with TLS), \
             and its log"
        ))),
    }
}

/// The number in `Code: 60. DB::Exception: …`, at the begin of a text, or of what was added to one that had begun.
fn code_in(text: &str) -> Option<u32> {
    let start = if text.starts_with("Code: ") { 0 } else { text.find("\nCode: ")? + 1 };
    let rest = text.get(start..)?.strip_prefix("Code: ")?;
    let (number, rest) = rest.split_once('.')?;
    rest.starts_with(" DB::Exception").then(|| number.parse().ok()).flatten()
}

/// The begin of it, harmless and in one line.
fn said(text: &str) -> String {
    let shown = text.trim();
    let shown = shown.get(..shown.floor_char_boundary(MAX_SHOWN_BYTES)).unwrap_or_default();
    let shown = TargetText::from(shown.lines().next().unwrap_or_default());
    if shown.raw().is_empty() { String::new() } else { format!(": {shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do_and_whether_to_wait() {
        let of = |status, text: &str| judged(status, None, text.to_owned());
        assert_eq!(of(200, "[1]\n"), Ok("[1]\n".to_owned()));
        for (status, text, is_later, words) in [
            (
                404,
                "Code: 60. DB::Exception: Table joular.bundles does not exist. (UNKNOWN_TABLE)",
                false,
                "load --schema",
            ),
            (403, "Code: 516. DB::Exception: x: Authentication failed", false, "CLICKHOUSE_PASSWORD"),
            (500, "Code: 497. DB::Exception: x: Not enough privileges", false, "grant"),
            (500, "Code: 241. DB::Exception: (total) memory limit exceeded", true, "max_memory_usage"),
            (200, "1\t2\nCode: 241. DB::Exception: memory", true, "max_memory_usage"),
            (503, "", true, "it answers 503: it has too much to do"),
            (500, "Code: 9. DB::Exception: odd", false, "Code: 9. DB::Exception: odd"),
            (404, "<html>", false, "8123"),
        ] {
            let error = of(status, text).unwrap_err();
            assert_eq!(matches!(error, WarehouseError::Later(_)), is_later, "{text}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
        assert!(matches!(judged(200, Some(159), String::new()), Err(WarehouseError::Later(_))));
    }

    #[test]
    fn what_it_says_acts_on_no_terminal_and_is_not_long() {
        let error = judged(500, None, format!("\u{1b}[2J{}\nsecond", "é".repeat(1000))).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}') && !error.contains("second") && error.len() < 700, "{error}");
    }
}
