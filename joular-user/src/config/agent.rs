//! Resolves what the service records: what its configuration file says, and defaults for what runs for ever.

use std::path::Path;

use super::{Config, ConfigError, ConfigFile, Input, Live};
use crate::cli::Flags;

/// Where the service keeps its data set.
const OUTPUT: &str = "/var/lib/joular-bpf/data";
/// How much of it.
const KEEP: &str = "48h";
/// What of the file system is for others.
const KEEP_FREE: &str = "5%";

/// What a service does.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    pub config: Config,
    pub live: Live,
    /// As its file says it.
    flags: Flags,
}

impl AgentConfig {
    /// Reads the service's configuration file, and resolves.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::of(ConfigFile::read(path)?)
    }

    fn of(file: ConfigFile) -> Result<Self, ConfigError> {
        let flags = completed(file.flags.clone());
        let config = Config::resolve(Flags::default(), Some(ConfigFile { flags, ..file.clone() }))?;
        let refused = |key, cause: &str| ConfigError::Invalid { place: file.place_of(key), cause: cause.to_owned() };
        match &config.input {
            Input::Replay(_) => Err(refused("replay", "a service measures: use `joular-bpf --replay FILE`")),
            Input::Live(live) if live.duration.is_some() => {
                Err(refused("duration", "a service has no end: leave it out"))
            }
            Input::Live(live) => Ok(Self { live: (**live).clone(), flags: file.flags, config }),
        }
    }

    /// Whether the other one names services otherwise, and does nothing else otherwise. Who is recorded stays the same
    /// then, unless services are chosen by name. A file that says the same is read again for what it names: tokens,
    /// certificates.
    pub fn differs_in_rules_only(&self, other: &Self) -> bool {
        let without_rules = |flags: &Flags| Flags { service_rule: Vec::new(), ..flags.clone() };
        let is_same_beside = without_rules(&self.flags) == without_rules(&other.flags);
        is_same_beside && self.flags != other.flags && self.flags.service.is_empty()
    }

    /// Names services as the other one does, also in a recording that goes on.
    pub fn take_rules_of(&mut self, other: Self) {
        self.live.service_rules.replace_by(&other.live.service_rules);
        self.flags.service_rule = other.flags.service_rule;
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
    use std::time::Duration;

    use joular_data::dataset::store::KeepFree;

    use super::*;
    use crate::{
        config::{Screen, duration::nanoseconds},
        procs::service::rules::Rules,
    };

    fn of(text: &str) -> Result<AgentConfig, String> {
        let file = ConfigFile::parse("agent.toml".to_owned(), text.to_owned());
        file.and_then(AgentConfig::of).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_records_jvms_for_ever_and_keeps_two_days() {
        let AgentConfig { config, live, .. } = of("").unwrap();
        assert_eq!(live.selection.to_string(), "--jvms");
        assert_eq!(config.output.as_deref(), Some(Path::new(OUTPUT)));
        assert_eq!(config.retention.limits.time_ns, Some(nanoseconds(Duration::from_secs(48 * 3600))));
        assert_eq!(config.retention.limits.keep_free, Some(KeepFree::Percent(5)));
        assert_eq!(config.retention.rotate_ns, Some(nanoseconds(Duration::from_secs(900))));
        assert_eq!(config.screen, Screen::Quiet);
    }

    #[test]
    fn the_file_decides_and_keeps_its_service_rules() {
        let AgentConfig { config, live, .. } =
            of("all = true\noutput = '/srv/energy'\nkeep-size = '1GiB'\nship = 's3://fleet'\n\
                         [[service-rule]]\nname = 'shop'\ncomm = 'java'")
            .unwrap();
        assert!(live.selection.is_all());
        assert_eq!((config.retention.limits.time_ns, config.retention.limits.bytes), (None, Some(1 << 30)));
        assert_eq!(config.ship.unwrap().to, "s3://fleet");
        assert_ne!(format!("{:?}", live.service_rules.now()), format!("{:?}", Rules::default()));
    }

    #[test]
    fn other_rules_alone_need_no_other_recording_unless_they_choose_who_is_recorded() {
        let rule = "\n[[service-rule]]\nname = 'shop'\ncomm = 'java'";
        for (before, after, expected) in [
            ("", rule, true),
            (rule, "", true),
            (rule, rule, false),
            ("keep = '1h'", rule, false),
            ("frequency = 50", "frequency = 51", false),
            ("service = ['shop']", &format!("service = ['shop']{rule}"), false),
        ] {
            let [before, after] = [before, after].map(|text| of(text).unwrap());
            assert_eq!(before.differs_in_rules_only(&after), expected);
        }
    }

    #[test]
    fn what_a_service_cannot_do_is_refused_with_its_line() {
        for (text, message) in [
            ("\nreplay = 'x.jrec'", "agent.toml:2: replay: a service measures"),
            ("duration = '5m'", "agent.toml:1: duration: a service has no end"),
            ("\n\nshipp = 's3://b'", "agent.toml:3: unknown key `shipp`"),
            ("ship-rate = 'x'\nship = 's3://b'", "agent.toml:1: ship-rate: \"x\" is not a size"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
