//! Asks a process what another may have to wait for: its mappings, its root, its files.
//!
//! Each question has a deadline ([`deadline`]). While an answer is late, nothing else of its kind is asked
//! of that process: it takes one thread at most, and no more time.

use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use joular_data::model::units::Pid;
use thiserror::Error;

use super::files::NewFile;
use crate::{
    bounds::Bound,
    procs::{
        attach::{Target, protocol::perf_map_name},
        deadline::{self, Pending, Progress},
        maps::{Mapping, MappingKind, Maps},
        namespaces::{self, Expect, Links, TargetFileError, TargetRoot, open_mapped},
        quota::Owner,
        shared_roots,
    },
};

/// Executables and libraries up to this size are read (their tables only).
const MAX_ELF_BYTES: u64 = 4 << 30;
pub static FILES: Bound = Bound::new(
    "file_too_large",
    MAX_ELF_BYTES,
    "bytes of a file with code",
    "code of a larger file has the file's name only, and is walked by frame pointers",
);
/// Files that are never opened: that could do harm and gives no symbols.
const NO_FILES: [&str; 2] = ["/dev/", "/proc/"];

/// A file as the mappings have it: device and inode.
pub type FileIdentity = ((u32, u32), u64);

/// Why the file behind a mapping is not open.
#[derive(Clone, Debug, Error)]
pub enum NoFile {
    #[error("its file system does not answer in time")]
    Late,
    #[error("too many files of this process are open")]
    TooMany,
    #[error("it has changed since it was opened")]
    Changed,
    /// By its name and by the mapping.
    #[error("{0}")]
    Refused(Arc<str>),
}

/// What changes about a process while it runs.
#[derive(Debug)]
pub struct Survey {
    pub maps: io::Result<Maps>,
    /// How long reading them took.
    pub cost: Duration,
    pub root: Option<Arc<TargetRoot>>,
    /// Whether it has a perf map.
    pub has_map_file: bool,
}

impl Survey {
    fn of(target: &Target, root: Option<Arc<TargetRoot>>) -> Self {
        let root = root.or_else(|| shared_roots::open(&target.proc_root, target.pid));
        let has_map_file = root.as_ref().is_some_and(|root| root.tmp_has(&perf_map_name(target.namespace_pid)));
        let begun = Instant::now();
        let maps = Maps::read(&target.proc_root, target.pid);
        Self { maps, cost: begun.elapsed(), root, has_map_file }
    }
}

/// The questions to one process that have no answer yet.
#[derive(Debug)]
pub struct Questions {
    owner: Owner,
    survey: Option<Pending<Survey>>,
    file: Option<(FileIdentity, Pending<OpenedFile>)>,
}

/// A file, or why there is none.
type OpenedFile = Result<NewFile, NoFile>;

impl Questions {
    /// To a process of this owner.
    pub const fn to(owner: Owner) -> Self {
        Self { owner, survey: None, file: None }
    }

    /// Who the process belongs to.
    pub const fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Looks at the process again; `None` if that is late.
    pub fn survey(&mut self, target: &Target, root: Option<&Arc<TargetRoot>>) -> Option<Survey> {
        let mut late = match self.survey.take() {
            Some(late) => late,
            None => {
                let (target, root) = (target.clone(), root.cloned());
                match deadline::within_deadline(Some(&self.owner), move || Survey::of(&target, root)) {
                    Ok(survey) => return Some(survey),
                    Err(late) => late,
                }
            }
        };
        match late.take() {
            Progress::Done(survey) => Some(survey),
            Progress::UnderWay => {
                self.survey = Some(late);
                None
            }
            Progress::Failed => None,
        }
    }

    /// Opens the file behind a mapping; `None` if that, or another, is late.
    pub fn open_file(
        &mut self,
        target: &Target,
        root: Option<&Arc<TargetRoot>>,
        mapping: &Mapping,
    ) -> Option<OpenedFile> {
        let identity = (mapping.device, mapping.inode);
        let (of, mut late) = match self.file.take() {
            Some(late) => late,
            None => {
                let (root, proc_root, pid) = (root.cloned(), target.proc_root.clone(), target.pid);
                let (mapping, owner) = (mapping.clone(), self.owner.clone());
                let open = move || {
                    let file = open_mapped_file(root.as_deref(), &proc_root, pid, &mapping)?;
                    let file = NewFile::of(file).map_err(|error| NoFile::Refused(error.to_string().into()))?;
                    Ok(file.used_by(owner))
                };
                match deadline::within_deadline(Some(&self.owner), open) {
                    Ok(file) => return Some(file),
                    Err(late) => (identity, late),
                }
            }
        };
        match late.take() {
            Progress::Done(file) if of == identity => Some(file),
            Progress::UnderWay => {
                self.file = Some((of, late));
                None
            }
            Progress::Done(_) | Progress::Failed => None,
        }
    }
}

/// Opens a mapped file by its name if that still means the same file, else by the mapping.
fn open_mapped_file(root: Option<&TargetRoot>, proc_root: &Path, pid: Pid, mapping: &Mapping) -> Result<File, NoFile> {
    let refused = |why: String| NoFile::Refused(why.into());
    let path = mapping.path.as_deref().ok_or_else(|| refused("it has no name".to_owned()))?;
    if NO_FILES.iter().any(|prefix| path.starts_with(prefix)) {
        return Err(refused("such files are never opened".to_owned()));
    }
    let expect = Expect { links: Links::WithinRoot, owner: namespaces::Owner::Anyone, max_bytes: MAX_ELF_BYTES };
    let by_name = match (mapping.kind, root) {
        (MappingKind::File, Some(root)) => root.open_file(path, &expect).map_err(|error| error.to_string()),
        (MappingKind::File, None) => Err("the root of the process is not open".to_owned()),
        _ => Err("it was deleted".to_owned()),
    };
    let is_same = |file: &File| file.metadata().is_ok_and(|data| data.ino() == mapping.inode);
    let (by_name, why) = match by_name {
        Ok(file) if is_same(&file) => return Ok(file),
        Ok(another) => (Some(another), "its name means another file".to_owned()),
        Err(why) => (None, why),
    };
    open_mapped(proc_root, pid, mapping, MAX_ELF_BYTES).or_else(|error| {
        FILES.cut_of(pid, u64::from(matches!(error, TargetFileError::TooLarge { .. })));
        // On some file systems the two inode numbers differ by nature: then the name is all there is once the process
        // has ended.
        by_name.ok_or_else(|| refused(format!("{why}; {error}")))
    })
}
