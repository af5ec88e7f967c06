//! Divides the times of a file of rules by one number, so that what takes hours in production takes minutes in a test.
//!
//! It knows what may stand in our file and nothing else: a key, a time or a number that it does not know is an error, so that
//! a new rule cannot slip by.

use anyhow::{Context as _, Result, bail, ensure};

/// What a number in an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Seconds, to be divided.
    Time,
    /// Anything that is the same in the test: how many, how much, or seconds of something that the test does not shorten.
    Kept,
}

/// What the test knows of a rule.
pub struct Rule {
    pub alert: &'static str,
    /// The numbers in its expression.
    pub numbers: &'static [(&'static str, Number)],
    /// The agent on which the test makes its fault.
    pub agent: &'static str,
}

/// Lines that have no time in them.
const PLAIN: [&str; 6] = ["groups", "name", "rules", "labels", "summary", "description"];

/// The file with all its times divided. Each of its alerts must be among `known`, and the other way round.
pub fn scaled(file: &str, known: &[Rule], by: u64) -> Result<String> {
    let (mut text, mut alerts) = (String::new(), Vec::new());
    for line in file.lines() {
        let content = line.trim_start().trim_start_matches("- ");
        let (key, value) = content.split_once(':').map_or((content, ""), |(key, value)| (key, value.trim()));
        let scaled = match key {
            _ if content.is_empty() || content.starts_with('#') => None,
            "alert" => {
                let rule = known.iter().find(|rule| rule.alert == value);
                alerts.push(rule.with_context(|| format!("the test makes no fault for {value}"))?);
                None
            }
            "expr" => {
                ensure!(!value.is_empty() && !value.starts_with(['|', '>']), "an expression of one line: {line}");
                Some(expression(value, alerts.last().context("an alert before its expression")?, by)?)
            }
            "for" => Some(duration(value, by)?),
            "annotations" if value.is_empty() => None,
            _ if PLAIN.contains(&key) => None,
            _ => bail!("it is not known what this line says: {line}"),
        };
        let line = scaled.map_or_else(|| line.to_owned(), |scaled| line.replace(value, &scaled));
        text.push_str(&line);
        text.push('\n');
    }
    let missing = known.iter().find(|rule| !alerts.iter().any(|found| found.alert == rule.alert));
    ensure!(missing.is_none(), "{} is not in the file", missing.map_or("", |rule| rule.alert));
    Ok(text)
}

/// An expression of PromQL, word by word.
fn expression(text: &str, rule: &Rule, by: u64) -> Result<String> {
    let (mut scaled, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || ['_', ':', '.'].contains(&c);
        let length = match first {
            '"' => rest[1..].find('"').context("a text without an end")? + 2,
            _ if is_in_word(first) => rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        let is_number = first.is_ascii_digit() || first == '.';
        scaled.push_str(&if is_number { number(word, rule, by)? } else { word.to_owned() });
        rest = after;
    }
    Ok(scaled)
}

fn number(word: &str, rule: &Rule, by: u64) -> Result<String> {
    if word.parse::<f64>().is_err() {
        return duration(word, by);
    }
    let known = rule.numbers.iter().find(|(number, _)| *number == word);
    match known.with_context(|| format!("{}: it is not known whether {word} is a time", rule.alert))?.1 {
        Number::Kept => Ok(word.to_owned()),
        Number::Time => divided(1000 * word.parse::<u64>().context(rule.alert)?, by).map(seconds),
    }
}

/// Milliseconds as PromQL has numbers of seconds.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A duration of Prometheus, such as `1h30m`.
fn duration(text: &str, by: u64) -> Result<String> {
    let (mut ms, mut rest) = (0, text);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (count, after) = rest.split_at(digits);
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, after) = after.split_at(letters);
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => bail!("{text} is not a time"),
        };
        ms += count.parse::<u64>().with_context(|| format!("{text} is not a time"))? * unit_ms;
        rest = after;
    }
    ensure!(ms > 0, "\"{text}\" is not a time");
    Ok(format!("{}ms", divided(ms, by)?))
}

fn divided(ms: u64, by: u64) -> Result<u64> {
    ensure!(ms.is_multiple_of(by), "{ms} ms cannot be divided by {by}");
    Ok(ms / by)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Rule; 1] =
        [Rule { alert: "A", numbers: &[("3600", Number::Time), ("0.1", Number::Kept)], agent: "x" }];

    fn of(expr: &str, held: &str) -> Result<String> {
        let file =
            format!("groups:\n  - name: x\n    rules:\n      - alert: A\n        expr: {expr}\n        for: {held}\n");
        let scaled = scaled(&file, &KNOWN, 60)?;
        Ok(scaled.lines().skip(4).map(str::trim).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn times_are_divided_and_nothing_else() -> Result<()> {
        let scaled = of(r#"time() - x{a="5m"} > 3600 and rate(y_2[1h30m]) > 0.1"#, "15m")?;
        ensure!(scaled == r#"expr: time() - x{a="5m"} > 60.000 and rate(y_2[90000ms]) > 0.1|for: 15000ms"#, "{scaled}");
        Ok(())
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (expr, held) in [
            ("x > 7", "15m"),
            ("x[5w] > 0.1", "15m"),
            ("x[5] > 0.1", "15m"),
            ("x > 0.1", "15"),
            ("x > 0.1", "1ms"),
            ("|", "1m"),
            ("x > 0.1", "1m\n        keep_firing_for: 5m"),
            ("x > 0.1", "1m\n      - alert: B"),
        ] {
            assert!(of(expr, held).is_err(), "{expr} {held}");
        }
    }
}
