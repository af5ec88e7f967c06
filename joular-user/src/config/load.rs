//! Resolves from flags which bundles are loaded into which database, or what its SQL is for.

use std::{path::PathBuf, time::Duration};

use joular_data::dataset::clickhouse::{Ddl, is_name};

use super::{
    ConfigError, Places,
    duration::parse_duration,
    otlp::{is_loopback, scheme},
};
use crate::cli::{Flags, LoadFlags};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

/// What `load` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// To print SQL.
    Schema(Ddl),
    Bundles(Loading),
}

/// Where bundles come from and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loading {
    pub place: PathBuf,
    /// Without a slash at the end.
    pub url: String,
    /// Whether nobody else reads what is sent there.
    pub is_private: bool,
    pub database: String,
    pub action: LoadAction,
    /// Hours that ended no longer ago; `None`: all.
    pub since: Option<Duration>,
    /// Files of user and password, and of certificates.
    pub user: Option<PathBuf>,
    pub authority: Option<PathBuf>,
}

/// What is done with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadAction {
    Once,
    /// Again and again, after so much time.
    Follow(Duration),
    /// They are compared only.
    Check,
}

/// # Errors
/// If a flag cannot be understood.
pub fn load(flags: &LoadFlags) -> Result<Load, ConfigError> {
    let places = Places::typed(&Flags::default());
    if !is_name(&flags.database) {
        let cause = format!("\"{}\" is not a name of letters, digits and _", flags.database.escape_debug());
        return Err(places.invalid("database", cause));
    }
    let days = |key: &str, text: &Option<String>| text.as_deref().map(|text| days(&places, key, text)).transpose();
    let (keep, keep_hourly) = (days("keep", &flags.keep)?, days("keep-hourly", &flags.keep_hourly)?);
    let (Some(place), Some(url)) = (&flags.place, &flags.url) else {
        return Ok(Load::Schema(Ddl { database: flags.database.clone(), keep, keep_hourly }));
    };
    let (url, is_private) = address(&places, url)?;
    let every = places.time("every", Some(&flags.every), Duration::from_secs(1)..=HOUR)?;
    let action = match (flags.check, flags.follow) {
        (true, _) => LoadAction::Check,
        (_, true) => LoadAction::Follow(every.unwrap_or(Duration::from_secs(60))),
        _ => LoadAction::Once,
    };
    Ok(Load::Bundles(Loading {
        place: place.clone(),
        url,
        is_private,
        database: flags.database.clone(),
        action,
        since: days("since", &flags.since)?,
        user: flags.user_file.clone(),
        authority: flags.ca.clone(),
    }))
}

fn address(places: &Places, text: &str) -> Result<(String, bool), ConfigError> {
    let invalid = |cause: String| ConfigError::Invalid { place: "URL".to_owned(), cause };
    let shown = text.escape_debug();
    let url = text.trim_end_matches('/');
    let Some((is_tls, host)) = scheme(url).filter(|(_, host)| !host.is_empty()) else {
        return Err(invalid(format!("\"{shown}\" is not an address such as https://clickhouse.example:8443")));
    };
    if host.contains('@') {
        let cause = "user and password belong in --user-file or the environment, where no list of processes shows them";
        return Err(invalid(cause.to_owned()));
    }
    if !host.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte)) {
        return Err(
            places.invalid("database", format!("name the database so, and an address without '?': \"{shown}\""))
        );
    }
    Ok((url.to_owned(), is_tls || is_loopback(host)))
}

/// A time of an hour or more, which may be in days.
fn days(places: &Places, key: &str, text: &str) -> Result<Duration, ConfigError> {
    let shown = text.escape_debug();
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let time = match days {
        Some(days) => DAY.saturating_mul(days),
        None => parse_duration(text).map_err(|error| places.invalid(key, format!("\"{shown}\" is {error}, or 30d")))?,
    };
    // ClickHouse counts in 32 bits of seconds.
    if (HOUR..=DAY * 36_500).contains(&time) {
        Ok(time)
    } else {
        Err(places.invalid(key, format!("\"{shown}\" is not between 1h and 36500d")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn resolved(line: &str) -> Result<Load, String> {
        let arguments = ["joular-bpf", "load"].into_iter().chain(line.split_whitespace());
        let Some(Command::Load(flags)) = cli::parse(arguments.map(Into::into)).unwrap().command else { panic!() };
        load(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn place_and_address_are_enough() {
        let expected = Loading {
            place: "s3://fleet/energy".into(),
            url: "https://ch.example:8443".to_owned(),
            is_private: true,
            database: "joular".to_owned(),
            action: LoadAction::Once,
            since: None,
            user: None,
            authority: None,
        };
        assert_eq!(resolved("s3://fleet/energy https://ch.example:8443/"), Ok(Load::Bundles(expected)));
        for (line, is_private) in
            [("d http://ch:8123", false), ("d http://127.0.0.1:8123", true), ("d http://[::1]:8123", true)]
        {
            assert!(matches!(resolved(line), Ok(Load::Bundles(loading)) if loading.is_private == is_private), "{line}");
        }
    }

    #[test]
    fn times_may_be_in_days() {
        let ddl = Ddl { database: "e".to_owned(), keep: Some(30 * DAY), keep_hourly: Some(9000 * HOUR) };
        assert_eq!(resolved("--schema --database e --keep 30d --keep-hourly 9000h"), Ok(Load::Schema(ddl)));
        let Ok(Load::Bundles(loading)) = resolved("d http://localhost --follow --every 5s --since 48h") else {
            panic!()
        };
        assert_eq!((loading.action, loading.since), (LoadAction::Follow(Duration::from_secs(5)), Some(2 * DAY)));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (line, words) in [
            ("--schema --database a-b", "--database: \"a-b\" is not a name"),
            ("--schema --keep long", "--keep: \"long\" is not a time"),
            ("--schema --keep 30m", "--keep: \"30m\" is not between 1h and"),
            ("--schema --keep-hourly 99999d", "--keep-hourly: \"99999d\" is not between"),
            ("d ch:8123", "URL: \"ch:8123\" is not an address"),
            ("d http://u:p@ch", "URL: user and password belong in --user-file"),
            ("d http://ch/?database=x", "--database: name the database so"),
            ("d http://ch --follow --every 2h", "--every: \"2h\" is not between"),
        ] {
            let error = resolved(line).unwrap_err();
            assert!(error.starts_with(words), "{line}: {error}");
        }
    }
}
