//! Says what a pass has loaded.

use std::io::{self, Write};

use serde::Serialize;

use crate::text::count;

/// What has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Loaded {
    pub batches: u64,
    pub runs: u64,
    /// Of the files that were sent.
    pub bytes: u64,
    /// Bundles and batches that are left out, with what to do about each.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl Loaded {
    /// Writes it as a line, or as one JSON object.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, is_json: bool, out: &mut impl Write) -> io::Result<()> {
        if is_json {
            return writeln!(out, "{}", serde_json::to_string(self)?);
        }
        writeln!(out, "{}", self.text())
    }

    /// The same as a line of text.
    pub fn text(&self) -> String {
        let tenths_mib = self.bytes.saturating_mul(10) >> 20;
        format!(
            "loaded {} in {}, {}.{} MiB",
            count(self.runs, "run"),
            count(self.batches, "batch"),
            tenths_mib / 10,
            tenths_mib % 10
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_has_arrived() {
        let loaded = Loaded { batches: 2, runs: 1, bytes: 1_600_000, problems: vec!["x".into()] };
        assert_eq!(loaded.text(), "loaded 1 run in 2 batches, 1.5 MiB");
        let mut out = Vec::new();
        loaded.say(true, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"batches\":2,\"runs\":1,\"bytes\":1600000}\n");
    }
}
