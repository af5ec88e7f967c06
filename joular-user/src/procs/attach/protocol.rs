//! Defines what the two sides say: we to the helper (arguments and one line of JSON), the helper to
//! HotSpot (the attach protocol, version 1).
//!
//! HotSpot reads `version\0command\0arg1\0arg2\0arg3\0` from its socket and answers a decimal
//! status line and text, then closes.

use std::{collections::HashMap, ffi::OsString, path::PathBuf};

use joular_data::model::units::Pid;
use serde::{Deserialize, Serialize};

/// First argument of our own binary when it is to be the helper.
pub const HELPER_ARGUMENT: &str = "__attach-helper";
/// Most that is read of a JVM's answer.
pub const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// The awaited thing of a JVM that never opens its socket.
pub const WAITING_FOR_SOCKET: &str = "its socket";

/// The awaited thing of a helper that was killed and has not ended.
pub const WAITING_FOR_END: &str = "the end of the attach helper";

/// Name in `/tmp` of the perf map of a process with this pid in its namespace.
pub fn perf_map_name(namespace_pid: u32) -> String {
    format!("perf-{namespace_pid}.map")
}

/// The JVM that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Host's view.
    pub pid: Pid,
    /// Innermost namespace's view: the JVM names its socket with it.
    pub namespace_pid: u32,
    pub uid: u32,
    pub gid: u32,
    /// Its start, as field 22 of `/proc/PID/stat` has it. With the pid it identifies the process.
    pub start_ticks: u64,
    pub proc_root: PathBuf,
}

/// The outcome, as the helper prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The command succeeded.
    Done {
        text: String,
    },
    /// HotSpot refused it with this status.
    Refused {
        status: i32,
        text: String,
    },
    Disabled,
    SignalNotCaught,
    Stopped,
    NotAJvm,
    WrongUser {
        actual: u32,
    },
    Exited,
    Timeout {
        waiting_for: String,
    },
    Permission {
        what: String,
    },
    UntrustedSocket,
    /// The file in the place where the JVM would write its perf map.
    UntrustedMap {
        what: String,
    },
    Failed {
        what: String,
    },
}

/// The helper's arguments behind [`HELPER_ARGUMENT`].
pub fn encode(target: &Target, command: &str) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![HELPER_ARGUMENT.into()];
    let mut push = |name: &str, value: OsString| arguments.extend([name.into(), value]);
    push("--pid", target.pid.to_string().into());
    push("--ns-pid", target.namespace_pid.to_string().into());
    push("--uid", target.uid.to_string().into());
    push("--gid", target.gid.to_string().into());
    push("--start-ticks", target.start_ticks.to_string().into());
    push("--proc-root", target.proc_root.clone().into());
    push("--command", command.into());
    arguments
}

/// Names of the arguments.
const NAMES: [&str; 7] = ["--pid", "--ns-pid", "--uid", "--gid", "--start-ticks", "--proc-root", "--command"];

/// Reverses [`encode`]; the first argument may be missing. Each of the others may be there once.
pub fn decode(arguments: &[OsString]) -> Option<(Target, String)> {
    let arguments = match arguments.first() {
        Some(first) if first == HELPER_ARGUMENT => &arguments[1..],
        _ => arguments,
    };
    let mut values = HashMap::new();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        let name = name.to_str().filter(|name| NAMES.contains(name))?;
        if values.insert(name, value).is_some() {
            return None;
        }
    }
    let text = |name| values.get(name).and_then(|value| value.to_str());
    let number = |name| text(name)?.parse::<u32>().ok();
    // The kernel leaves an id as it is that is to become the last number.
    let id = |name| number(name).filter(|id| *id != u32::MAX);
    let target = Target {
        pid: Pid(number("--pid")?),
        namespace_pid: number("--ns-pid")?,
        uid: id("--uid")?,
        gid: id("--gid")?,
        start_ticks: text("--start-ticks")?.parse().ok()?,
        proc_root: values.get("--proc-root").map_or_else(|| "/proc".into(), PathBuf::from),
    };
    Some((target, text("--command")?.to_owned()))
}

/// The bytes that ask HotSpot for a diagnostic command. `None` if a zero byte
/// in it would change the meaning.
pub fn request(command: &str) -> Option<Vec<u8>> {
    (!command.contains('\0')).then(|| format!("1\0jcmd\0{command}\0\0\0").into_bytes())
}

/// What HotSpot's answer means.
pub fn parse_answer(answer: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(answer);
    let (status, text) = text.split_once('\n').unwrap_or((&text, ""));
    match status.trim().parse::<i32>() {
        Ok(0) => Reply::Done { text: text.to_owned() },
        Ok(status) => Reply::Refused { status, text: text.to_owned() },
        Err(_) if answer.is_empty() => Reply::Failed { what: "it closed the connection without an answer".into() },
        Err(_) => Reply::Failed { what: "its answer does not begin with a status".into() },
    }
}

/// Whether a VM's own options forbid attaching; the last one counts. Each part is one command line
/// or environment, its strings separated by zero bytes.
pub fn attach_disabled(parts: &[&[u8]]) -> bool {
    let words = parts.iter().flat_map(|part| part.split(|byte| *byte == 0 || byte.is_ascii_whitespace()));
    words.fold(false, |disabled, word| {
        // The first option in an environment variable stands behind its name.
        let option = word.rsplit(|&byte| byte == b'=').next().unwrap_or(word);
        match option {
            b"-XX:+DisableAttachMechanism" => true,
            b"-XX:-DisableAttachMechanism" => false,
            _ => disabled,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_survive_the_way_to_the_helper() {
        let proc_root = PathBuf::from("/host proc");
        let target = Target { pid: Pid(12), namespace_pid: 1, uid: 1000, gid: 1001, start_ticks: 1 << 40, proc_root };
        let arguments = encode(&target, "VM.version");
        assert_eq!(decode(&arguments), Some((target.clone(), "VM.version".to_owned())));
        assert_eq!(decode(&arguments[1..]), Some((target, "VM.version".to_owned())));
        assert_eq!(decode(&arguments[..4]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn arguments_that_nobody_wrote_are_refused() {
        let target = Target { pid: Pid(1), namespace_pid: 1, uid: 0, gid: 0, start_ticks: 1, proc_root: "/p".into() };
        let good = encode(&target, "VM.version");
        let changed = |name: &str, value: &[u8]| {
            let mut arguments = good.clone();
            let at = arguments.iter().position(|argument| argument == name).unwrap();
            arguments[at + 1] = OsString::from_vec(value.to_owned());
            decode(&arguments)
        };
        let huge = [b'1'; 128 << 10];
        for name in ["--pid", "--ns-pid", "--uid", "--gid", "--start-ticks"] {
            for value in [b"".as_slice(), b"-1", b"x", b"1 ", b"18446744073709551616", b"\xff", &huge] {
                assert_eq!(changed(name, value), None, "{name} {}", value.escape_ascii());
            }
        }
        for name in ["--uid", "--gid"] {
            assert_eq!(changed(name, b"4294967295"), None, "{name}: the kernel leaves such an id as it is");
        }
        assert_eq!(changed("--command", b"\xff"), None);
        for at in (1..good.len()).step_by(2) {
            // The root is that of this system if there is none.
            let is_optional = good[at] == "--proc-root";
            let without = [&good[..at], &good[at + 2..]].concat();
            assert_eq!(decode(&without).is_some(), is_optional, "without {:?}", good[at]);
            let twice = [&good[..], &good[at..at + 2]].concat();
            assert_eq!(decode(&twice), None, "twice {:?}", good[at]);
            assert_eq!(decode(&good[..=at]), None, "{:?} without a value", good[at]);
        }
        assert_eq!(decode(&[&good[..], &["--more".into(), "1".into()]].concat()), None);
    }

    #[test]
    fn a_request_has_five_strings() {
        assert_eq!(request("Compiler.perfmap").unwrap(), b"1\0jcmd\0Compiler.perfmap\0\0\0");
        assert_eq!(request("a\0b"), None);
    }

    #[test]
    fn answers() {
        let refused = |status, text: &str| Reply::Refused { status, text: text.into() };
        for (answer, expected) in [
            ("0\nCommand executed successfully\n", Reply::Done { text: "Command executed successfully\n".into() }),
            ("0\n", Reply::Done { text: String::new() }),
            (
                "1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n",
                refused(1, "java.lang.IllegalArgumentException: Unknown diagnostic command\n"),
            ),
            ("101\nprotocol", refused(101, "protocol")),
            ("", Reply::Failed { what: "it closed the connection without an answer".into() }),
            ("hello", Reply::Failed { what: "its answer does not begin with a status".into() }),
        ] {
            assert_eq!(parse_answer(answer.as_bytes()), expected, "{answer:?}");
        }
    }

    #[test]
    fn the_last_option_decides_whether_attaching_is_disabled() {
        for (parts, expected) in [
            (&[b"java\0-jar\0a.jar\0".as_slice()][..], false),
            (&[b"java\0-XX:+DisableAttachMechanism\0A\0"], true),
            (&[b"java\0-XX:+DisableAttachMechanism\0-XX:-DisableAttachMechanism\0A\0"], false),
            (&[b"java\0A\0", b"HOME=/\0JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism -Xmx1g\0"], true),
            (&[], false),
        ] {
            assert_eq!(attach_disabled(parts), expected, "{parts:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(answer in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_answer(&answer);
            let _ = attach_disabled(&[&answer]);
        }
    }
}
