//! Says of a bucket's errors what to do. A client tells them by text of the server within text of its own, so they are
//! sorted by what is in it.

use std::{error::Error as _, io};

use object_store::Error;

/// A server's answer may be a web page.
const MOST_CHARS: usize = 400;

/// What the text has, in small letters, and what to do then. The first one counts.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &["501 not implemented", "notimplemented", "conditional put is disabled"],
        "the store cannot create an object only if it is not there: set ship-look-first (`joular-bpf ship --look-first`), \
         and read in docs/agent.md what that does not promise",
    ),
    (&["nosuchbucket", "bucket does not exist", "containernotfound"], "check the name of the bucket"),
    (
        &["169.254.169.254", "metadata.google.internal", "missing credential"],
        "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your cloud uses",
    ),
    (&["requesttimetooskewed"], "set the clock of this host"),
    (
        &["authorizationheadermalformed", "permanentredirect", "301 moved", "received redirect"],
        "the bucket is in another region: set AWS_REGION",
    ),
    (
        &["invalidaccesskeyid", "signaturedoesnotmatch", "invalidclienttokenid", "expiredtoken", "401 unauthorized"],
        "check the credentials in the environment",
    ),
    (&["accessdenied", "403 forbidden"], "let these credentials list, read and create objects there"),
    (
        &["certificate", "unknownissuer", "handshake"],
        "check the server's certificate, and name its authority with SSL_CERT_FILE",
    ),
    (&["scheme is not allowed", "builder error", "http"], "check the network, and AWS_ENDPOINT_URL if it is set"),
];

/// The error with its causes and what to do about it, in one line.
pub(super) fn told(error: &Error) -> io::Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    let kind = match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::PermissionDenied { .. } => io::ErrorKind::PermissionDenied,
        // Another object has its name by now.
        Error::Precondition { .. } => io::ErrorKind::StaleNetworkFileHandle,
        _ => io::ErrorKind::Other,
    };
    let advice = advice(&text);
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_CHARS).collect();
    io::Error::new(kind, if advice.is_empty() { text } else { format!("{text}: {advice}") })
}

/// Whether a store does not compare before it writes, or wants to be told more for that than the tag of what is there.
pub(super) fn knows_no_condition(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::NotImplemented { .. })
        || ["501 Not Implemented", "required for conditional"].iter().any(|words| text.contains(words))
}

fn advice(text: &str) -> &'static str {
    let text = text.to_ascii_lowercase();
    let found = ADVICE.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)));
    found.map_or("", |(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        told(&Error::Generic { store: "S3", source: text.to_owned().into() }).to_string()
    }

    #[test]
    fn each_kind_of_failure_has_its_advice() {
        for (text, advice) in [
            ("501 Not Implemented: <Code>NotImplemented</Code>", "set ship-look-first"),
            ("`put_opts` with mode `PutMode::Create` when conditional put is disabled", "set ship-look-first"),
            ("Server returned 404 Not Found: <Code>NoSuchBucket</Code>", "check the name of the bucket"),
            ("403 Forbidden: <Code>RequestTimeTooSkewed</Code>", "set the clock"),
            ("400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>", "set AWS_REGION"),
            ("403 Forbidden: <Code>InvalidAccessKeyId</Code>", "check the credentials"),
            ("403 Forbidden: <Code>AccessDenied</Code>", "let these credentials"),
            ("HTTP error: invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            ("error sending request for url (http://169.254.169.254/latest/api/token)", "there are no credentials"),
            ("GET http://127.0.0.1:44019/x: HTTP error: connection refused", "check the network"),
        ] {
            let told = of(text);
            assert!(told.contains(advice), "{told}");
        }
        assert!(of("something else").ends_with("something else"));
    }

    #[test]
    fn an_error_is_a_line_of_bounded_length() {
        let told = of(&"<html>\n  a page\n".repeat(1000));
        assert!(told.len() < 500 && !told.contains('\n'), "{told}");
    }
}
