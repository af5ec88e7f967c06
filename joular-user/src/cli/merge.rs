//! Merges flags of the command line with those of the configuration file, and says which flags are given. A new flag needs
//! nothing here: [`define_flags`] goes through the fields of [`Flags`].

use std::collections::BTreeMap;

use super::flags::Flags;

/// Flags that say which processes are measured, or that none is.
pub const TARGETS: &[&str] =
    &["comm", "jvms", "pid", "container", "pod", "namespace", "label", "cgroup", "service", "all", "replay"];

/// Flags that exclude each other: those of the command line replace those of the file.
const GROUPS: [&[&str]; 3] = [TARGETS, &["output", "no-output"], &["json", "quiet"]];

/// Flags that a replay takes. What the others say is fixed by the recording.
const OF_A_REPLAY: &[&str] = &[
    "replay",
    "config",
    "idle",
    "idle-watts",
    "smt-ratio",
    "calibration",
    "output",
    "no-output",
    "flush",
    "rotate",
    "keep",
    "keep-size",
    "keep-free",
    "command-line",
    "redact",
    "top",
    "no-infer",
    "json",
    "quiet",
    "kernel-log",
    "proc-root",
    "sys-root",
];

/// The value of a flag.
pub trait Value {
    fn is_given(&self) -> bool;
}

impl Value for bool {
    fn is_given(&self) -> bool {
        *self
    }
}

impl<T> Value for Option<T> {
    fn is_given(&self) -> bool {
        self.is_some()
    }
}

impl<T> Value for Vec<T> {
    fn is_given(&self) -> bool {
        !self.is_empty()
    }
}

impl<K, V> Value for BTreeMap<K, V> {
    fn is_given(&self) -> bool {
        !self.is_empty()
    }
}

/// Defines a struct of flags, and what is done with each of them. Tables of serde would do, too, but a path that is not
/// UTF-8 does not pass through them.
macro_rules! define_flags {
    (
        $(#[$of_all:meta])*
        pub struct $name:ident {
            $($(#[$of_flag:meta])* pub $flag:ident: $value:ty,)*
        }
    ) => {
        $(#[$of_all])*
        pub struct $name {
            $($(#[$of_flag])* pub $flag: $value,)*
        }

        impl $name {
            /// Fields, and whether their flags are given.
            pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, bool)> + use<> {
                [$((stringify!($flag), $crate::cli::merge::Value::is_given(&self.$flag)),)*].into_iter()
            }

            /// These flags. One that is not given is as in `other`, unless its field is one of `but`.
            pub(super) fn completed(self, other: Self, but: &[&str]) -> Self {
                let takes = |field, is_given: bool| !is_given && !but.contains(&field);
                Self {
                    $($flag: if takes(stringify!($flag), $crate::cli::merge::Value::is_given(&self.$flag)) {
                        other.$flag
                    } else {
                        self.$flag
                    },)*
                }
            }
        }
    };
}
pub(super) use define_flags;

/// Defines flags of a subcommand that are flags of a recording, too, but for their help.
macro_rules! define_shared_flags {
    (
        $(#[$of_all:meta])*
        pub struct $name:ident {
            $($(#[$of_flag:meta])* pub $flag:ident: $value:ty,)*
        }
    ) => {
        $(#[$of_all])*
        pub struct $name {
            $($(#[$of_flag])* pub $flag: $value,)*
        }

        impl From<$name> for $crate::cli::Flags {
            fn from(shared: $name) -> Self {
                Self { $($flag: shared.$flag,)* ..Self::default() }
            }
        }
    };
}
pub(super) use define_shared_flags;

impl Flags {
    /// These flags, completed from `file`. Flags that exclude each other are a
    /// group: `--pid 1` replaces the `comm` of the file.
    pub fn or_else_from(self, file: Self) -> Self {
        let decided = GROUPS.into_iter().filter(|group| self.first_of(group).is_some());
        let decided: Vec<String> = decided.flatten().map(|name| name.replace('-', "_")).collect();
        self.completed(file, &decided.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Names of the given flags, in the order in which they are defined.
    pub fn given(&self) -> impl Iterator<Item = String> + use<> {
        self.fields().filter(|(_, is_given)| *is_given).map(|(field, _)| field.replace('_', "-"))
    }

    /// Whether a flag is given.
    pub fn has(&self, name: &str) -> bool {
        self.given().any(|given| given == name)
    }

    /// The first of these flags that is given.
    pub fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The first given flag that applies to a measurement only.
    pub fn live_only(&self) -> Option<String> {
        self.given().find(|name| !OF_A_REPLAY.contains(&name.as_str()))
    }

    /// Conditions on targets that may be given together, by the names of their flags.
    pub fn conditions(&self) -> [(&'static str, &[String]); 7] {
        [
            ("comm", &self.comm),
            ("container", &self.container),
            ("pod", &self.pod),
            ("namespace", &self.namespace),
            ("label", &self.label),
            ("cgroup", &self.cgroup),
            ("service", &self.service),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn of(text: &str) -> Flags {
        toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// A flag as a line of the file.
    struct Line {
        name: String,
        /// What only one of can hold.
        group: String,
        text: String,
    }

    /// Every flag that the file may have, each with this number as its value if it takes one.
    fn lines(number: u32) -> Vec<Line> {
        let line = |argument: &clap::Arg| {
            let name = argument.get_long().unwrap().to_owned();
            let values = ["true", "N", "'N'", "[N]", "['N']"].map(|value| value.replace('N', &number.to_string()));
            let mut texts = values.iter().map(|value| format!("{name} = {value}"));
            let text = texts.find(|text| toml::from_str::<Flags>(text).is_ok()).unwrap();
            let is_target = argument.get_help_heading().is_some_and(|heading| heading.starts_with("Targets"));
            let group = match name.as_str() {
                _ if is_target => "targets",
                "output" | "no-output" => "output",
                "json" | "quiet" => "screen",
                other => other,
            };
            Line { group: group.to_owned(), name, text }
        };
        let command = Cli::command();
        let lines: Vec<Line> =
            command.get_arguments().filter(|argument| argument.get_id() != "config").map(line).collect();
        assert!(lines.len() > 60, "{}", lines.len());
        lines
    }

    #[test]
    fn a_flag_is_given_where_it_has_a_value() {
        assert_eq!(Flags::default().given().next(), None);
        for line in lines(7) {
            let flags = of(&line.text);
            assert_eq!(flags.given().collect::<Vec<_>>(), [line.name.as_str()]);
            assert!(flags.has(&line.name) && flags.first_of(&["config"]).is_none());
        }
    }

    #[test]
    fn every_flag_of_the_file_completes_those_that_are_typed_and_is_overridden_by_its_own_group() {
        let (typed, file) = (lines(7), lines(8));
        for line in &file {
            assert_eq!(Flags::default().or_else_from(of(&line.text)), of(&line.text));
        }
        for typed in &typed {
            assert_eq!(of(&typed.text).or_else_from(Flags::default()), of(&typed.text));
            for line in &file {
                let merged = of(&typed.text).or_else_from(of(&line.text));
                let both = format!("{}\n{}", typed.text, line.text);
                let expected = of(if typed.group == line.group { &typed.text } else { &both });
                assert_eq!(merged, expected, "{} over {}", typed.text, line.text);
            }
        }
    }

    #[test]
    fn rules_of_the_file_stay() {
        let rules = "[[service-rule]]\nname = 'shop'\n[[redact]]\nname = 'pin'\n[labels]\ncluster = 'eu1'\n";
        let merged = of("all = true").or_else_from(of(rules));
        let counts = [merged.service_rule.len(), merged.redact.len(), merged.labels.len()];
        assert_eq!((counts, merged.all), ([1; 3], true));
    }

    #[test]
    fn a_path_that_is_not_utf_8_stays_as_it_was_typed() {
        let path = Some(OsStr::from_bytes(b"/tmp/\xff").into());
        let typed = Flags { output: path.clone(), ..Flags::default() };
        assert_eq!(typed.or_else_from(of("all = true\noutput = 'x'")).output, path);
    }
}
