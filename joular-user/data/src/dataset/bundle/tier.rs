//! Says of a place that it is a tier of another one ([`crate::fleet`]): its hosts are services, and a bundle may have
//! windows of a whole day. `tier.json` says so.

use std::{path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    dataset::{
        error::{DataSetError, Result},
        store::{Store, StoredFile},
    },
    output::OutputError,
    text::escape,
};

const NAME: &str = "tier.json";
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 4096;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct TierMark {
    format: u32,
    /// Hours, from that of its start on, in which the windows of a bundle begin.
    pub(crate) hours: u32,
}

impl TierMark {
    pub(crate) const fn of_hours(hours: u32) -> Self {
        Self { format: FORMAT, hours }
    }

    /// That of a place; `None` if it is not a tier.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of this form.
    pub(crate) fn read(place: &Arc<dyn Store>) -> Result<Option<Self>> {
        let file = StoredFile::new(place, NAME);
        let bytes = match file.read_whole(MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_gone() => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = |problem| DataSetError::Damaged { path: file.path(), problem };
        let mark: Self = serde_json::from_slice(&bytes)
            .map_err(|error| damaged(format!("it does not say what tier it is: {}", escape(&error.to_string()))))?;
        if mark.format != FORMAT {
            let problem = format!("it has format {}, this joular-bpf reads {FORMAT}: use a newer one", mark.format);
            return Err(damaged(problem));
        }
        Ok(Some(mark))
    }

    /// Whether the folder of a place is a tier.
    ///
    /// # Errors
    /// If that cannot be told.
    pub(crate) fn is_in(place: &Arc<dyn Store>, folder: &str) -> Result<bool> {
        Ok(place.find(Path::new(folder), NAME)?.is_some())
    }

    /// Says so, unless that is said already.
    ///
    /// # Errors
    /// If the place cannot be written.
    pub(crate) fn publish(&self, place: &Arc<dyn Store>) -> Result<()> {
        let path = place.path().join(NAME);
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        let text = serde_json::to_vec(self).map_err(failed)?;
        place.publish_new(Path::new(""), NAME, &text)?;
        Ok(())
    }
}
