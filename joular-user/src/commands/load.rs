//! Runs `load`, and says what was loaded or compared.

use std::io::{self, Write as _};

use super::{unless_closed, unwritten};
use crate::{
    cli::{Exit, LoadFlags},
    config::{self, Load, LoadAction, Loading},
    load, messages,
};

pub(super) fn run(flags: &LoadFlags) -> anyhow::Result<Exit> {
    match config::load(flags)? {
        Load::Schema(ddl) => {
            let said = io::stdout().lock().write_all(ddl.sql().as_bytes());
            unless_closed(said).map_err(unwritten("the SQL"))?;
            Ok(Exit::Success)
        }
        Load::Bundles(loading) => match loading.action {
            LoadAction::Once => once(&loading, flags.json),
            LoadAction::Follow(every) => {
                load::follow(&loading, every)?;
                Ok(Exit::Success)
            }
            LoadAction::Check => check(&loading, flags.json),
        },
    }
}

fn once(loading: &Loading, is_json: bool) -> anyhow::Result<Exit> {
    let (loaded, result) = load::once(loading)?;
    loaded.problems.iter().for_each(|problem| messages::warn(problem));
    let said = loaded.say(is_json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("what was done"))?;
    result?;
    Ok(if loaded.problems.is_empty() { Exit::Success } else { Exit::Failure })
}

fn check(loading: &Loading, is_json: bool) -> anyhow::Result<Exit> {
    let checked = load::check(loading)?;
    let said = checked.say(is_json, &mut io::stdout().lock());
    unless_closed(said).map_err(unwritten("what was compared"))?;
    Ok(if checked.is_well() { Exit::Success } else { Exit::Failure })
}
