//! Resolves what the service records: what its configuration file says, and defaults for what runs for ever.

use super::{Config, ConfigError, ConfigFile, Input};
use crate::cli::{AgentFlags, Flags};

/// Where the service keeps its data set.
const OUTPUT: &str = "/var/lib/joular-bpf/data";
/// How much of it.
const KEEP: &str = "48h";
/// What of the file system is for others.
const KEEP_FREE: &str = "5%";

impl Config {
    /// Reads the service's configuration file, and resolves.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn of_agent(flags: &AgentFlags) -> Result<Self, ConfigError> {
        Self::agent(ConfigFile::read(&flags.config)?)
    }

    fn agent(file: ConfigFile) -> Result<Self, ConfigError> {
        let flags = completed(file.flags.clone());
        let config = Self::resolve(Flags::default(), Some(ConfigFile { flags, ..file.clone() }))?;
        match &config.input {
            Input::Replay(_) => Err(ConfigError::Invalid {
                place: file.place_of("replay"),
                cause: "a service measures: use `joular-bpf --replay FILE`".to_owned(),
            }),
            Input::Live(live) if live.duration.is_some() => Err(ConfigError::Invalid {
                place: file.place_of("duration"),
                cause: "a service has no end: leave it out".to_owned(),
            }),
            Input::Live(_) => Ok(config),
        }
    }
}

/// What the file leaves open.
fn completed(file: Flags) -> Flags {
    let is_kept = file.keep.is_some() || file.keep_size.is_some();
    let defaults = Flags {
        output: Some(OUTPUT.into()),
        keep: (!is_kept).then(|| KEEP.to_owned()),
        keep_free: Some(KEEP_FREE.to_owned()),
        quiet: true,
        ..Flags::default()
    };
    file.or_else_from(defaults)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use joular_data::dataset::store::KeepFree;

    use super::*;
    use crate::{
        config::{Screen, duration::nanoseconds},
        procs::service::rules::Rules,
    };

    fn of(text: &str) -> Result<Config, String> {
        let file = ConfigFile::parse("agent.toml".to_owned(), text.to_owned());
        file.and_then(Config::agent).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_records_jvms_for_ever_and_keeps_two_days() {
        let config = of("").unwrap();
        let Input::Live(live) = &config.input else { panic!("{config:?}") };
        assert_eq!(live.selection.to_string(), "--jvms");
        assert_eq!(config.output.as_deref(), Some(Path::new(OUTPUT)));
        assert_eq!(config.retention.limits.time_ns, Some(nanoseconds(Duration::from_secs(48 * 3600))));
        assert_eq!(config.retention.limits.keep_free, Some(KeepFree::Percent(5)));
        assert_eq!(config.retention.rotate_ns, Some(nanoseconds(Duration::from_secs(900))));
        assert_eq!(config.screen, Screen::Quiet);
    }

    #[test]
    fn the_file_decides_and_keeps_its_service_rules() {
        let config = of("all = true\noutput = '/srv/energy'\nkeep-size = '1GiB'\nship = 's3://fleet'\n\
                         [[service-rule]]\nname = 'shop'\ncomm = 'java'")
        .unwrap();
        let Input::Live(live) = &config.input else { panic!("{config:?}") };
        assert!(live.selection.is_all());
        assert_eq!((config.retention.limits.time_ns, config.retention.limits.bytes), (None, Some(1 << 30)));
        assert_eq!(config.ship.unwrap().to, "s3://fleet");
        assert_ne!(format!("{:?}", live.service_rules), format!("{:?}", Rules::default()));
    }

    #[test]
    fn what_a_service_cannot_do_is_refused_with_its_line() {
        for (text, message) in [
            ("\nreplay = 'x.jrec'", "agent.toml:2: replay: a service measures"),
            ("duration = '5m'", "agent.toml:1: duration: a service has no end"),
            ("\n\nshipp = 's3://b'", "agent.toml:3: unknown field `shipp`"),
            ("ship-rate = 'x'\nship = 's3://b'", "agent.toml:1: ship-rate: \"x\" is not a size"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
