//! Lists the eBPF objects of a process, and says which of them still exist.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result};
use aya::{
    maps::loaded_maps,
    programs::{loaded_links, loaded_programs},
};

/// What it is, and its id. The kernel does not use an id again before it has used all others.
pub type Object = (&'static str, u32);

/// Fields of `/proc/PID/fdinfo` that name an object's id.
const FIELDS: [(&str, &str); 3] = [("prog_id:", "program"), ("map_id:", "map"), ("link_id:", "link")];

/// Those that a process holds, with the maps of its programs, which need no descriptor.
pub fn of(pid: u32) -> Result<BTreeSet<Object>> {
    let dir = format!("/proc/{pid}/fdinfo");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("listing {dir}"))? {
        // A descriptor may be closed between listing and reading.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        for (field, kind) in FIELDS {
            let id = text.lines().find_map(|line| line.strip_prefix(field)?.trim().parse().ok());
            found.extend(id.map(|id| (kind, id)));
        }
    }
    let held = |id| found.contains(&("program", id));
    let programs = loaded_programs().flatten().filter(|program| held(program.id()));
    let maps: Vec<u32> = programs.filter_map(|program| program.map_ids().ok()?).flatten().collect();
    found.extend(maps.into_iter().map(|id| ("map", id)));
    Ok(found)
}

/// All on this machine. What ends while it is listed may be missing.
pub fn all() -> BTreeSet<Object> {
    let programs = loaded_programs().flatten().map(|program| ("program", program.id()));
    let maps = loaded_maps().flatten().map(|map| ("map", map.id()));
    let links = loaded_links().flatten().map(|link| ("link", link.id()));
    programs.chain(maps).chain(links).collect()
}
