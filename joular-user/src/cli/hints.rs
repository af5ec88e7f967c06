//! Says what somebody may have meant whose command line cannot be understood.

use std::ffi::OsString;

use clap::{
    Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Commands that take another command after `--`.
const OF_COMMANDS: [&str; 2] = ["run", "sweep"];

/// The error with a tip, if there is one.
pub fn hinted(mut error: Error, arguments: &[OsString]) -> Error {
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or_default();
    let tip = match (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(word))) => Some(format!(
            "'--comm {word}' records processes of this name, 'run -- {word} …' starts a command and records it"
        )),
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)), _)
            if OF_COMMANDS.contains(&first) && !word.starts_with('-') =>
        {
            Some(format!("the command follows '--': '{first} -- {word} …'"))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn what_was_meant_is_said() {
        for (line, expected) in [
            ("joular-bpf java", "'--comm java' records"),
            ("joular-bpf run sleep 5", "'run -- sleep …'"),
            ("joular-bpf sweep --repeat 3 java", "'sweep -- java …'"),
        ] {
            let error = parse(line.split(' ').map(Into::into)).unwrap_err().to_string();
            assert!(error.contains("tip: ") && error.contains(expected), "{error}");
        }
        let error = parse(["joular-bpf", "run", "--no-such-flag"].map(Into::into)).unwrap_err().to_string();
        assert!(!error.contains("follows"), "{error}");
    }
}
