//! Tests that README and documents name commands, options and columns that exist.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use joular_tests::paths;

use crate::joular_bpf;

/// README and all documents, with their texts.
fn documents() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(paths::root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let papers = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .map(|name| paths::root().join(name));
    let markdown = docs.chain(papers).filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    markdown
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))))
        .collect()
}

/// Words behind each occurrence of `command` that stands at the start of code.
fn words_after<'a>(text: &'a str, command: &str) -> Vec<Vec<&'a str>> {
    let rest_of_line = |at: usize| text[at + command.len()..].split(['\n', '`', '#', '|', ';']).next().unwrap_or("");
    text.match_indices(command).map(|(at, _)| rest_of_line(at).split_whitespace().collect()).collect()
}

/// Names of subcommands, as `--help` lists them.
pub fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.split_once("Commands:\n").map_or("", |(_, listed)| listed).split("\n\n").next().unwrap();
    listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

#[test]
fn the_quick_start_is_two_commands() {
    let readme = fs::read_to_string(paths::root().join("README.md")).unwrap();
    for command in ["cargo xtask demo", "cargo xtask test"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}

/// Targets of the links in a document, without those to other hosts and to its own headings.
fn linked(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn every_file_that_a_document_links_to_exists() {
    let links = documents().into_iter().flat_map(|(path, text)| {
        let folder = path.parent().unwrap().to_owned();
        linked(&text).map(|target| (path.clone(), folder.join(target))).collect::<Vec<_>>()
    });
    let links = links.collect::<Vec<_>>();
    assert!(links.len() > 20, "{links:?}");
    for (path, target) in links {
        assert!(target.exists(), "{}: there is no {}", path.display(), target.display());
    }
}

#[test]
fn the_index_of_documents_is_complete() {
    let index = fs::read_to_string(paths::root().join("docs/README.md")).unwrap();
    for (path, _) in documents() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || index.contains(&format!("{name})")), "docs/README.md does not list {name}");
    }
}

/// Nobody reads a page that only grows.
#[test]
fn the_pages_that_people_read_first_stay_short() {
    for (name, most) in [("README.md", 1_800), ("ARCHITECTURE.md", 4_500)] {
        let text = fs::read_to_string(paths::root().join(name)).unwrap();
        let words = text.split_whitespace().count();
        assert!(words <= most, "{name}: {words} words, at most {most}");
    }
}

/// Files and folders that a text names in code, with one of several last parts: `a/{b,c}.rs`.
fn named_files(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.contains(".rs") && !name.contains(char::is_whitespace)).collect()
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let files = Command::new("git").args(["ls-files"]).current_dir(paths::root()).output().unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    let text = fs::read_to_string(paths::root().join("ARCHITECTURE.md")).unwrap();
    let named = named_files(&text);
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let each = match name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
            Some((before, (parts, after))) => parts.split(',').map(|part| format!("{before}{part}{after}")).collect(),
            None => vec![name.to_owned()],
        };
        for name in each {
            let is_it = |file: &str| file == name || file.ends_with(&format!("/{name}"));
            assert!(files.lines().any(is_it), "ARCHITECTURE.md: there is no {name}");
        }
    }
}

#[test]
fn every_task_in_a_document_exists() {
    let help = Command::new(env!("CARGO")).args(["xtask", "--help"]).current_dir(paths::root()).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let tasks = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect::<Vec<_>>();
    for (path, text) in documents() {
        for words in words_after(&text, "cargo xtask ") {
            let task = words.first().copied().unwrap_or_default();
            assert!(tasks.contains(&task), "{}: `cargo xtask {task}` is none of {tasks:?}", path.display());
        }
    }
}

#[test]
fn every_option_in_a_command_line_of_a_document_exists() {
    let help = joular_bpf(&["--help"]).stdout;
    let mut helps = String::new();
    for name in subcommands(&help) {
        let of_command = joular_bpf(&[name, "--help"]).stdout;
        helps.extend(subcommands(&of_command).map(|below| joular_bpf(&[name, below, "--help"]).stdout));
        helps.push_str(&of_command);
    }
    for (path, text) in documents() {
        for words in [words_after(&text, "joular-bpf "), words_after(&text, "xtask run -- ")].concat() {
            for option in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let name = option.split('=').next().unwrap_or(option).trim_end_matches(['.', ',', ':', ')']);
                let known = help.contains(name) || helps.contains(name);
                assert!(known, "{}: joular-bpf has no option {name}", path.display());
            }
        }
    }
}

#[test]
fn every_exit_code_is_documented() {
    let texts = documents().into_iter().map(|(_, text)| text).collect::<String>();
    let help = joular_bpf(&["--help"]).stdout;
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "130"] {
        let as_row = format!("| {code} |");
        let in_help = help.lines().any(|line| line.trim_start().starts_with(&format!("{code} ")));
        assert!(texts.contains(&as_row) || in_help, "exit code {code} is in no table of a document and not in --help");
    }
}

/// What a file of the product can say: without comments and tests, each literal on one line, and `…` in place of each value.
fn said(source: &str) -> String {
    let product = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut joined = String::new();
    for line in product.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        // A backslash at its end joins a line of a literal to the next one.
        match line.strip_suffix('\\') {
            Some(begun) => joined.push_str(begun),
            None => joined.extend([line, "\n"]),
        }
    }
    let mut parts = joined.split('{');
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((value, rest)) if !value.contains(['"', '\n']) => said.extend(["…", rest]),
            _ => said.extend(["{", part]),
        }
    }
    said
}

#[test]
fn what_a_file_says_is_found_across_lines_and_values() {
    let source =
        "// \"gone\"\nf(\"reading {path:?}: \\\n   it is {}\", g { x });\n#[cfg(test)]\nmod tests {\n\"gone\"}";
    assert_eq!(said(source), "f(\"reading …: it is …\", g …);\n");
}

/// Messages have headings in code, as parts of what the sources say, with `…` for each value.
#[test]
fn every_message_that_is_explained_can_be_said() {
    let page = fs::read_to_string(paths::root().join("docs/troubleshooting.md")).unwrap();
    let files = Command::new("git").args(["ls-files", "joular-user/*.rs"]).current_dir(paths::root()).output().unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    let product = files.lines().filter(|file| !file.contains("tests"));
    let texts = product.filter_map(|file| fs::read_to_string(paths::root().join(file)).ok());
    let sources = texts.map(|text| said(&text)).collect::<Vec<_>>();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    let messages = headings.map(|heading| heading.trim_matches(['…', ' '])).collect::<Vec<_>>();
    assert!(messages.len() > 30, "{messages:?}");
    for message in messages {
        assert!(message.len() > 20, "docs/troubleshooting.md: '{message}' is too short to be found");
        let is_said = sources.iter().any(|source| source.contains(message));
        assert!(is_said, "docs/troubleshooting.md explains '{message}', which joular-bpf does not say");
    }
}
