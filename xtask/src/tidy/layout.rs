//! Checks that files are easy to take in: sizes, names, and no open ends.

use super::Source;

const MAX_LINES: usize = 400;
const MAX_MAIN_LINES: usize = 80;

/// Files that may be longer, each with its reason. None so far.
const LONGER: &[(&str, &str)] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "misc", "common"];

/// What must not be left in code. Spelled in two, so that this file passes.
const OPEN_ENDS: &[&str] = &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!(")];

pub fn check(source: &Source, complaints: &mut Vec<String>) {
    let path = source.path.display();
    let lines = source.text.lines().count();
    let is_main = source.path.ends_with("src/main.rs");
    let limit = if is_main { MAX_MAIN_LINES } else { MAX_LINES };
    let may_be_longer = LONGER.iter().any(|(exception, _)| source.path.ends_with(exception));
    if lines > limit && !may_be_longer {
        complaints.push(format!("{path}: {lines} lines, at most {limit}: is there a second job inside?"));
    }
    let stem = source.path.with_extension("");
    if let Some(name) = stem.iter().find(|part| EMPTY_NAMES.iter().any(|name| part == name)) {
        complaints.push(format!("{path}: '{}' does not say what is inside", name.display()));
    }
    for (number, line) in source.text.lines().enumerate() {
        if let Some(open_end) = OPEN_ENDS.iter().find(|open_end| line.contains(*open_end)) {
            complaints.push(format!("{path}:{}: {open_end}…)", number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        let mut complaints = Vec::new();
        check(&Source { path: path.into(), text: text.to_owned() }, &mut complaints);
        complaints.len()
    }

    #[test]
    fn each_rule_can_fail() {
        assert_eq!(complaints("a/src/lib.rs", "fn f() {}\n"), 0);
        assert_eq!(complaints("a/src/lib.rs", &"\n".repeat(401)), 1);
        assert_eq!(complaints("a/src/main.rs", &"\n".repeat(81)), 1);
        assert_eq!(complaints("a/src/utils.rs", ""), 1);
        assert_eq!(complaints("a/src/utils/mod.rs", ""), 1);
        assert_eq!(complaints("a/src/lib.rs", concat!("to", "do!()")), 1);
    }
}
