//! Makes the content of JoularJX's files: names, figures, and names of files.

use std::collections::HashMap;

use twox_hash::XxHash64;

use super::ledger::Kind;
use crate::report::profile::{OUTSIDE_APP, PathIndex, Paths};

/// Names of rows by number, so that windows do not hold texts.
pub(super) struct Names {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
    of_paths: HashMap<PathIndex, Shown>,
    app: Option<Paths>,
}

/// Numbers of the names of a path's method and call tree.
#[derive(Clone, Copy)]
pub(super) struct MethodAndTree {
    method: u32,
    tree: u32,
}

impl MethodAndTree {
    pub(super) const fn of(self, kind: Kind) -> u32 {
        match kind {
            Kind::Methods => self.method,
            Kind::CallTrees => self.tree,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) all: MethodAndTree,
    pub(super) app: Option<MethodAndTree>,
}

impl Names {
    /// `app`: paths as the application sees them, by the same indices.
    pub(super) fn new(app: Option<Paths>) -> Self {
        Self { texts: Vec::new(), numbers: HashMap::new(), of_paths: HashMap::new(), app }
    }

    pub(super) const fn have_app(&self) -> bool {
        self.app.is_some()
    }

    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    pub(super) fn of(&mut self, paths: &Paths, path: PathIndex) -> Shown {
        if let Some(shown) = self.of_paths.get(&path) {
            return *shown;
        }
        let app = self.app.as_ref().map(|app| names(app, path)).filter(|names| *names != [OUTSIDE_APP]);
        let shown = Shown { all: self.numbers_of(&names(paths, path)), app: app.map(|names| self.numbers_of(&names)) };
        self.of_paths.insert(path, shown);
        shown
    }

    /// Of names root → leaf.
    fn numbers_of(&mut self, names: &[String]) -> MethodAndTree {
        let method = self.number(names.last().map_or("", String::as_str));
        MethodAndTree { method, tree: self.number(&names.join(";")) }
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Java methods on a path, root → leaf; all of it where there are none.
fn names(paths: &Paths, path: PathIndex) -> Vec<String> {
    let java: Vec<String> =
        paths.frames_of(path).filter(|frame| frame.kind.is_java()).map(|frame| cell(frame.method().raw())).collect();
    if java.is_empty() { paths.frames_of(path).map(|frame| cell(frame.method().raw())).collect() } else { java }
}

/// A name that does not end a cell, row or frame. JoularJX writes names as they are; those of Java
/// methods have no such characters.
fn cell(name: &str) -> String {
    name.replace(|c: char| matches!(c, ',' | ';' | '\u{2028}' | '\u{2029}') || c.is_control(), "_")
}

/// `%.4f` of joules: rounded half up, as Java's formatter does.
pub(super) fn joules(energy_uj: u64) -> String {
    four_decimals((u128::from(energy_uj) + 50) / 100)
}

/// `%.4f` of watts; 0 over no time.
pub(super) fn watts(energy_uj: u64, over_ns: u64) -> String {
    let over_ns = u128::from(over_ns);
    let doubled = (u128::from(energy_uj) * 20_000_000).checked_div(over_ns).unwrap_or(0);
    four_decimals(doubled.div_ceil(2))
}

fn four_decimals(ten_thousandths: u128) -> String {
    format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

/// Most bytes that a file's name may have on Linux.
const MOST_BYTES: usize = 255;

/// The file name of a method. JoularJX puts `_` for `<` and `>`; this also does so for what would
/// leave the folder or cannot be in a name. A name that is too long is cut, with a hash to tell it
/// from others that begin alike.
pub(super) fn file_name(before: &str, name: &str, after: &str) -> String {
    let safe = name.replace(|c: char| matches!(c, '<' | '>' | '/' | '\\') || c.is_control(), "_");
    if before.len() + safe.len() + after.len() <= MOST_BYTES {
        return format!("{before}{safe}{after}");
    }
    let hash = format!("~{:016x}", XxHash64::oneshot(0, name.as_bytes()));
    let mut room = MOST_BYTES.saturating_sub(before.len() + hash.len() + after.len());
    while !safe.is_char_boundary(room) {
        room -= 1;
    }
    format!("{before}{}{hash}{after}", &safe[..room])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_as_java_rounds_them() {
        for (energy_uj, expected) in
            [(0, "0.0000"), (49, "0.0000"), (50, "0.0001"), (149, "0.0001"), (150, "0.0002"), (12_345_678, "12.3457")]
        {
            assert_eq!(joules(energy_uj), expected);
        }
        assert_eq!(joules(u64::MAX), "18446744073709.5516");
        for (energy_uj, over_ns, expected) in [
            (50, 1_000_000_000, "0.0001"),
            (49, 1_000_000_000, "0.0000"),
            (1_000_000, 500_000_000, "2.0000"),
            (1_000_000, 3_000_000_000, "0.3333"),
            (2_000_000, 3_000_000_000, "0.6667"),
            (1, 0, "0.0000"),
        ] {
            assert_eq!(watts(energy_uj, over_ns), expected, "{energy_uj} over {over_ns}");
        }
    }

    #[test]
    fn names_break_no_cell_and_no_row() {
        assert_eq!(cell("a.B.<init>"), "a.B.<init>");
        assert_eq!(cell("std::map<int, long>\n;x"), "std::map<int_ long>__x");
    }

    #[test]
    fn a_file_stays_in_its_folder() {
        for (name, expected) in [
            ("a.B.<init>", "joularJX-1-a.B._init_-evolution.csv"),
            ("../../etc/passwd", "joularJX-1-.._.._etc_passwd-evolution.csv"),
            ("a\0b\nc", "joularJX-1-a_b_c-evolution.csv"),
        ] {
            assert_eq!(file_name("joularJX-1-", name, "-evolution.csv"), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_a_file_name(name: String, repeat in 1usize..200) {
            let name = file_name("joularJX-4294967295-", &name.repeat(repeat), "-evolution.csv");
            assert!(name.len() <= MOST_BYTES && !name.contains(['/', '\0', '\n']));
        }
    }

    #[test]
    fn long_names_that_begin_alike_are_different_files() {
        let of = |last: &str| file_name("p", &format!("{}{last}", "ä".repeat(4000)), "s");
        assert_ne!(of("1"), of("2"));
    }
}
