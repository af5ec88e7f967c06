//! Makes shell completions and man pages from the parser's own definition, so they always show what
//! can be typed.

use std::{fs, io, io::Write, path::Path};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{definition, refused};

/// Flags of `completions`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompletionsFlags {
    /// Shell to write completions for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Flags of `man`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ManFlags {
    /// Subcommand to write the page of [default: joular-bpf itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub page: Option<String>,

    /// Write all pages into this directory, which is created if needed
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Writes the completion script of a shell.
///
/// # Errors
/// If it cannot be written.
pub fn completions(shell: Shell, out: &mut impl Write) -> io::Result<()> {
    // The generator panics when a write fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut refused::left_out(definition()), "joular-bpf", &mut script);
    if shell == Shell::Bash {
        // The generator takes a name's hyphen for a step to a subcommand in some
        // places and not in others, so that the script would never find its own labels.
        let text = String::from_utf8_lossy(&script).replace("joular__subcmd__bpf", "joular__bpf");
        script = text.into_bytes();
    }
    out.write_all(&script)
}

/// A man page: its name without section, and its text.
pub struct Page {
    pub name: String,
    pub roff: Vec<u8>,
}

/// A page for joular-bpf, the first, one for each subcommand, and behind them those for subcommands of subcommands.
///
/// # Errors
/// If a page cannot be rendered; in memory this does not happen.
pub fn man_pages() -> io::Result<Vec<Page>> {
    let mut whole = definition().disable_help_subcommand(true);
    whole.build();
    let page = |command: Command| {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let mut roff = Vec::new();
        Man::new(command)
            .title(&name)
            .section("1")
            .source(concat!("joular-bpf ", env!("CARGO_PKG_VERSION")))
            .manual("joular-bpf")
            .render(&mut roff)?;
        Ok(Page { name, roff })
    };
    let commands = shown(&whole);
    let nested: Vec<Command> = commands.iter().flat_map(shown).collect();
    std::iter::once(whole).chain(commands).chain(nested).map(page).collect()
}

/// Subcommands that help shows, without clap's own.
fn shown(command: &Command) -> Vec<Command> {
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command.get_subcommands().filter(is_shown).cloned().collect()
}

/// The page of a subcommand, or joular-bpf's own; `None` if there is no such subcommand.
///
/// # Errors
/// See [`man_pages`].
pub fn man_page(subcommand: Option<&str>) -> io::Result<Option<Page>> {
    let name = subcommand.map_or_else(|| "joular-bpf".to_owned(), |subcommand| format!("joular-bpf-{subcommand}"));
    Ok(man_pages()?.into_iter().find(|page| page.name == name))
}

/// Writes `NAME.1` for each page; returns how many.
///
/// # Errors
/// If one cannot be written; the message names the file.
pub fn write_man_pages(dir: &Path) -> io::Result<usize> {
    let at = |path: &Path, error: &io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    fs::create_dir_all(dir).map_err(|error| at(dir, &error))?;
    let pages = man_pages()?;
    for page in &pages {
        let path = dir.join(format!("{}.1", page.name));
        fs::write(&path, &page.roff).map_err(|error| at(&path, &error))?;
    }
    Ok(pages.len())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn completions_know_every_subcommand_in_every_shell() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            completions(*shell, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for command in definition().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(script.contains("idle-watts"), "{shell}");
        }
    }

    #[test]
    fn every_subcommand_has_a_page_that_names_its_options() {
        let command = definition();
        let pages = man_pages().unwrap();
        let nested = command.get_subcommands().map(|command| command.get_subcommands().count()).sum::<usize>();
        assert_eq!(pages.len(), 1 + command.get_subcommands().count() + nested);
        let save = man_page(Some("baseline-save")).unwrap().unwrap();
        assert!(String::from_utf8(save.roff).unwrap().contains("joular\\-bpf baseline save"));
        for (subcommand, page) in command.get_subcommands().zip(&pages[1..]) {
            let text = String::from_utf8(page.roff.clone()).unwrap();
            assert_eq!(page.name, format!("joular-bpf-{}", subcommand.get_name()));
            for option in subcommand.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                assert!(text.contains(&long.replace('-', "\\-")), "{}: --{long}", page.name);
            }
        }
        assert!(man_page(Some("no-such")).unwrap().is_none());
    }
}
