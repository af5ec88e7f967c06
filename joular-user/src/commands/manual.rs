//! Runs commands about the program itself.

use std::{io, io::Write as _};

use anyhow::anyhow;

use super::{unless_closed, unwritten};
use crate::{
    cli::{CompletionsFlags, Exit, ManFlags, pages},
    config::ConfigError,
    messages,
};

pub(super) fn completions(flags: &CompletionsFlags) -> anyhow::Result<Exit> {
    unless_closed(pages::completions(flags.shell, &mut io::stdout().lock())).map_err(unwritten("completions"))?;
    Ok(Exit::Success)
}

pub(super) fn man(flags: &ManFlags) -> anyhow::Result<Exit> {
    if let Some(dir) = &flags.output {
        let pages = pages::write_man_pages(dir).map_err(|cause| anyhow!("writing man pages: {cause}"))?;
        messages::info(&format!("wrote {pages} man pages: {}", dir.display()));
        return Ok(Exit::Success);
    }
    let Some(page) = pages::man_page(flags.page.as_deref())? else {
        let cause = "there is no such subcommand: see joular-bpf --help".to_owned();
        return Err(ConfigError::Invalid { place: "COMMAND".to_owned(), cause }.into());
    };
    unless_closed(io::stdout().lock().write_all(&page.roff)).map_err(unwritten("the page"))?;
    Ok(Exit::Success)
}
