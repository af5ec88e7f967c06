//! Checks that imports follow the data path. Each part may use the parts that its row names; since
//! rows name earlier rows only, there are no cycles.

use std::path::Path;

use super::Source;

/// The parts of `joular-data`, from what knows nothing to what knows all.
const DATA: &[(&str, &[&str])] = &[
    ("model", &[]),
    // Libraries that may panic.
    ("caught", &[]),
    // Of simulations in tests.
    ("noise", &[]),
    // Secrets in command lines.
    ("redact", &[]),
    ("text", &["model"]),
    ("events", &["model", "redact"]),
    // What samples leave open: arithmetic.
    ("sampling", &["model", "noise"]),
    ("stacks", &["model", "events"]),
    ("attribution", &["model", "noise", "events", "sampling", "stacks"]),
    ("totals", &["model", "noise", "text", "events", "sampling", "stacks", "attribution"]),
    ("output", &["model", "events", "stacks", "attribution"]),
    (
        "dataset",
        &["model", "redact", "caught", "text", "events", "sampling", "stacks", "attribution", "totals", "output"],
    ),
    (
        "report",
        &[
            "model",
            "noise",
            "redact",
            "text",
            "events",
            "sampling",
            "stacks",
            "attribution",
            "totals",
            "output",
            "dataset",
        ],
    ),
    // What repeated runs and sweeps show.
    ("experiment", &["model", "noise", "text", "dataset", "report"]),
    // Shares energy out by what reports say.
    (
        "rollup",
        &["model", "redact", "text", "events", "sampling", "stacks", "attribution", "output", "dataset", "report"],
    ),
    // Brings rollups elsewhere.
    ("shipping", &["model", "redact", "text", "output", "dataset", "rollup"]),
    // Brings bundles to a database.
    ("loading", &["model", "text", "output", "dataset"]),
    // Sums what hosts have brought there.
    (
        "fleet",
        &[
            "model",
            "redact",
            "text",
            "events",
            "stacks",
            "attribution",
            "output",
            "dataset",
            "report",
            "rollup",
            "shipping",
        ],
    ),
];

/// The parts of `joular-user`, in the same order. Where a row names `data`, the
/// whole of `joular-data` may be used.
const USER: &[(&str, &[&str])] = &[
    ("data", &[]),
    ("clock", &["data"]),
    ("messages", &["data"]),
    // What the log gets of work that is tried again and again.
    ("failing", &[]),
    // Answers of HTTP servers.
    ("fetch", &["data"]),
    ("static_program", &[]),
    ("shutdown", &["data"]),
    ("privileges", &[]),
    ("heap", &[]),
    // How large the kernel's pages are.
    ("page", &[]),
    // What is kept at most, and what was cut.
    ("bounds", &["data"]),
    // Code of each processor: decoding, and what instructions do to the stack.
    ("arch", &[]),
    // Files of targets: what all that read them share.
    ("elf", &["bounds", "arch", "page"]),
    // Flags as typed and exit codes: words, no machinery.
    ("cli", &[]),
    ("procs", &["data", "bounds", "clock", "failing", "fetch", "privileges"]),
    // Run-time systems that make code: what is known of each, behind one seam.
    ("runtimes", &["data", "bounds", "clock", "arch", "elf", "procs"]),
    ("symbols", &["data", "bounds", "clock", "elf", "procs", "runtimes"]),
    ("energy", &["data", "clock", "privileges"]),
    // What windows run under, beside energy.
    ("context", &["data", "energy"]),
    ("kernel", &["data", "clock", "privileges", "page"]),
    // Tables for the programs that walk stacks: of files, of processes, of JVMs.
    ("unwind", &["data", "bounds", "clock", "arch", "elf", "procs", "runtimes", "symbols", "kernel"]),
    ("calibration", &["data", "clock", "privileges", "energy", "context", "kernel"]),
    // Files for virtual machines have the form that a source reads.
    ("output", &["data", "clock", "failing", "energy"]),
    // The view on the whole terminal.
    ("top", &["data", "messages", "output"]),
    // Commands that are measured.
    ("experiment", &["data", "clock", "privileges", "procs"]),
    // How far a long step is.
    ("progress", &["output"]),
    ("config", &["data", "privileges", "cli", "procs", "energy", "calibration", "experiment"]),
    (
        "doctor",
        &["data", "clock", "privileges", "cli", "procs", "symbols", "energy", "kernel", "calibration", "config"],
    ),
    ("sources", &["data", "cli", "energy", "config"]),
    // Counters of applications.
    ("requests", &["data", "cli", "failing", "fetch", "messages", "shutdown", "output", "config"]),
    // What programs ask about data sets.
    ("query", &["data", "cli", "config"]),
    // A window on data sets.
    ("serve", &["data", "messages", "shutdown", "cli", "output", "config", "query"]),
    ("mcp", &["data", "messages", "query"]),
    // The client of a database.
    ("load", &["data", "messages", "shutdown", "failing", "cli", "output", "config"]),
    // What developers are sent.
    ("support", &["data", "cli", "procs", "energy", "output", "config", "doctor", "sources"]),
    // What a service of a fleet does beside recording.
    ("agent", &["data", "clock", "failing", "messages", "shutdown", "privileges"]),
    (
        "pipeline",
        &[
            "data",
            "agent",
            "bounds",
            "clock",
            "messages",
            "shutdown",
            "privileges",
            "heap",
            "cli",
            "elf",
            "procs",
            "runtimes",
            "symbols",
            "energy",
            "context",
            "kernel",
            "unwind",
            "calibration",
            "output",
            "top",
            "progress",
            "experiment",
            "config",
        ],
    ),
    (
        "commands",
        &[
            "data",
            "clock",
            "messages",
            "privileges",
            "cli",
            "output",
            "top",
            "config",
            "energy",
            "doctor",
            "sources",
            "support",
            "requests",
            "serve",
            "mcp",
            "load",
            "pipeline",
            "experiment",
            "progress",
        ],
    ),
];

/// Crates, and crates whose names begin so, that one part alone knows.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("aya", &["kernel"]),
    ("arrow", &["dataset"]),
    // Before `object`, which it is not of.
    ("object_store", &["dataset"]),
    ("object", &["elf"]),
    ("parquet", &["dataset"]),
];

/// Attribution computes; it asks nobody.
const NOT_IN_ATTRIBUTION: &[&str] =
    &["std::fs", "std::io", "std::net", "std::time", "std::process", "\"/proc", "\"/sys"];

pub fn check(source: &Source, complaints: &mut Vec<String>) {
    let Some((room, inside)) = Room::of(source) else { return };
    let module = inside.with_extension("").iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
    // They declare modules and tests, and import nothing.
    if ["lib", "main", "fixture"].contains(&module.as_str()) {
        return;
    }
    let path = source.path.display();
    let Some((part, allowed)) = room.part_of(&module) else {
        complaints.push(format!("{path}: '{module}' has no place in the data path: give it one in xtask/src/tidy"));
        return;
    };
    let text = source.product_lines().collect::<Vec<_>>().join("\n");
    for import in room.imports(&text) {
        match room.part_of(&import) {
            Some((target, _)) if target == part || allowed.contains(&target) => {}
            Some((target, _)) => complaints.push(format!("{path}: {part} must not import from {target}: {import}")),
            None => complaints.push(format!("{path}: imports {import}, which has no place in the data path")),
        }
    }
    foreign(&path.to_string(), part, &text, complaints);
}

/// A crate whose modules are a path.
struct Room {
    path: &'static [(&'static str, &'static [&'static str])],
}

impl Room {
    /// Which crate a file is of, and where it is in there.
    fn of(source: &Source) -> Option<(Self, &Path)> {
        let data = source.path.strip_prefix("joular-user/data/src").ok().map(|inside| (Self { path: DATA }, inside));
        data.or_else(|| Some((Self { path: USER }, source.path.strip_prefix("joular-user/src").ok()?)))
    }

    /// The row of a module path's first name.
    fn part_of(&self, path: &str) -> Option<(&'static str, &'static [&'static str])> {
        let first = path.split("::").next().unwrap_or_default();
        self.path.iter().find(|(part, _)| *part == first).copied()
    }

    /// What a file imports of its own crate, and of the one below.
    fn imports(&self, text: &str) -> Vec<String> {
        let mut found = imports(text, "crate::");
        found.extend(imports(text, "joular_data::").into_iter().map(|path| format!("data::{path}")));
        found
    }
}

/// Rules about what comes from outside of the crate.
fn foreign(path: &str, part: &str, text: &str, complaints: &mut Vec<String>) {
    for line in text.lines().filter_map(|line| line.trim_start().trim_start_matches("pub ").strip_prefix("use ")) {
        let name = line.split([':', ';', ' ']).next().unwrap_or_default();
        let is_of =
            |family: &str| name == family || name.strip_prefix(family).is_some_and(|rest| rest.starts_with('_'));
        let rule = ONLY_IN.iter().find(|(family, _)| is_of(family));
        if rule.is_some_and(|(_, parts)| !parts.contains(&part)) {
            complaints.push(format!("{path}: only {:?} may import {name}", rule.map(|(_, parts)| parts)));
        }
    }
    if part == "attribution" {
        let found = NOT_IN_ATTRIBUTION.iter().filter(|word| text.contains(*word));
        complaints.extend(found.map(|word| format!("{path}: attribution is pure, but says {word}")));
    }
}

/// All paths below `root`, groups in braces written out.
fn imports(text: &str, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(root) {
        // `$crate::` in a macro and names that merely end so are not ours.
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            tree(&text[at + root.len()..], "", &mut found);
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
        for path in [DATA, USER] {
            for (index, (part, allowed)) in path.iter().enumerate() {
                for name in *allowed {
                    assert!(path[..index].iter().any(|(earlier, _)| earlier == name), "{part} → {name}");
                }
            }
        }
    }

    #[test]
    fn use_trees_are_written_out() {
        let text = "use crate::{\n    model::domain::{Domain, self},\n    stacks::Frame as F,\n};\nlet x = crate::model::units::Pid(1);";
        let found = ["model::domain::Domain", "model::domain", "stacks::Frame", "model::units::Pid"];
        assert_eq!(imports(text, "crate::"), found);
    }

    #[test]
    fn imports_against_the_path_are_found() {
        let events = "joular-user/data/src/events/event.rs";
        assert_eq!(complaints(events, "use crate::model::{domain::Domain, units::Pid};"), [""; 0]);
        assert_eq!(complaints(events, "use crate::stacks::StackTable;").len(), 1);
        assert_eq!(complaints(events, "use crate::dataset::column;").len(), 1);
        assert_eq!(complaints("joular-user/src/utils.rs", "").len(), 1);
        let procs = "joular-user/src/procs/mod.rs";
        assert_eq!(complaints(procs, "use joular_data::model::units::Pid;"), [""; 0]);
        assert_eq!(complaints(procs, "use crate::symbols::Symbolizer;").len(), 1);
        assert_eq!(complaints("joular-user/src/cli/mod.rs", "use joular_data::model::units::Pid;").len(), 1);
        assert_eq!(complaints(procs, "use aya::Ebpf;").len(), 1);
        assert_eq!(complaints("joular-user/src/kernel/mod.rs", "use aya::Ebpf;").len(), 0);
        assert_eq!(complaints("joular-user/data/src/report/mod.rs", "use parquet::file;").len(), 1);
        assert_eq!(complaints("joular-user/src/unwind/mod.rs", "use object::elf;").len(), 1);
        let engine = "joular-user/data/src/attribution/engine.rs";
        assert_eq!(complaints(engine, "use std::time::Instant;").len(), 1);
    }

    #[test]
    fn unit_tests_may_import_anything_and_what_follows_them_may_not() {
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::report;\n}\n";
        let file = "joular-user/data/src/events/mod.rs";
        assert_eq!(complaints(file, tests), [""; 0]);
        assert_eq!(complaints(file, &format!("{tests}use crate::report;\n")).len(), 1);
        assert_eq!(complaints(file, "#[cfg(test)]\nmod tests;\nuse crate::report;\n").len(), 1);
    }
}
