//! Defines marks: what a program says of itself while it is recorded, such as that a phase begins.

use serde::{Deserialize, Serialize};

use crate::model::{
    target_text::TargetText,
    units::{MonotonicNs, Pid},
};

/// Something that a program said. Windows end at the begins and ends of phases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When it was said. It may be before the window that the mark is in, if it took long to come here.
    pub at: MonotonicNs,
    pub kind: MarkKind,
    /// Of the phase, or of what happened. `None` in an end: of the phase that began last.
    pub name: Option<TargetText>,
    /// What was said beside, as it was said: `key=value key=value`.
    pub attributes: Option<TargetText>,
    /// Who said so, if it is known.
    pub pid: Option<Pid>,
    pub from: MarkFrom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkKind {
    /// A phase begins.
    Begin,
    /// A phase ends.
    End,
    /// Something happens that takes no time.
    Event,
}

impl MarkKind {
    pub const ALL: [Self; 3] = [Self::Begin, Self::End, Self::Event];

    /// As in data sets, and as programs say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Event => "event",
        }
    }

    /// Whether a window ends there.
    pub const fn is_edge(self) -> bool {
        matches!(self, Self::Begin | Self::End)
    }
}

/// How a mark came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkFrom {
    /// By a line of the command's output.
    Output,
    /// By the socket.
    Socket,
    /// By the named pipe.
    Pipe,
}

impl MarkFrom {
    pub const ALL: [Self; 3] = [Self::Output, Self::Socket, Self::Pipe];

    /// As in data sets.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Socket => "socket",
            Self::Pipe => "pipe",
        }
    }
}
