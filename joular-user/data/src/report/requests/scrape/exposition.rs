//! Reads what applications expose for Prometheus: its text format and OpenMetrics
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Only lines of names that are wanted are understood, so that nothing else in a text is in the way.

use std::borrow::Cow;

const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// A line with a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    pub(super) labels: Vec<(&'a str, Cow<'a, str>)>,
    pub(super) value: f64,
}

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotUnderstood {
    /// From 1 on.
    pub(super) line: usize,
    pub(super) cause: &'static str,
}

/// Samples of the names that are wanted, in their order.
pub(super) fn samples<'a>(
    text: &'a str,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Result<Sample<'a>, NotUnderstood>> {
    // Line breaks within values are escaped. Lines of comments (`# TYPE`, `# EOF`) have no name.
    let lines = text.split('\n').map(|line| line.trim_matches(BLANKS)).enumerate();
    let wanted = lines.filter(move |(_, line)| is_wanted(name(line)));
    wanted.map(|(at, line)| sample(line).map_err(|cause| NotUnderstood { line: at + 1, cause }))
}

fn name(line: &str) -> &str {
    let end = line.find(|character| character == '{' || BLANKS.contains(&character));
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

fn sample(line: &str) -> Result<Sample<'_>, &'static str> {
    let name = name(line);
    let rest = line.strip_prefix(name).unwrap_or_default().trim_start_matches(BLANKS);
    let (labels, rest) = rest.strip_prefix('{').map_or(Ok((Vec::new(), rest)), labels)?;
    let mut words = rest.split(BLANKS).filter(|word| !word.is_empty());
    let value = words.next().and_then(|word| word.parse().ok()).ok_or("its value is not a number")?;
    let mut behind = words.next();
    // A time is not needed, and neither is an exemplar (`# {trace_id="…"} 1`).
    if behind.is_some_and(|word| word.parse::<f64>().is_ok()) {
        behind = words.next();
    }
    match behind {
        Some(word) if !word.starts_with('#') => Err("it goes on behind its value"),
        _ => Ok(Sample { name, labels, value }),
    }
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Labels, and what follows their brace.
fn labels(mut rest: &str) -> Result<(Labels<'_>, &str), &'static str> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(BLANKS);
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((labels, behind));
        }
        let (name, value) = rest.split_once('=').ok_or("a label has no value")?;
        let value = value.trim_start_matches(BLANKS).strip_prefix('"').ok_or("the value of a label has no quotes")?;
        let (value, behind) = quoted(value)?;
        labels.push((name.trim_matches(BLANKS), value));
        let behind = behind.trim_start_matches(BLANKS);
        rest = match behind.strip_prefix(',') {
            Some(next) => next,
            None if behind.starts_with('}') => behind,
            None => return Err("its labels have no end"),
        };
    }
}

/// A text up to its closing quote, and what follows that.
fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let mut characters = text.char_indices();
    let mut has_escapes = false;
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let (raw, behind) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
                return Ok((if has_escapes { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) }, behind));
            }
            '\\' => {
                has_escapes = true;
                characters.next();
            }
            _ => {}
        }
    }
    Err("the value of a label has no end")
}

/// Without the format's three escapes. A backslash before anything else is itself.
fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        let next = characters.clone().next().filter(|next| character == '\\' && ['\\', '"', 'n'].contains(next));
        match next {
            Some('n') => text.push('\n'),
            Some(next) => text.push(next),
            None => text.push(character),
        }
        if next.is_some() {
            characters.next();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<Result<Sample<'_>, NotUnderstood>> {
        samples(text, |name| !name.is_empty() && !name.starts_with('#')).collect()
    }

    #[test]
    fn the_example_of_the_format_is_read() {
        let text = "# HELP http_requests_total The total number of HTTP requests.\n\
                    # TYPE http_requests_total counter\n\
                    http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\
                    http_requests_total{method=\"post\",code=\"400\"}    3 1395066363000\n\n\
                    # Escaping in label values:\n\
                    msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error=\"Cannot find file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n\
                    metric_without_timestamp_and_labels 12.47\n\
                    something_weird{problem=\"division by zero\"} +Inf -3982045\n\
                    http_request_duration_seconds_bucket{le=\"+Inf\"} 144320\n";
        let found: Vec<_> = all(text).into_iter().map(Result::unwrap).collect();
        let values: Vec<f64> = found.iter().map(|sample| sample.value).collect();
        assert_eq!(values, [1027.0, 3.0, 1.458_255_915e9, 12.47, f64::INFINITY, 144_320.0]);
        assert_eq!(found[0].labels, [("method", Cow::Borrowed("post")), ("code", Cow::Borrowed("200"))]);
        assert_eq!(found[2].labels[0].1, "C:\\DIR\\FILE.TXT");
        assert_eq!(found[2].labels[1].1, "Cannot find file:\n\"FILE.TXT\"");
        assert_eq!((found[3].name, found[3].labels.len()), ("metric_without_timestamp_and_labels", 0));
    }

    #[test]
    fn exemplars_blanks_and_line_ends_of_either_kind_do_not_matter() {
        for line in [
            "a_total{x=\"1\"} 7",
            "a_total{x=\"1\",} 7\r",
            "  a_total { x = \"1\" , }\t7 1395066363000 ",
            "a_total{x=\"1\"} 7.0 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\"} 0.67",
            "a_total{x=\"1\"} 7 1520879607.789 # {id=\"}\"} 1 1520879607.789",
            "a_total{x=\"1\"}7",
        ] {
            let expected = Sample { name: "a_total", labels: vec![("x", "1".into())], value: 7.0 };
            assert_eq!(all(line), [Ok(expected)], "{line}");
        }
        assert!(all("# TYPE a_total counter\n# EOF\n\n").is_empty());
        assert!(all("a NaN")[0].as_ref().unwrap().value.is_nan());
    }

    #[test]
    fn a_line_that_is_wanted_is_understood_or_named_and_others_are_not_looked_at() {
        for (line, cause) in [
            ("a", "its value is not a number"),
            ("a{x=\"1\"}", "its value is not a number"),
            ("a{x=\"1\"} seven", "its value is not a number"),
            ("a{x} 1", "a label has no value"),
            ("a{x=1} 1", "the value of a label has no quotes"),
            ("a{x=\"1} 1", "the value of a label has no end"),
            ("a{x=\"1\\\"} 1", "the value of a label has no end"),
            ("a{x=\"1\" 1", "its labels have no end"),
            ("a 1 later", "it goes on behind its value"),
            ("a 1 2 3", "it goes on behind its value"),
        ] {
            let text = format!("{{]\nb c d\n{line}\n");
            let found: Vec<_> = samples(&text, |name| name == "a").collect();
            assert_eq!(found, [Err(NotUnderstood { line: 3, cause })], "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_by_the_rules_is_read_back(
            name in "[a-z_:][a-z0-9_:]{0,9}",
            labels in prop::collection::vec(("[a-z_]{1,9}", "[a-z\"\\\\\n\r{}=, #é]{0,12}"), 0..4),
            value: f64,
            time: Option<i64>,
            has_exemplar: bool,
        ) {
            let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let written: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let mut line = format!("{name}{{{}}} {value}", written.join(","));
            line.extend(time.map(|time| format!(" {time}")));
            line.push_str(if has_exemplar { " # {span=\"a b\"} 1" } else { "" });
            let found = all(&line);
            prop_assert_eq!(found.len(), 1);
            let sample = found[0].as_ref().map_err(|error| TestCaseError::fail(error.cause))?;
            prop_assert_eq!(sample.name, name);
            let read: Vec<(String, String)> =
                sample.labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
            prop_assert_eq!(read, labels);
            prop_assert!(sample.value.to_bits() == value.to_bits() || (sample.value.is_nan() && value.is_nan()));
        }

        #[test]
        fn no_text_is_too_much(text in "[a{}=\"\\\\, \n#1.e+\\-]{0,60}", any: String) {
            for text in [text, any] {
                prop_assert!(all(&text).len() <= text.split('\n').count());
            }
        }
    }
}
