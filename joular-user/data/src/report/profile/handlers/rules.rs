//! Reads rules that say where frameworks call handlers.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use serde::Deserialize;
use thiserror::Error;

use super::Step;
use crate::report::profile::{filter::FilterError, names::Names};

/// What comes with the program.
const BUILT_IN: &str = include_str!("rules.toml");

/// Why a file of rules cannot be used.
#[derive(Debug, Error)]
pub enum RulesError {
    #[error("reading rules of handlers from {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("rules of handlers in {}: {cause}", path.display())]
    Parse { path: PathBuf, cause: Box<toml::de::Error> },
    #[error("rules of handlers in {}: framework {framework}: {cause}", path.display())]
    Pattern { path: PathBuf, framework: String, cause: FilterError },
    #[error("rules of handlers in {}: framework {framework} has no dispatchers: name a method that calls its handlers", path.display())]
    NoDispatcher { path: PathBuf, framework: String },
}

/// Where frameworks call handlers. Of rules that find one on a path, the first counts.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Methods that are never handlers, before what a rule says of them.
    skipped: Vec<Names>,
    /// Methods of what programs run on, which are not handlers either, after what a rule says of them. Interceptors call them,
    /// too.
    platform: Vec<Names>,
}

/// How a framework calls handlers.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) framework: String,
    /// Its methods that call handlers, directly or through methods of `skipped`.
    pub(super) dispatchers: Names,
    /// Whether a dispatcher nearer the leaf counts before one nearer the root.
    pub(super) is_innermost: bool,
    /// Methods between a dispatcher and a handler.
    skipped: Option<Names>,
    /// Methods that filters and interceptors call to have the next one or the handler called.
    proceeding: Option<Names>,
    /// Methods that show that there is no handler if one of them comes first.
    excepted: Option<Names>,
}

impl Rule {
    /// Whether it says what interceptors call to go on.
    pub(super) const fn has_interceptors(&self) -> bool {
        self.proceeding.is_some()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    skip: Vec<String>,
    #[serde(default)]
    platform: Vec<String>,
    #[serde(default)]
    rule: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    framework: String,
    dispatchers: Vec<String>,
    #[serde(default)]
    innermost: bool,
    #[serde(default)]
    skip: Vec<String>,
    #[serde(default)]
    proceed: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
}

impl Rules {
    /// Those that come with the program.
    pub fn built_in() -> Arc<Self> {
        // A test reads them, too.
        static RULES: LazyLock<Arc<Rules>> =
            LazyLock::new(|| Arc::new(Rules::parse(BUILT_IN, Path::new("rules.toml")).unwrap_or_default()));
        RULES.clone()
    }

    /// Those of a file, before those that come with the program.
    ///
    /// # Errors
    /// If the file cannot be read, or is not understood.
    pub fn read(path: &Path) -> Result<Arc<Self>, RulesError> {
        let failed = |cause| RulesError::Read { path: path.to_owned(), cause };
        let mut rules = Self::parse(&std::fs::read_to_string(path).map_err(failed)?, path)?;
        let built_in = Self::built_in();
        rules.rules.extend(built_in.rules.iter().cloned());
        rules.skipped.extend(built_in.skipped.iter().cloned());
        rules.platform.extend(built_in.platform.iter().cloned());
        Ok(Arc::new(rules))
    }

    /// What a Java method behind a rule's dispatcher is.
    pub(super) fn step(&self, rule: &Rule, method: &str) -> Step {
        let is_of = |names: Option<&Names>| names.is_some_and(|names| names.allow(method));
        let is_of_any = |all: &[Names]| all.iter().any(|names| names.allow(method));
        if is_of(rule.proceeding.as_ref()) {
            Step::Proceeds
        } else if is_of_any(&self.skipped) {
            Step::Skipped
        } else if is_of(rule.excepted.as_ref()) {
            Step::None
        } else if is_of(rule.skipped.as_ref()) {
            Step::Skipped
        } else if is_of_any(&self.platform) {
            Step::Platform
        } else {
            Step::Handler
        }
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, RulesError> {
        let path = || path.to_owned();
        let file: File =
            toml::from_str(text).map_err(|cause| RulesError::Parse { path: path(), cause: Box::new(cause) })?;
        let names = |framework: &str, patterns: &[String]| {
            let framework = framework.to_owned();
            Names::parse(patterns).map_err(|cause| RulesError::Pattern { path: path(), framework, cause })
        };
        // No pattern is no method here, and not every method.
        let some = |framework: &str, patterns: &[String]| {
            (!patterns.is_empty()).then(|| names(framework, patterns)).transpose()
        };
        let rule = |Row { framework, dispatchers, innermost, skip, proceed, except }: Row| {
            if dispatchers.is_empty() {
                return Err(RulesError::NoDispatcher { path: path(), framework });
            }
            Ok(Rule {
                dispatchers: names(&framework, &dispatchers)?,
                is_innermost: innermost,
                skipped: some(&framework, &skip)?,
                proceeding: some(&framework, &proceed)?,
                excepted: some(&framework, &except)?,
                framework,
            })
        };
        let of_all = |patterns: &[String]| some("of all", patterns).map(|names| names.into_iter().collect());
        let (skipped, platform) = (of_all(&file.skip)?, of_all(&file.platform)?);
        Ok(Self { rules: file.rule.into_iter().map(rule).collect::<Result<_, _>>()?, skipped, platform })
    }
}
