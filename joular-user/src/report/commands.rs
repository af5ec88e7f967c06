//! `audit` and `reattribute` as the command line has them.

use std::{io, io::Write, path::Path};

use super::{
    audit,
    compact::{self, Compacted},
    error::{DataSetError, Result},
    reattribute,
};
use crate::{energy::policy::Policy, events::RunInfo, output::OutputDirectory};

/// Audits a data set and says what it found; whether all was well, and whether
/// that could be said.
///
/// # Errors
/// If the data set cannot be read.
pub fn audit(data: &Path, json: bool, out: &mut impl Write) -> Result<(bool, io::Result<()>)> {
    let audits = audit::run(data)?;
    let said = if json {
        serde_json::to_writer_pretty(&mut *out, &audits).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        out.write_all(audit::text(&audits).as_bytes())
    };
    Ok((audits.iter().all(|audit| audit.differences == 0), said))
}

/// Attributes a data set again, into a new directory that belongs to `owner`.
///
/// # Errors
/// If a file cannot be read or written, or `policy_of` fails.
pub fn reattribute<E: From<DataSetError>>(
    data: &Path,
    output: &Path,
    owner: Option<(u32, u32)>,
    policy_of: impl Fn(&RunInfo) -> Result<Policy, E>,
) -> Result<reattribute::Rewritten, E> {
    let directory = OutputDirectory::create(output, owner).map_err(DataSetError::from)?;
    reattribute::run(data, &directory, policy_of)
}

/// Merges a data set's small files, in place or into a new directory that belongs to `owner`.
///
/// # Errors
/// If a run is writing there, or a file cannot be read or written.
pub fn compact(data: &Path, output: Option<&Path>, owner: Option<(u32, u32)>) -> Result<Compacted> {
    match output {
        Some(output) => compact::beside(data, output, owner),
        None => compact::in_place(data),
    }
}
