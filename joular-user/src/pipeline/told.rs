//! Decides of which processes the kernel's programs tell.

use crate::{kernel::Told, procs::selection::Selection};

/// All that targets may come from. Where names do not decide, that is every process.
pub fn by(selection: &Selection) -> Told {
    let names = selection.names_in_kernel();
    Told { all: names.is_none(), names: names.unwrap_or_default(), root: selection.root() }
}
