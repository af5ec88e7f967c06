//! Asks an application once.

use std::{fs, time::Duration};

use jiff::Timestamp;
use joular_data::model::units::UnixMicros;
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    config::Scraping,
    fetch::{self, FetchError, Request},
    output::Token,
};

/// The longest that an answer may take.
const TIME: Duration = Duration::from_secs(10);
/// Longest answer: an application with ten thousand counters has some megabytes.
const MAX_BYTES: usize = 16 << 20;
/// What is understood.
const ACCEPT: &str = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

/// What an application said.
pub(super) struct Answer {
    pub(super) text: String,
    /// In the middle between question and answer: when its counters were read, as far as can be known.
    pub(super) at: UnixMicros,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Failed {
    /// It will fail again, until somebody does what the message says.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Later(String),
}

pub(super) async fn ask(scraping: &Scraping) -> Result<Answer, Failed> {
    // Both are read anew, because they are replaced now and then.
    let token = scraping
        .token
        .as_deref()
        .map(|path| Token::read(path).map_err(|error| Failed::Refused(format!("reading {}: {error}", path.display()))));
    let token = token.transpose()?;
    let authority = scraping.authority.as_deref().map(|path| {
        fs::read(path).map_err(|error| Failed::Refused(format!("reading {}: {error}: check --ca", path.display())))
    });
    let authority = authority.transpose()?;
    let request = Request {
        url: &scraping.url,
        token: token.as_ref().map(Token::text),
        authority: authority.as_deref(),
        is_anyone_trusted: false,
        accept: Some(ACCEPT),
        max_bytes: MAX_BYTES,
    };
    let asked = Timestamp::now().as_microsecond();
    let answer = timeout(TIME, fetch::get(&request)).await;
    let answered = Timestamp::now().as_microsecond();
    match answer {
        Ok(Ok(bytes)) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Answer { text, at: UnixMicros(asked + (answered - asked) / 2) })
        }
        Ok(Err(error)) => Err(judged(&error)),
        Err(_) => Err(Failed::Later(format!("no answer within {TIME:?}"))),
    }
}

fn judged(error: &FetchError) -> Failed {
    match error {
        FetchError::Status { code: 401 | 403, .. } => Failed::Refused(format!("{error}: check --token-file")),
        FetchError::Status { code: 404, .. } => Failed::Refused(format!("{error}: check --url")),
        // Not found here, or only after a while.
        FetchError::Status { code: 300..=399, .. } => {
            Failed::Refused(format!("{error}: give its own address with --url"))
        }
        FetchError::TooLong(_) | FetchError::Status { .. } | FetchError::Failed(_) => Failed::Later(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_to_mend_is_told_from_what_may_work_later() {
        let status = |code| judged(&FetchError::Status { code, text: code.to_string() });
        for (code, advice) in [(401, "--token-file"), (403, "--token-file"), (404, "--url"), (302, "its own address")] {
            assert!(matches!(status(code), Failed::Refused(text) if text.contains(advice)), "{code}");
        }
        for code in [400, 429, 500, 502, 503] {
            assert_eq!(status(code), Failed::Later(format!("it answers {code}")));
        }
        assert!(matches!(judged(&FetchError::Failed("connection refused".to_owned())), Failed::Later(_)));
    }
}
