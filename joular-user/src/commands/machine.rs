//! Runs commands about this machine: recording, and what comes before it.

use std::{
    io::{self, Write as _},
    rc::Rc,
};

use anyhow::{Context as _, anyhow};
use joular_data::text::escape;

use super::{unless_closed, unwritten};
use crate::{
    cli::{AgentFlags, CalibrateFlags, DoctorFlags, Exit, Flags, LogFormat, LogLevel, RunFlags, TopFlags},
    config::{self, AgentConfig, Calibrate, CommandRun, Config},
    doctor, messages, pipeline,
    privileges::lent,
    sources, top,
};

pub(super) fn record(flags: Flags) -> anyhow::Result<Exit> {
    let config = Config::load(flags)?;
    messages::redact_by(&config.redaction);
    Ok(pipeline::run(&config)?)
}

/// Shows a recording on the whole terminal, or its windows in lines where that is not possible.
pub(super) fn watch(flags: TopFlags) -> anyhow::Result<Exit> {
    let config = config::top(flags)?;
    messages::redact_by(&config.redaction);
    if let Some(why) = top::unfit() {
        messages::info(&format!("{why}: showing a line for each window instead"));
        return Ok(pipeline::run(&Config { screen: config::Screen::Table, ..config })?);
    }
    Ok(pipeline::show(&config)?)
}

pub(super) fn measure(flags: &RunFlags) -> anyhow::Result<Exit> {
    let run = CommandRun::resolve(flags)?;
    messages::redact_by(&run.config.redaction);
    Ok(pipeline::measure(&run, &flags.command)?)
}

pub(super) fn serve(flags: AgentFlags) -> anyhow::Result<Exit> {
    messages::set_format(match flags.log_format {
        LogFormat::Json => messages::Format::Json,
        LogFormat::Text if messages::go_to_journal() => messages::Format::Journal,
        LogFormat::Text => messages::Format::Text,
    });
    messages::show_from(level_of(flags.log_level)).context("listening to SIGUSR1 and SIGUSR2")?;
    let config = AgentConfig::read(&flags.config)?;
    if flags.check && flags.deep {
        lent::take_up().map_err(untaken)?;
        let mut checks = doctor::checks(&config.config.proc_root, &config.live.energy);
        checks.extend(pipeline::checks_of_service(&config, &flags.config));
        let mut text = Vec::new();
        let exit = doctor::write(&mut text, &checks, false).map_err(unwritten("the checks"))?;
        return printed(&text, exit, "the checks");
    }
    if flags.check {
        let text = format!("{}: no mistakes\n", escape(&flags.config.display().to_string()));
        return printed(text.as_bytes(), Exit::Success, "the result");
    }
    messages::redact_by(&config.config.redaction);
    if let Some(Err(problem)) = pipeline::environment_file(&flags.config) {
        messages::warn(&problem);
    }
    let load: pipeline::Load = Rc::new(move || AgentConfig::read(&flags.config));
    Ok(pipeline::serve(config, &load)?)
}

const fn level_of(level: LogLevel) -> messages::Level {
    match level {
        LogLevel::Error => messages::Level::Error,
        LogLevel::Warning => messages::Level::Warning,
        LogLevel::Info => messages::Level::Info,
        LogLevel::Debug => messages::Level::Debug,
    }
}

pub(super) fn check(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let proc_root = flags.source.proc_root.clone().unwrap_or_else(|| "/proc".into());
    let options = config::energy_options(flags.into())?;
    lent::take_up().map_err(untaken)?;
    let mut text = Vec::new();
    let checks = doctor::checks(&proc_root, &options);
    let exit = doctor::write(&mut text, &checks, json).map_err(unwritten("the checks"))?;
    printed(&text, exit, "the checks")
}

pub(super) fn list(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let options = config::energy_options(flags.into())?;
    lent::take_up().map_err(untaken)?;
    let mut text = Vec::new();
    let exit = sources::run(&mut text, &options, json).map_err(unwritten("the sources"))?;
    printed(&text, exit, "the sources")
}

pub(super) fn calibrate(flags: CalibrateFlags) -> anyhow::Result<Exit> {
    let options = Calibrate::resolve(flags)?;
    lent::take_up().map_err(untaken)?;
    Ok(pipeline::calibrate(&options, &mut io::stdout().lock())?)
}

fn untaken(cause: io::Error) -> anyhow::Error {
    anyhow!("using the rights of this copy of joular-bpf: {cause}")
}

/// The exit code is the same whether or not the text is read to its end.
fn printed(text: &[u8], exit: Exit, what: &'static str) -> anyhow::Result<Exit> {
    unless_closed(io::stdout().lock().write_all(text)).map_err(unwritten(what))?;
    Ok(exit)
}
