//! Tells the programs of which processes user space wants to hear: those that are targets or may become some. For a process
//! of which nobody wants to hear nothing is sent, whatever it does.

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, HashMap, MapData},
};
use joular_data::model::units::Pid;
use joular_ebpf::abi::{CommPattern, followed};

use super::{
    banks::{map_error, take},
    error::KernelError,
};

/// Processes that descend from the root of a tree, and live at once.
const MOST_OF_TREE: u32 = 1 << 16;

/// Of whom user space wants to hear, beside the targets.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Of every process.
    pub all: bool,
    /// Of processes whose name begins so.
    pub names: Vec<CommPattern>,
    /// Of a process and all that descend from it.
    pub root: Option<Pid>,
}

impl Told {
    pub(super) fn size(&self, loader: &mut EbpfLoader<'_>) {
        if self.root.is_some() {
            loader.map_max_entries("FOLLOWED", MOST_OF_TREE);
        }
    }

    /// Values of the globals.
    pub(super) fn globals(&self) -> [(&'static str, u32); 2] {
        [("TELL_ALL", u32::from(self.all)), ("NAME_COUNT", u32::try_from(self.names.len()).unwrap_or(0))]
    }

    /// Writes what is looked up.
    pub(super) fn write(&self, ebpf: &mut Ebpf) -> Result<(), KernelError> {
        let mut names: Array<MapData, CommPattern> = take(ebpf, "NAMES")?;
        for (at, pattern) in (0..).zip(&self.names) {
            names.set(at, pattern, 0).map_err(|source| map_error("writing", "NAMES", source))?;
        }
        let Some(root) = self.root else { return Ok(()) };
        let mut processes: HashMap<MapData, u32, u32> = take(ebpf, "FOLLOWED")?;
        processes.insert(root.0, followed::TREE, 0).map_err(|source| map_error("writing", "FOLLOWED", source))
    }
}
