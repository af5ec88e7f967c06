//! Tells what was cut at the bounds on what is kept of processes and their files.

use std::collections::HashSet;

use joular_data::model::units::Pid;

use super::Run;
use crate::{bounds::Bound, elf, procs, runtimes::hotspot, symbols, unwind};

/// All of them, in the order of the data path.
static ALL: &[&Bound] = &[
    &procs::maps::MAPPINGS,
    &procs::maps::NAMES,
    &procs::maps::LINES,
    &procs::proc_files::COMMAND_LINES,
    &procs::proc_files::THREADS,
    &procs::shared_roots::OPEN_ROOTS,
    &procs::service::NAMES,
    &procs::service::jar::BYTES,
    &procs::service::jar::FILES,
    &procs::kubernetes::LABELS,
    &procs::kubernetes::NAMES,
    &elf::SECTION_NAMES,
    &hotspot::method::NAMES,
    &hotspot::line_table::LINES,
    &hotspot::scopes::INLINED,
    &hotspot::pinned::METHODS,
    &hotspot::nmethod::PLACES,
    &hotspot::leaves::COMPARED,
    &hotspot::code_cache::HEAPS,
    &hotspot::code_cache::BLOCKS,
    &hotspot::unwind_info::CODELETS,
    &hotspot::stubs::STUBS,
    &hotspot::stub_code::BYTES,
    &hotspot::thread_names::NAMES,
    &hotspot::threads::THREADS,
    &hotspot::flags::FLAGS,
    &hotspot::perf_data::ENTRIES,
    &symbols::process::FILES,
    &symbols::questions::FILES,
    &symbols::native::NAMES,
    &symbols::native::NOTICES,
    &symbols::demangle::NAMES,
    &symbols::perf_map::snapshot::ENTRIES,
    &symbols::perf_map::snapshot::NAMES,
    &symbols::kernel::SYMBOLS,
    &unwind::publisher::MAPPINGS,
    &unwind::publisher::COMPILERS,
    &unwind::eh_frame::SECTIONS,
    &unwind::eh_frame::ROWS,
    &unwind::gaps::CODE,
    &unwind::code_rows::flow::STEPS,
    &unwind::native_image::CODE,
    &unwind::native_image::NOT_READ,
];

/// Processes named for one bound in a run.
const MAX_NAMED: usize = 16;

/// What was told of them.
#[derive(Debug)]
pub(super) struct Cuts {
    /// How much had been cut when it was last looked at.
    before: Vec<u64>,
    told: HashSet<(usize, Option<Pid>)>,
}

impl Cuts {
    /// What an earlier run has cut does not count.
    pub(super) fn new() -> Self {
        Self { before: ALL.iter().map(|bound| bound.count()).collect(), told: HashSet::new() }
    }

    /// What was cut since the last call, and what to say of it.
    fn news(&mut self) -> Vec<(&'static Bound, u64, Option<String>)> {
        let mut news = Vec::new();
        for (position, bound) in ALL.iter().enumerate() {
            let Some(before) = self.before.get_mut(position) else { continue };
            let now = bound.count();
            let cut = now.saturating_sub(std::mem::replace(before, now));
            if cut > 0 {
                news.push((*bound, cut, self.notice(position, bound)));
            }
        }
        news
    }

    fn notice(&mut self, position: usize, bound: &Bound) -> Option<String> {
        let process = bound.take_process();
        let named = self.told.iter().filter(|(of, _)| *of == position).count();
        let is_news = named < MAX_NAMED && self.told.insert((position, process));
        is_news.then(|| {
            let who = process.map(|pid| format!("process {pid}: ")).unwrap_or_default();
            format!("{who}more than {} {}: {}", bound.limit, bound.of, bound.beyond.replace('`', ""))
        })
    }
}

impl Run<'_> {
    /// Counts what was cut in this window.
    pub(super) fn count_cuts(&mut self) {
        for (bound, cut, notice) in self.cuts.news() {
            self.lost(bound.cause, cut);
            if let Some(notice) = notice {
                (self.live.notify)(&notice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::procs::maps;

    const BEGIN: &str = "<!-- generated from the code: UPDATE_DOCS=1 cargo test -p joular-user bounds -->\n";
    const END: &str = "<!-- end of the generated part -->\n";

    fn table() -> String {
        let mut text = "\n| at most | of | beyond that | cause |\n|--:|---|---|---|\n".to_owned();
        for Bound { cause, limit, of, beyond, .. } in ALL {
            text.push_str(&format!("| {limit} | {of} | {beyond} | `{cause}` |\n"));
        }
        text + "\n"
    }

    #[test]
    fn the_documentation_lists_exactly_the_bounds_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bounds.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("docs/bounds.md has the begin marker");
        let (generated, after) = rest.split_once(END).expect("docs/bounds.md has the end marker");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            return std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        }
        assert_eq!(generated, table(), "docs/bounds.md is out of date: run the command that it names");
    }

    #[test]
    fn causes_are_different_and_can_be_labels() {
        let causes: BTreeSet<&str> = ALL.iter().map(|bound| bound.cause).collect();
        assert_eq!(causes.len(), ALL.len());
        assert!(causes.iter().all(|cause| cause.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn what_is_cut_is_counted_once_and_told_of_each_process() {
        let mut cuts = Cuts::new();
        let of_names = |cuts: &mut Cuts| {
            let news = cuts.news().into_iter().find(|(bound, ..)| bound.cause == maps::NAMES.cause);
            news.map(|(_, cut, notice)| (cut, notice))
        };
        of_names(&mut cuts);
        maps::NAMES.cut_of(Pid(7), 3);
        let (cut, notice) = of_names(&mut cuts).unwrap();
        assert!(cut >= 3);
        assert!(notice.unwrap().starts_with("process 7: more than 8388608 bytes of names"));
        assert_eq!(of_names(&mut cuts), None);
        maps::NAMES.cut_of(Pid(7), 1);
        assert_eq!(of_names(&mut cuts).unwrap().1, None, "told before");
    }
}
