//! Imports of joular-user follow the data path. Each part may use the parts
//! that its row names; since rows name earlier rows only, there are no cycles.

use super::Source;

/// The data path, from what knows nothing to what knows all.
///
/// Some files are parts of their own: the vocabulary of energy domains, of
/// policies and of frames, which events carry, while the rest of `energy` and `stacks` is
/// machinery that events must not know.
const PATH: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("clock", &["units"]),
    ("shutdown", &[]),
    ("privileges", &[]),
    // Flags as typed and exit codes: words, no machinery.
    ("cli", &[]),
    ("energy::domain", &["units"]),
    ("energy::policy", &["units"]),
    ("stacks::frame", &["units"]),
    ("stacks::quality", &[]),
    ("events", &["units", "clock", "energy::domain", "energy::policy", "stacks::frame", "stacks::quality"]),
    ("stacks", &["units", "stacks::frame", "stacks::quality", "events"]),
    ("procs", &["units", "clock", "events"]),
    ("symbols", &["units", "clock", "events", "stacks::frame", "stacks::quality", "stacks", "procs"]),
    ("energy", &["units", "clock", "energy::domain", "energy::policy", "events"]),
    ("kernel", &["units", "clock", "privileges", "events"]),
    // Tables for the programs that walk stacks: of files, of processes, of JVMs.
    ("unwind", &["units", "clock", "events", "procs", "symbols", "kernel"]),
    ("calibration", &["units", "clock", "events", "energy::domain", "energy::policy", "energy", "kernel"]),
    (
        "attribution",
        &[
            "units",
            "events",
            "stacks::frame",
            "stacks::quality",
            "stacks",
            "energy::domain",
            "energy::policy",
            "energy",
        ],
    ),
    (
        "output",
        &[
            "units",
            "events",
            "stacks::frame",
            "stacks::quality",
            "stacks",
            "energy::domain",
            "energy::policy",
            "attribution",
        ],
    ),
    (
        "report",
        &[
            "units",
            "events",
            "stacks::frame",
            "stacks::quality",
            "stacks",
            "energy::domain",
            "energy::policy",
            "energy",
            "attribution",
            "output",
        ],
    ),
    (
        "config",
        &["units", "cli", "procs", "energy::domain", "energy::policy", "energy", "calibration", "output", "report"],
    ),
    (
        "doctor",
        &[
            "units",
            "clock",
            "privileges",
            "cli",
            "events",
            "procs",
            "symbols",
            "energy::domain",
            "energy",
            "kernel",
            "config",
        ],
    ),
    ("sources", &["cli", "energy::domain", "energy"]),
    (
        "pipeline",
        &[
            "units",
            "clock",
            "shutdown",
            "privileges",
            "cli",
            "energy::domain",
            "energy::policy",
            "stacks::frame",
            "stacks::quality",
            "events",
            "stacks",
            "procs",
            "symbols",
            "energy",
            "kernel",
            "unwind",
            "calibration",
            "attribution",
            "output",
            "config",
        ],
    ),
    ("commands", &["privileges", "cli", "events", "output", "report", "config", "doctor", "sources", "pipeline"]),
];

/// Names that a module passes on from one of the vocabulary files.
const ALIASES: &[(&str, &str)] = &[
    ("stacks::Frame", "stacks::frame"),
    ("stacks::FrameKind", "stacks::frame"),
    ("stacks::Marker", "stacks::frame"),
    ("stacks::StackQuality", "stacks::quality"),
    ("stacks::Unwinder", "stacks::quality"),
    ("stacks::WalkEnd", "stacks::quality"),
    ("energy::Domain", "energy::domain"),
    ("energy::Label", "energy::domain"),
];

/// Crates that one part alone knows.
const ONLY_IN: &[(&str, &[&str])] =
    &[("aya", &["kernel"]), ("arrow", &["output", "report"]), ("parquet", &["output", "report"])];

/// Attribution computes; it asks nobody.
const NOT_IN_ATTRIBUTION: &[&str] =
    &["std::fs", "std::io", "std::net", "std::time", "std::process", "\"/proc", "\"/sys"];

pub fn check(source: &Source, complaints: &mut Vec<String>) {
    let Ok(inside) = source.path.strip_prefix("joular-user/src") else { return };
    let module = inside.with_extension("").iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
    if module == "lib" || module == "main" {
        return;
    }
    let path = source.path.display();
    let Some((part, allowed)) = part_of(&module) else {
        complaints.push(format!("{path}: '{module}' has no place in the data path: give it one in xtask/src/tidy"));
        return;
    };
    let text = source.product_lines().collect::<Vec<_>>().join("\n");
    for import in imports(&text) {
        match part_of(&import) {
            Some((target, _)) if target == part || allowed.contains(&target) => {}
            Some((target, _)) => complaints.push(format!("{path}: {part} must not import from {target}: {import}")),
            None => complaints.push(format!("{path}: imports crate::{import}, which has no place in the data path")),
        }
    }
    foreign(&path.to_string(), part, &text, complaints);
}

/// Rules about what comes from outside of the crate.
fn foreign(path: &str, part: &str, text: &str, complaints: &mut Vec<String>) {
    for line in text.lines().filter_map(|line| line.trim_start().trim_start_matches("pub ").strip_prefix("use ")) {
        let name = line.split([':', ';', ' ']).next().unwrap_or_default();
        let rule = ONLY_IN.iter().find(|(name_of_crate, _)| name == *name_of_crate);
        if rule.is_some_and(|(_, parts)| !parts.contains(&part)) {
            complaints.push(format!("{path}: only {:?} may import {name}", rule.map(|(_, parts)| parts)));
        }
    }
    if part == "attribution" {
        let found = NOT_IN_ATTRIBUTION.iter().filter(|word| text.contains(*word));
        complaints.extend(found.map(|word| format!("{path}: attribution is pure, but says {word}")));
    }
}

/// The row of the longest prefix of a module path.
fn part_of(path: &str) -> Option<(&'static str, &'static [&'static str])> {
    let resolved = ALIASES.iter().find(|(alias, _)| *alias == path).map_or(path, |(_, module)| module);
    let is_inside =
        |part: &str| resolved.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    PATH.iter().filter(|(part, _)| is_inside(part)).max_by_key(|(part, _)| part.len()).copied()
}

/// All paths below `crate::`, groups in braces written out.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        // `$crate::` in a macro and names that merely end so are not ours.
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            tree(&text[at + "crate::".len()..], "", &mut found);
        }
    }
    found
}

/// Reads one use tree (`a::{b, c::d}`), adds its paths, returns what follows it.
fn tree<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().starts_with('}') && !rest.trim_start().is_empty() {
            rest = tree(rest, prefix, found);
            rest = rest.trim_start().strip_prefix(',').unwrap_or(rest);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or("");
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    if let Some(below) = rest.strip_prefix("::") {
        return tree(below, &path, found);
    }
    found.push(if name == "self" { prefix.to_owned() } else { path });
    // `as NAME` belongs to this leaf; a name of no length must not stop us.
    let next = rest.find([',', '}', ';', '\n']).unwrap_or(rest.len());
    if end == 0 { rest.get(next.max(1)..).unwrap_or("") } else { &rest[next..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        check(&Source { path: path.into(), text: text.to_owned() }, &mut complaints);
        complaints
    }

    #[test]
    fn rows_name_earlier_rows_only() {
        for (index, (part, allowed)) in PATH.iter().enumerate() {
            for name in *allowed {
                assert!(PATH[..index].iter().any(|(earlier, _)| earlier == name), "{part} → {name}");
            }
        }
    }

    #[test]
    fn use_trees_are_written_out() {
        let text = "use crate::{\n    energy::domain::{Domain, self},\n    stacks::Frame as F,\n};\nlet x = crate::units::Pid(1);";
        assert_eq!(imports(text), ["energy::domain::Domain", "energy::domain", "stacks::Frame", "units::Pid"]);
    }

    #[test]
    fn imports_against_the_path_are_found() {
        let events = "joular-user/src/events/event.rs";
        assert_eq!(complaints(events, "use crate::{energy::domain::Domain, stacks::Frame, units::Pid};"), [""; 0]);
        assert_eq!(complaints(events, "use crate::stacks::StackTable;").len(), 1);
        assert_eq!(complaints(events, "use crate::output::rows;").len(), 1);
        assert_eq!(complaints("joular-user/src/utils.rs", "").len(), 1);
        assert_eq!(complaints("joular-user/src/procs/mod.rs", "use aya::Ebpf;").len(), 1);
        assert_eq!(complaints("joular-user/src/kernel/mod.rs", "use aya::Ebpf;").len(), 0);
        assert_eq!(complaints("joular-user/src/attribution/engine.rs", "use std::time::Instant;").len(), 1);
    }

    #[test]
    fn unit_tests_may_import_anything() {
        let text = "use crate::units::Pid;\n#[cfg(test)]\nmod tests { use crate::pipeline; }";
        assert_eq!(complaints("joular-user/src/events/mod.rs", text), [""; 0]);
    }
}
