//! Names the sources that the user asks for.

use thiserror::Error;

use super::{SOURCES, replay, shared_file::FileFormat};

/// Which sources to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnergyChoice {
    /// The best source that works, and those that add to it.
    #[default]
    Auto,
    /// All of these or none; at least one, none twice.
    These(Vec<&'static str>),
}

impl EnergyChoice {
    /// As in `--energy`.
    pub fn name(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::These(names) => names.join(","),
        }
    }

    /// Whether `--energy-file` means anything to it.
    pub fn reads_file(&self) -> bool {
        let readers = [FileFormat::ALL.map(FileFormat::name).as_slice(), &[replay::NAME]].concat();
        let reads = |name: &&str| readers.contains(name);
        match self {
            Self::Auto => true,
            Self::These(names) => names.iter().any(reads),
        }
    }
}

/// A text that names no sources.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChoiceError {
    #[error("no such energy source: use auto, or one or several of {}", known_sources())]
    Unknown,
    /// Reading it twice would count its energy twice.
    #[error("{0} is named twice: name each source once")]
    Twice(&'static str),
    #[error("auto chooses by itself: use it alone")]
    AutoAndMore,
}

fn known_sources() -> String {
    SOURCES.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

impl std::str::FromStr for EnergyChoice {
    type Err = ChoiceError;

    /// Names with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.contains(&"auto") {
            return if words.len() == 1 { Ok(Self::Auto) } else { Err(ChoiceError::AutoAndMore) };
        }
        let mut names = Vec::new();
        for word in words {
            let kind = SOURCES.iter().find(|kind| kind.name == word).ok_or(ChoiceError::Unknown)?;
            if names.contains(&kind.name) {
                return Err(ChoiceError::Twice(kind.name));
            }
            names.push(kind.name);
        }
        Ok(Self::These(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_the_names_of_the_sources() {
        for kind in SOURCES {
            assert_eq!(kind.name.parse(), Ok(EnergyChoice::These(vec![kind.name])));
        }
        for (text, expected) in [
            ("auto", Ok("auto")),
            ("perf,model", Ok("perf,model")),
            (" perf , watts ", Ok("perf,watts")),
            ("perf,perf", Err(ChoiceError::Twice("perf"))),
            ("auto,perf", Err(ChoiceError::AutoAndMore)),
            ("perf,", Err(ChoiceError::Unknown)),
            ("", Err(ChoiceError::Unknown)),
            ("rapl", Err(ChoiceError::Unknown)),
        ] {
            let found = text.parse::<EnergyChoice>().map(|choice| choice.name());
            assert_eq!(found, expected.map(str::to_owned), "{text:?}");
        }
        let message = ChoiceError::Unknown.to_string();
        assert!(
            message.starts_with("no such energy source: use auto, or one or several of perf, powercap, "),
            "{message}"
        );
    }

    #[test]
    fn only_some_choices_read_a_file() {
        for (text, expected) in [("auto", true), ("watts", true), ("perf,powerjoular", true), ("perf", false)] {
            assert_eq!(text.parse::<EnergyChoice>().unwrap().reads_file(), expected, "{text}");
        }
    }
}
