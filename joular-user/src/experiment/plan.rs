//! Plans the runs of an experiment: which variants there are, and in which order they run.
//!
//! Each round runs every variant once, in a random order. So what changes while the experiment lasts, such as the
//! temperature, meets all variants alike. The order follows from the seed and the round alone: an experiment that goes
//! on after an interruption, or gets more rounds, keeps it.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use serde::{Deserialize, Serialize};

use super::parameter::{Parameter, ParameterError};

/// More variants than this are a mistake.
const MAX_VARIANTS: usize = 1000;
/// Of a name, which is a folder's, too.
const MAX_NAME_BYTES: usize = 120;
/// The name of a single variant.
pub const ONLY: &str = "base";

/// A command that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: String,
    pub command: Vec<OsString>,
    /// Of its parameters, by their names.
    pub values: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("--parameter: {0}")]
    Parameter(#[from] ParameterError),
    #[error("--parameter: {{{0}}} stands nowhere in the command: write it where the value belongs")]
    Unused(String),
    #[error("--variant: '{0}' is not NAME='COMMAND': write e.g. base='java -jar shop.jar'")]
    Shape(String),
    #[error("--variant {0}: the command has an open quote, or is empty")]
    Words(String),
    #[error("--variant: '{0}' cannot name a variant: use at most {MAX_NAME_BYTES} letters, digits and _ - + . , = @")]
    Name(String),
    #[error("--variant: {0} is there twice, or looks like another one as a folder: give each a name of its own")]
    Twice(String),
    #[error("an experiment has at most {MAX_VARIANTS} variants: leave out values of --parameter")]
    Many,
    #[error("both --variant and a command after -- are given: leave one of them out")]
    Both,
    #[error("there is no command: write it after --, or give --variant NAME='COMMAND'")]
    Nothing,
}

/// The variants that flags ask for: each of `variants` (`NAME=COMMAND`), or `command`, with each value of each parameter.
///
/// # Errors
/// See [`PlanError`].
pub fn variants(command: &[OsString], variants: &[String], parameters: &[String]) -> Result<Vec<Variant>, PlanError> {
    let parameters = parameters.iter().map(|text| Parameter::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mut found = match (command, variants) {
        ([], []) => return Err(PlanError::Nothing),
        ([_, ..], [_, ..]) => return Err(PlanError::Both),
        (command, []) => vec![Variant { name: String::new(), command: command.to_vec(), values: Vec::new() }],
        ([], variants) => variants.iter().map(|text| named(text)).collect::<Result<_, _>>()?,
    };
    for parameter in &parameters {
        found = with_values(&found, parameter)?;
    }
    for variant in &mut found {
        if variant.name.is_empty() {
            ONLY.clone_into(&mut variant.name);
        }
    }
    let mut folders = BTreeSet::new();
    match found.iter().find(|variant| !folders.insert(variant.folder().to_lowercase())) {
        Some(variant) => Err(PlanError::Twice(variant.name.clone())),
        None => Ok(found),
    }
}

/// `NAME=COMMAND`, cut into words as a shell does it, without its substitutions.
fn named(text: &str) -> Result<Variant, PlanError> {
    let (name, command) = text.split_once('=').ok_or_else(|| PlanError::Shape(text.to_owned()))?;
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-+.,@".contains(c);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with('.') || !name.chars().all(is_kept) {
        return Err(PlanError::Name(name.to_owned()));
    }
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| PlanError::Words(name.to_owned()))?;
    Ok(Variant { name: name.to_owned(), command: words.into_iter().map(Into::into).collect(), values: Vec::new() })
}

fn with_values(variants: &[Variant], parameter: &Parameter) -> Result<Vec<Variant>, PlanError> {
    if variants.len().saturating_mul(parameter.values.len()) > MAX_VARIANTS {
        return Err(PlanError::Many);
    }
    let place = format!("{{{}}}", parameter.name);
    let has_place = |word: &OsString| contains(word, &place);
    if !variants.iter().all(|variant| variant.command.iter().any(has_place)) {
        return Err(PlanError::Unused(parameter.name.clone()));
    }
    let with = |variant: &Variant, value: &String| {
        let own = format!("{}={value}", parameter.name);
        let name = if variant.name.is_empty() { own } else { format!("{},{own}", variant.name) };
        let command = variant.command.iter().map(|word| replaced(word, &place, value)).collect();
        let mut values = variant.values.clone();
        values.push((parameter.name.clone(), value.clone()));
        Variant { name, command, values }
    };
    Ok(variants.iter().flat_map(|variant| parameter.values.iter().map(move |value| with(variant, value))).collect())
}

fn contains(word: &OsStr, place: &str) -> bool {
    word.as_bytes().windows(place.len()).any(|part| part == place.as_bytes())
}

/// Words need not be UTF-8, so this is about bytes.
fn replaced(word: &OsStr, place: &str, value: &str) -> OsString {
    let (mut rest, mut made) = (word.as_bytes(), Vec::new());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(place.as_bytes()) {
            made.extend_from_slice(value.as_bytes());
            rest = after;
        } else if let Some((byte, after)) = rest.split_first() {
            made.push(*byte);
            rest = after;
        }
    }
    OsString::from_vec(made)
}

impl Variant {
    /// Name of the folder that holds its data set.
    pub fn folder(&self) -> String {
        let kept = |c: char| if c.is_ascii_alphanumeric() || "_-+.,=@".contains(c) { c } else { '_' };
        let name: String = self.name.chars().map(kept).take(MAX_NAME_BYTES).collect();
        if name.starts_with('.') { format!("_{name}") } else { name }
    }

    /// A text with the values of its parameters, where their names stand in braces.
    pub fn filled(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// For people and for comparing: no command that differs looks the same, but for bytes that are not text.
    pub fn shown(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// A run of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// From 0.
    pub round: u32,
    /// Which variant, from 0.
    pub variant: usize,
}

/// All runs, in their order.
pub fn order(variants: usize, rounds: u32, seed: u64) -> impl Iterator<Item = Place> {
    (0..rounds).flat_map(move |round| {
        let mut places: Vec<usize> = (0..variants).collect();
        // Rounds differ, and stay as they are if there are more of them.
        fastrand::Rng::with_seed(seed.wrapping_add(u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .shuffle(&mut places);
        places.into_iter().map(move |variant| Place { round, variant })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(Into::into).collect()
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn shown(variants: &[Variant]) -> Vec<String> {
        variants.iter().map(|variant| format!("{}: {}", variant.folder(), variant.shown().join("|"))).collect()
    }

    #[test]
    fn variants_are_commands_and_values_of_parameters() {
        let found = variants(&words("java{jdk} -n {n}x{n}"), &[], &texts(&["jdk=17,21", "n=1,2"])).unwrap();
        let expected = [
            "jdk=17,n=1: java17|-n|1x1",
            "jdk=17,n=2: java17|-n|2x2",
            "jdk=21,n=1: java21|-n|1x1",
            "jdk=21,n=2: java21|-n|2x2",
        ];
        assert_eq!(shown(&found), expected);
        assert_eq!(found[1].values, [("jdk".into(), "17".into()), ("n".into(), "2".into())]);
        let named = texts(&["base=java -jar 'my shop.jar'", "new=java -Xmx1g -jar shop.jar"]);
        let found = variants(&[], &named, &[]).unwrap();
        assert_eq!(shown(&found), ["base: java|-jar|my shop.jar", "new: java|-Xmx1g|-jar|shop.jar"]);
        assert_eq!(shown(&variants(&words("true"), &[], &[]).unwrap()), ["base: true"]);
        let paths = variants(&words("ls {d}"), &[], &texts(&["d=/usr/lib,../x"])).unwrap();
        assert_eq!(shown(&paths), ["d=_usr_lib: ls|/usr/lib", "d=.._x: ls|../x"], "folders stay where they belong");
    }

    #[test]
    fn what_is_no_experiment_is_told() {
        let check = |command: &str, named: &[&str], parameters: &[&str], expected: &str| {
            let error = variants(&words(command), &texts(named), &texts(parameters)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("", &[], &[], "there is no command");
        check("true", &["a=true"], &[], "leave one of them out");
        check("true", &[], &["n=1,2"], "{n} stands nowhere");
        check("", &["a"], &[], "'a' is not NAME='COMMAND'");
        check("", &["a="], &[], "--variant a: the command");
        check("", &["a=echo 'x"], &[], "open quote");
        check("", &["../a=true"], &[], "cannot name a variant");
        check("", &["a=true", "A=true"], &[], "A is there twice");
        check("ls {d}", &[], &["d=a/b,a b"], "is there twice, or looks like");
        check("x {a} {b}", &[], &["a=1..100", "b=1..100"], "at most 1000");
    }

    #[test]
    fn each_round_has_every_variant_once_and_rounds_stay_as_they_are_when_there_are_more() {
        let few: Vec<Place> = order(5, 3, 42).collect();
        let many: Vec<Place> = order(5, 20, 42).collect();
        assert_eq!(few, many[..15]);
        for round in many.chunks(5) {
            let mut seen: Vec<usize> = round.iter().map(|place| place.variant).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        }
        let orders: BTreeSet<Vec<usize>> =
            many.chunks(5).map(|round| round.iter().map(|place| place.variant).collect()).collect();
        assert!(orders.len() > 10, "{orders:?}");
        assert_ne!(many, order(5, 20, 43).collect::<Vec<_>>());
    }
}
