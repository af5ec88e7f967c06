//! Finds out which board this machine is, and which model is for it.
//!
//! Linux shows the board's name in `/proc/device-tree/model`, which ends with a NUL: the name and
//! often its revision, such as `Raspberry Pi 4 Model B Rev 1.2` (Devicetree Specification 0.4,
//! section 2.3.2).

use std::{
    cmp::Reverse,
    fmt, io,
    path::{Path, PathBuf},
};

use super::file::BoardModel;
use crate::energy::sysfs::read_value;

/// What stands between a board's name and its revision.
pub const BEFORE_REVISION: &str = " Rev ";

/// Longer names are cut in messages.
const MOST_SHOWN: usize = 80;

/// A board as it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardName {
    pub name: String,
    pub revision: Option<String>,
}

impl BoardName {
    /// Of the text that the device tree has; `None` if it is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('\0').next().unwrap_or_default().trim();
        let (name, revision) = match text.rsplit_once(BEFORE_REVISION) {
            Some((name, revision)) => (name.trim(), Some(revision.trim().to_owned())),
            None => (text, None),
        };
        (!name.is_empty()).then(|| Self { name: name.to_owned(), revision: revision.filter(|text| !text.is_empty()) })
    }
}

/// As the device tree has it, for people: nothing in it may move the cursor.
impl fmt::Display for BoardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.revision.iter().flat_map(|revision| [BEFORE_REVISION, revision.as_str()]);
        let text: String = std::iter::once(self.name.as_str()).chain(revision).collect();
        text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).try_for_each(|letter| write!(f, "{letter}"))
    }
}

/// Where the board's name is; `proc_root` is usually `/proc`.
pub fn path(proc_root: &Path) -> PathBuf {
    proc_root.join("device-tree/model")
}

/// The name of this board.
///
/// # Errors
/// As the system says, or `InvalidData` if there is no name in the file.
pub fn board_name(proc_root: &Path) -> io::Result<BoardName> {
    let text = read_value(&path(proc_root))?;
    BoardName::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is empty"))
}

/// The model for a board: that of its revision, else of another revision of the same board. Among
/// these one for systems of so many `bits` is best, then the preferred one, then the first.
pub fn find<'a>(models: &'a [BoardModel], board: &BoardName, bits: u32) -> Option<&'a BoardModel> {
    let of_board = models.iter().filter(|model| model.names.contains(&board.name));
    of_board.min_by_key(|model| {
        let is_of_revision = board.revision.is_some() && model.revision == board.revision;
        let system = match model.bits {
            Some(of_model) if of_model == bits => 2,
            None => 1,
            Some(_) => 0,
        };
        Reverse((is_of_revision, system, model.preferred))
    })
}
