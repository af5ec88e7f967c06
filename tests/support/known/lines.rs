//! Finds the lines on which the workloads' methods call one another: a comment `//@ name` in their
//! sources marks each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context as _, Result, ensure};

use super::Frame;
use crate::paths;

const MARK: &str = "//@ ";

#[derive(Debug, Default)]
pub struct CallLines {
    /// By file and marked name.
    lines: BTreeMap<(String, String), BTreeSet<u32>>,
}

impl CallLines {
    pub fn read() -> Result<Self> {
        let dir = paths::fixtures().join("java/known");
        let mut found = Self::default();
        for entry in fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))? {
            let path = entry?.path();
            let file = path.file_name().and_then(|name| name.to_str()).context("a source's name")?.to_owned();
            found.add(&file, &fs::read_to_string(&path)?);
        }
        ensure!(!found.lines.is_empty(), "no line of {} is marked", dir.display());
        Ok(found)
    }

    fn add(&mut self, file: &str, text: &str) {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((_, mark)) = line.split_once(MARK) {
                self.lines.entry((file.to_owned(), mark.trim().to_owned())).or_default().insert(number);
            }
        }
    }

    /// What is wrong with the line of a frame that has called another method.
    pub fn complaint(&self, frame: &Frame) -> Option<String> {
        // A perf map knows no lines.
        if frame.kind == "compiled" || frame.kind == "native-wrapper" || !frame.class.starts_with("known.") {
            return None;
        }
        let lines = self.of(frame)?;
        let is_right = frame.line.is_some_and(|line| lines.contains(&line));
        (!is_right)
            .then(|| format!("{} calls on line {lines:?} of {}, not {:?}", frame.method(), frame.file, frame.line))
    }

    fn of(&self, frame: &Frame) -> Option<&BTreeSet<u32>> {
        let class = frame.class.split('/').next().unwrap_or_default();
        let (outer, nested) = class.split_once('$').unwrap_or((class, ""));
        // The file that it must be in, whatever the frame says.
        let file = format!("{}.java", outer.rsplit('.').next().unwrap_or_default());
        let names = [format!("{nested}.{}", frame.name), frame.name.clone()];
        let lines = names.into_iter().find_map(|name| self.lines.get(&(file.clone(), name)))?;
        Some(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: &str, name: &str, line: Option<u32>) -> Frame {
        let kind = "compiled-c2".to_owned();
        Frame { kind, class: class.to_owned(), name: name.to_owned(), line, ..Frame::default() }
    }

    #[test]
    fn a_caller_must_be_on_the_line_of_its_call() {
        let mut lines = CallLines::default();
        lines.add("F.java", "class F {\n  f(); //@ main\n  g(); //@ main\n  h(); //@ In.run\n}");
        for (class, name, line, is_right) in [
            ("known.F", "main", Some(2), true),
            ("known.F", "main", Some(3), true),
            ("known.F", "main", Some(4), false),
            ("known.F", "main", None, false),
            ("known.F$In", "run", Some(4), true),
            ("known.F$In", "run", Some(2), false),
            // Nothing is said about these.
            ("known.F", "other", None, true),
            ("java.lang.F", "main", None, true),
        ] {
            assert_eq!(lines.complaint(&frame(class, name, line)).is_none(), is_right, "{class}.{name} {line:?}");
        }
    }
}
