//! One `energy_uj` file: kept open, read in place, opened again after a failure.

use std::{
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// A u64 has at most 20 digits; anything longer is not a counter.
const MAX_BYTES: usize = 64;

/// Reads a file that holds one unsigned decimal number.
///
/// # Errors
/// As the system says, or `InvalidData` if it is not one number.
pub fn read_number(path: &Path) -> io::Result<u64> {
    number_in(&File::open(path)?)
}

fn number_in(file: &File) -> io::Result<u64> {
    let mut bytes = [0; MAX_BYTES];
    // sysfs gives a whole value in one read.
    let length = file.read_at(&mut bytes, 0)?;
    let text = bytes.get(..length).and_then(|read| std::str::from_utf8(read).ok()).map(str::trim);
    let number = text.filter(|_| length < MAX_BYTES).and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
}

/// A counter and its open file.
#[derive(Debug)]
pub struct CounterFile {
    path: PathBuf,
    file: Option<File>,
}

impl CounterFile {
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The counter now, µJ. A file that fails is opened anew and tried once
    /// more, so that a zone that went away and came back is found again.
    pub fn read(&mut self) -> Result<u64, ReadFailure> {
        if let Some(Ok(value)) = self.file.as_ref().map(number_in) {
            return Ok(value);
        }
        self.file = None;
        let attempt = File::open(&self.path).and_then(|file| Ok((number_in(&file)?, file)));
        match attempt {
            Ok((value, file)) => {
                self.file = Some(file);
                Ok(value)
            }
            Err(cause) => Err(ReadFailure { path: self.path.clone(), cause }),
        }
    }
}

/// Its path, for messages.
impl fmt::Display for CounterFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Why a counter could not be read, and what to do about it.
#[derive(Debug)]
pub struct ReadFailure {
    pub path: PathBuf,
    pub cause: io::Error,
}

impl ReadFailure {
    pub fn is_permission_denied(&self) -> bool {
        self.cause.kind() == io::ErrorKind::PermissionDenied
    }
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.cause.kind() {
            io::ErrorKind::PermissionDenied => {
                write!(f, "reading {path}: permission denied: run as root or grant CAP_DAC_READ_SEARCH")
            }
            io::ErrorKind::NotFound => write!(f, "reading {path}: it is gone"),
            _ => write!(f, "reading {path}: {}", self.cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_denied_says_what_to_do() {
        let cause = io::Error::from_raw_os_error(13);
        let failure = ReadFailure { path: "/sys/class/powercap/intel-rapl:0/energy_uj".into(), cause };
        assert!(failure.is_permission_denied());
        assert_eq!(
            failure.to_string(),
            "reading /sys/class/powercap/intel-rapl:0/energy_uj: permission denied: \
             run as root or grant CAP_DAC_READ_SEARCH"
        );
    }

    #[test]
    fn only_one_number_is_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("energy_uj");
        for (text, expected) in [
            ("12\n", Some(12)),
            ("18446744073709551615\n", Some(u64::MAX)),
            ("18446744073709551616\n", None),
            ("-1", None),
            ("", None),
            ("1 2", None),
            ("1.5", None),
            (&"0".repeat(64), None),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read_number(&path).ok(), expected, "{text:?}");
        }
    }
}
