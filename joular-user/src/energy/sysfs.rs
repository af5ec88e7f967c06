//! Reads small files from sysfs-like trees. Every read is bounded, so that a broken or hostile tree
//! costs no more than a large one.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// More entries than any directory that is looked at has.
const MAX_ENTRIES: usize = 16_384;

/// Any one value of sysfs: the kernel gives at most a page.
const VALUE_BYTES: u64 = 4096;

/// At most the first `limit` bytes of a file; what is not UTF-8 is replaced.
///
/// # Errors
/// As the system says.
pub fn read_start(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A value of sysfs, without the line's end.
///
/// # Errors
/// As the system says.
pub fn read_value(path: &Path) -> io::Result<String> {
    Ok(read_start(path, VALUE_BYTES)?.trim().to_owned())
}

/// Entries of `parent` named `prefix` and a number, by that number.
///
/// # Errors
/// If `parent` cannot be listed.
pub fn numbered(parent: &Path, prefix: &str) -> io::Result<Vec<(u32, PathBuf)>> {
    let entries = fs::read_dir(parent)?.take(MAX_ENTRIES).filter_map(Result::ok);
    let number = |entry: &fs::DirEntry| number_after(entry.file_name().to_str()?, prefix);
    let mut found: Vec<_> = entries.filter_map(|entry| Some((number(&entry)?, entry.path()))).collect();
    found.sort();
    Ok(found)
}

/// `12` of `hwmon12`; nothing else than digits may follow the prefix.
pub fn number_after(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_their_prefix_and_nothing_follows_them() {
        for (name, expected) in [
            ("cpu0", Some(0)),
            ("cpu12", Some(12)),
            ("cpufreq", None),
            ("cpu", None),
            ("cpu-1", None),
            ("cpu+1", None),
            ("cpu1a", None),
            ("xcpu1", None),
            ("cpu99999999999", None),
        ] {
            assert_eq!(number_after(name, "cpu"), expected, "{name}");
        }
    }

    #[test]
    fn entries_are_in_the_order_of_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["hwmon10", "hwmon2", "hwmonx", "other1"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let numbers: Vec<u32> = numbered(directory.path(), "hwmon").unwrap().into_iter().map(|(n, _)| n).collect();
        assert_eq!(numbers, [2, 10]);
        assert!(numbered(&directory.path().join("absent"), "hwmon").is_err());
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("value");
        std::fs::write(&path, [b" 12\n".as_slice(), &[0xff; 100_000]].concat()).unwrap();
        assert_eq!(read_start(&path, 4).unwrap(), " 12\n");
        assert!(read_value(&path).unwrap().starts_with("12\n\u{fffd}"));
        assert!(read_value(&path).unwrap().chars().count() <= 4096);
        std::fs::write(&path, " psys \n").unwrap();
        assert_eq!(read_value(&path).unwrap(), "psys");
        assert!(read_value(directory.path()).is_err());
    }
}
