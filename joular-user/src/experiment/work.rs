//! Knows how much work a run did: as many units as the user says, or as the command prints.

use std::sync::{Mutex, PoisonError};

use regex::bytes::Regex;

/// Finds the number of units in lines of the command's output. The last line that has one counts.
#[derive(Debug)]
pub struct WorkRule {
    pattern: Regex,
    last: Mutex<Option<f64>>,
}

impl WorkRule {
    /// # Errors
    /// If it is not a pattern, or has no group for the number.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let found = Regex::new(pattern).map_err(|error| {
            let text = error.to_string();
            format!("'{pattern}' is not a pattern: {}", text.lines().last().unwrap_or_default())
        })?;
        match found.captures_len() {
            2.. => Ok(Self { pattern: found, last: Mutex::new(None) }),
            _ => Err(format!("'{pattern}' has no group for the number: write e.g. 'handled (\\d+)'")),
        }
    }

    /// Looks at a line.
    pub fn look(&self, line: &[u8]) {
        let Some(found) = self.pattern.captures(line).and_then(|groups| groups.get(1)) else { return };
        let number = std::str::from_utf8(found.as_bytes()).ok().and_then(|text| text.trim().parse::<f64>().ok());
        if let Some(number) = number.filter(|number| is_amount(*number)) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
        }
    }

    /// What was found.
    pub fn found(&self) -> Option<f64> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it can be an amount of work.
pub fn is_amount(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_that_is_printed_counts() {
        let rule = WorkRule::new("handled (\\S+)").unwrap();
        assert_eq!(rule.found(), None);
        for line in ["handled 10 requests", "handled 2.5e3 requests", "handled nothing", "handled -1", "handled inf"] {
            rule.look(line.as_bytes());
        }
        rule.look(b"handled \xff");
        assert_eq!(rule.found(), Some(2500.0));
    }

    #[test]
    fn a_pattern_needs_a_group() {
        assert!(WorkRule::new("handled \\d+").unwrap_err().contains("has no group"));
        assert!(WorkRule::new("a(").unwrap_err().starts_with("'a(' is not a pattern: "));
    }
}
