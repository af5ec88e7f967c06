//! Says why there is no answer.

use hyper::StatusCode;
use joular_data::{
    dataset::DataSetError,
    report::{diff::DiffError, export::ExportError, footprint::FootprintError, html::PageError},
    text::escape,
};

use crate::config::ConfigError;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// As HTTP has it.
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn bad(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "bad_request", message }
    }

    /// There is nothing of what is asked for.
    pub const fn missing(code: &'static str, message: String) -> Self {
        Self { status: StatusCode::NOT_FOUND, code, message }
    }

    /// Of what should not happen.
    pub const fn broken(message: String) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, code: "internal", message }
    }

    pub const fn later(code: &'static str, message: String) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, code, message }
    }
}

/// Flags are called as parameters are.
impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        let text = match error {
            ConfigError::Invalid { place, cause } => format!("{}: {cause}", place.trim_start_matches('-')),
            error => error.to_string().replace("--", ""),
        };
        Self::bad(escape(&text))
    }
}

impl From<DataSetError> for Refusal {
    fn from(error: DataSetError) -> Self {
        let message = escape(&error.to_string());
        match error {
            DataSetError::Stopped => Self::later("too_long", message),
            DataSetError::NoRun { .. } | DataSetError::NoRunRow { .. } => Self::later("no_run_yet", message),
            DataSetError::NothingSelected { .. }
            | DataSetError::NothingMeasured { .. }
            | DataSetError::NoEnergy { .. }
            | DataSetError::NoPhase { .. } => Self::missing("nothing_selected", message),
            // Without the place: whoever may see a part of it may not know where it is.
            DataSetError::NoTier { tier, problem, .. } => Self::missing("no_tier", format!("tier: {tier}: {problem}")),
            _ => Self { status: StatusCode::INTERNAL_SERVER_ERROR, code: "data_set", message },
        }
    }
}

impl From<FootprintError> for Refusal {
    fn from(error: FootprintError) -> Self {
        match error {
            FootprintError::Data(error) => error.into(),
            error => Self::broken(escape(&error.to_string())),
        }
    }
}

impl From<PageError> for Refusal {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Figures(error) => error.into(),
            error @ PageError::Flight(_) => Self::broken(escape(&error.to_string())),
        }
    }
}

impl From<DiffError> for Refusal {
    fn from(error: DiffError) -> Self {
        match error {
            DiffError::Data(error) => error.into(),
            DiffError::Nothing { .. } => Self::missing("nothing_selected", error.to_string()),
            error => Self::broken(escape(&error.to_string())),
        }
    }
}

impl From<ExportError> for Refusal {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Data(error) => error.into(),
            error => Self::broken(escape(&error.to_string())),
        }
    }
}
