//! Matches names and labels.

use std::fmt;

use globset::{Glob, GlobMatcher};
use joular_data::events::Workload;
use joular_ebpf::abi::CommPattern;

/// Longest process name the kernel keeps, without its terminator.
const COMM_BYTES: usize = joular_ebpf::abi::COMM_LEN - 1;

/// What the kernel calls a process of Java's launcher.
pub const JAVA: &str = "java";

/// A name, exact or with `*`, `?`, `[…]`, `{a,b}`.
#[derive(Clone, Debug)]
pub enum NamePattern {
    Exact(Vec<u8>),
    Glob(GlobMatcher),
}

impl NamePattern {
    /// # Errors
    /// If the text is empty or not a pattern; says why.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a name cannot be empty".to_owned());
        }
        if text.contains(['*', '?', '[', '{', '\\']) {
            return match Glob::new(text) {
                Ok(glob) => Ok(Self::Glob(glob.compile_matcher())),
                Err(error) => Err(format!("not a pattern: {}", error.kind())),
            };
        }
        Ok(Self::Exact(text.into()))
    }

    /// The name of processes that Java's launcher starts.
    pub fn of_java() -> Self {
        Self::Exact(JAVA.into())
    }

    /// The name of a process, which the kernel cuts to 15 bytes.
    ///
    /// # Errors
    /// As [`NamePattern::new`].
    pub fn of_comm(text: &str) -> Result<Self, String> {
        let mut pattern = Self::new(text)?;
        if let Self::Exact(name) = &mut pattern {
            name.truncate(COMM_BYTES);
        }
        Ok(pattern)
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name.as_bytes(),
            Self::Glob(glob) => glob.is_match(name),
        }
    }

    /// What the kernel's programs can tell of it: the names of processes that match it, and others that begin alike.
    pub fn in_kernel(&self) -> CommPattern {
        match self {
            Self::Exact(name) if name.is_ascii() => CommPattern::exact(name),
            // Bytes of a process that are not text look like others here.
            Self::Exact(name) => CommPattern::beginning(literal(name, &[])),
            Self::Glob(glob) => CommPattern::beginning(literal(glob.glob().glob().as_bytes(), b"*?[{\\")),
        }
    }

    /// The name, if it is one name.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(name) => str::from_utf8(name).ok(),
            Self::Glob(_) => None,
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => fmt::Display::fmt(&String::from_utf8_lossy(name).escape_debug(), f),
            Self::Glob(glob) => fmt::Display::fmt(&glob.glob().glob().escape_debug(), f),
        }
    }
}

/// What stands before the first of these bytes, or the first that is not ASCII.
fn literal<'a>(text: &'a [u8], special: &[u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| special.contains(byte) || !byte.is_ascii()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// A label of a pod, by its key and a pattern of its value.
#[derive(Clone, Debug)]
pub struct LabelPattern {
    pub key: String,
    value: NamePattern,
}

impl LabelPattern {
    /// Reads `KEY=VALUE`.
    ///
    /// # Errors
    /// If there is no key, or the value is not a pattern; says why.
    pub fn new(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None | Some(("", _)) => Err("not a label: write KEY=VALUE, where VALUE may be a pattern".to_owned()),
            Some((key, "")) => Ok(Self { key: key.to_owned(), value: NamePattern::Exact(Vec::new()) }),
            Some((key, value)) => Ok(Self { key: key.to_owned(), value: NamePattern::new(value)? }),
        }
    }

    pub fn matches(&self, workload: &Workload) -> bool {
        workload.label(&self.key).is_some_and(|value| self.value.matches(value))
    }
}

impl fmt::Display for LabelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key.escape_debug(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_leaves_no_name_out_that_matches() {
        let patterns =
            ["java", "ja*", "*a", "j?va", "j[ae]va", "{java,node}", "j\\*", "fifteen-letters-and", "jä*", "ä", "x{,y}"];
        let names = ["java", "javac", "jeva", "node", "j*", "fifteen-letters", "jäx", "ä", "x", "xy", "", "\u{fffd}"];
        let mut left_out = 0;
        for text in patterns {
            let pattern = NamePattern::of_comm(text).unwrap();
            for name in names {
                let in_kernel = pattern.in_kernel().matches(&joular_data::events::decode::comm_bytes(name));
                assert!(in_kernel || !pattern.matches(name), "{text} and {name}");
                left_out += u32::from(!in_kernel);
            }
        }
        assert!(left_out > 60, "only {left_out} names are left out");
    }

    #[test]
    fn names_match_whole_and_patterns_match_as_globs() {
        for (pattern, comm, expected) in [
            ("java", "java", true),
            ("java", "javac", false),
            ("java", "Java", false),
            ("java*", "javac", true),
            ("j?va", "java", true),
            ("[jk]ava", "kava", true),
            ("{java,node}", "node", true),
            ("kworker*", "kworker/0:1", true),
            ("orders-service-main", "orders-service-", true),
            ("orders-service-main", "orders-service", false),
        ] {
            assert_eq!(NamePattern::of_comm(pattern).unwrap().matches(comm), expected, "{pattern} {comm}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "[", "{a", "[z-a]"] {
            assert!(NamePattern::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_match_by_their_key_and_the_pattern_of_their_value() {
        let labels = ["app=shop", "app.kubernetes.io/name=checkout", "empty=", "url=a=b"];
        let workload = Workload { labels: labels.map(Into::into).to_vec(), ..Workload::default() };
        for (pattern, expected) in [
            ("app=shop", true),
            ("app=sh*", true),
            ("app=other", false),
            ("ap=p=shop", false),
            ("app.kubernetes.io/name=checkout", true),
            ("empty=", true),
            ("empty=*", true),
            ("absent=", false),
            ("url=a=b", true),
        ] {
            let pattern = LabelPattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(&workload), expected, "{pattern}");
        }
        for text in ["", "app", "=shop", "app=["] {
            LabelPattern::new(text).unwrap_err();
        }
    }
}
