//! Runs `requests`, and says what it counted.

use joular_data::text::{count, escape};

use crate::{
    cli::{Exit, RequestsFlags},
    config, messages,
    requests::{self, CountError},
};

pub(super) fn run(flags: &RequestsFlags) -> anyhow::Result<Exit> {
    let counted = requests::run(config::scraping(flags)?).map_err(|error| match error {
        CountError::Output(error) => anyhow::Error::from(error),
        error => error.into(),
    })?;
    let file = escape(&flags.output.display().to_string());
    if counted.times == 0 || counted.routes == 0 {
        messages::warn(&format!(
            "no requests were counted: the application has to answer twice at least, and to expose a counter of requests ({})",
            if counted.routes == 0 { "name one with --counter" } else { "count for longer than --every" }
        ));
        return Ok(Exit::Failure);
    }
    if !counted.is_whole {
        messages::warn("the last question was not answered, so requests since the answer before are not in the file");
    }
    messages::info(&format!(
        "{} of {}: joular-bpf report --requests {file}",
        count(counted.requests, "request"),
        count(counted.routes, "route")
    ));
    Ok(Exit::Success)
}
