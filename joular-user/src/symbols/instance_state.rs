//! Holds what is known of each run-time system in a process: that it starts, is being read, is understood, or
//! cannot be.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::{
    events::{JvmNews, Runtime},
    model::target_text::TargetText,
};

use super::{
    builds::Library,
    open_instance::{Facts, OpenInstance},
    questions::NoFile,
};
use crate::{
    procs::deadline::Pending,
    runtimes::{Alternatives, Build, Instance, OpenError, RuntimeSystem},
};

/// Those that have been read for longer do not count as being opened: they wait for something.
const LONG_OPENING: Duration = Duration::from_secs(1);

/// The place in a process for one of several alternative run-time systems.
#[derive(Debug, Default)]
pub struct Slot {
    /// The one that the process runs, as far as is known.
    pub system: Option<&'static dyn RuntimeSystem>,
    pub instance: InstanceState,
}

impl Slot {
    /// For a process that was found to have a runtime when it was first seen.
    pub fn of(alternatives: Alternatives, runtime: &Runtime) -> Self {
        let system = alternatives.iter().copied().find(|system| system.is_runtime(runtime));
        Self { system, instance: InstanceState::default() }
    }

    /// What is known of a JVM since it was opened, or could not be.
    pub fn jvm_news(&self) -> Option<JvmNews> {
        match &self.instance {
            InstanceState::Open(open) => open.facts.news.clone(),
            InstanceState::Failed(why) if self.system.is_some_and(RuntimeSystem::is_jvm) => {
                Some(JvmNews { unwinding: Some(why.as_str().into()), ..JvmNews::default() })
            }
            _ => None,
        }
    }
}

/// What is known of a process's run-time system.
#[derive(Debug, Default)]
pub enum InstanceState {
    /// No library of one was seen in it.
    #[default]
    Unknown,
    /// A library was seen, and cannot be read yet.
    Starting {
        since: Instant,
        next_try: Instant,
        pause: Duration,
    },
    /// It is being read.
    Opening {
        since: Instant,
        pause: Duration,
        work: Pending<Trial>,
    },
    Open(Box<OpenInstance>),
    /// Why nothing more will come.
    Failed(String),
}

impl InstanceState {
    pub fn open(&self) -> Option<&OpenInstance> {
        match self {
            Self::Open(open) => Some(open),
            _ => None,
        }
    }

    /// One that is understood, to ask it something.
    pub fn open_mut(&mut self) -> Option<&mut OpenInstance> {
        match self {
            Self::Open(open) => Some(open),
            _ => None,
        }
    }

    /// What an instance has said, if there is one.
    pub fn facts(&self) -> Option<&Facts> {
        self.open().map(|open| &open.facts)
    }

    /// Whether a perf map would be useless, now or at all.
    pub const fn needs_no_map(&self) -> bool {
        self.is_starting() || matches!(self, Self::Open(_))
    }

    pub const fn is_starting(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Opening { .. })
    }

    pub fn is_due(&self, now: Instant) -> bool {
        match self {
            Self::Unknown => true,
            Self::Starting { next_try, .. } => now >= *next_try,
            Self::Opening { .. } | Self::Open(_) | Self::Failed(_) => false,
        }
    }

    /// Whether it is being read, and for so short a time that it counts.
    pub fn is_opening(&self) -> bool {
        matches!(self, Self::Opening { work, .. } if work.age() < LONG_OPENING)
    }

    /// Since when it has been starting, and the pause before the last try.
    pub const fn trials(&self) -> Option<(Instant, Duration)> {
        match *self {
            Self::Starting { since, pause, .. } | Self::Opening { since, pause, .. } => Some((since, pause)),
            _ => None,
        }
    }
}

/// An attempt to open one.
#[derive(Debug)]
pub struct Trial {
    pub result: Result<Opened, InstanceError>,
    pub took: Duration,
}

/// What opening one has led to.
#[derive(Debug)]
pub struct Opened {
    pub instance: Box<dyn Instance>,
    pub build: Arc<dyn Build>,
    pub library: Library,
}

#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error("opening {0}: {1}")]
    NoFile(TargetText, NoFile),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("reading the run-time system was not finished")]
    Unfinished,
}
