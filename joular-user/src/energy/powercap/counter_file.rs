//! Keeps one `energy_uj` file open, reads it in place, and opens it again after a failure.
//!
//! The kernel numbers sysfs paths in the order in which devices appear, so after a device went
//! away, its path may lead to another one. The file `name` beside the counter says what a zone or a
//! chip is: it must stay the same.

use std::{
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::energy::sysfs::read_value;

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
    owner: Option<Owner>,
}

/// The owner of a counter: a `name` file and its content at first.
#[derive(Debug)]
struct Owner {
    path: PathBuf,
    name: String,
}

impl Owner {
    fn of(counter: &Path) -> Option<Self> {
        let path = counter.with_file_name("name");
        Some(Self { name: read_value(&path).ok()?, path })
    }

    /// # Errors
    /// `NotFound` if the path is another's by now.
    fn is_there(&self) -> io::Result<()> {
        let is_same = read_value(&self.path).ok().is_some_and(|name| name == self.name);
        if is_same { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl CounterFile {
    /// The counter at `path`. It belongs to the owner that the file `name` beside it names now;
    /// without such a file, to whoever has that path.
    pub fn new(path: PathBuf) -> Self {
        Self { owner: Owner::of(&path), path, file: None }
    }

    /// Reads the counter, µJ. A file that fails is opened anew and tried once more, so that a zone
    /// that went away and came back is found again.
    pub fn read(&mut self) -> Result<u64, ReadFailure> {
        if let Some(Ok(value)) = self.file.as_ref().map(number_in) {
            return Ok(value);
        }
        self.file = None;
        match self.open() {
            Ok((value, file)) => {
                self.file = Some(file);
                Ok(value)
            }
            Err(cause) => Err(ReadFailure { path: self.path.clone(), cause }),
        }
    }

    fn open(&self) -> io::Result<(u64, File)> {
        self.owner.as_ref().map_or(Ok(()), Owner::is_there)?;
        let file = File::open(&self.path)?;
        Ok((number_in(&file)?, file))
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
        // EACCES is about the user, EPERM about the device: so refuses a driver
        // to wake a GPU.
        if self.cause.raw_os_error() == Some(libc::EPERM) {
            return write!(f, "reading {path}: the device refuses (it may be asleep)");
        }
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
    fn a_device_that_refuses_is_no_matter_of_permission() {
        let cause = io::Error::from_raw_os_error(libc::EPERM);
        let failure = ReadFailure { path: "/sys/class/hwmon/hwmon2/power1_average".into(), cause };
        let text = "reading /sys/class/hwmon/hwmon2/power1_average: the device refuses (it may be asleep)";
        assert_eq!(failure.to_string(), text);
    }

    #[test]
    fn a_path_that_is_anothers_by_now_is_gone_until_its_owner_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("energy_uj");
        let appear = |name: &str, value: &str| {
            std::fs::write(directory.path().join("name"), name).unwrap();
            std::fs::write(&path, value).unwrap();
        };
        // An open sysfs file fails once its device is gone; an open plain file
        // lives on, so it is emptied first.
        let vanish = || {
            std::fs::write(&path, "").unwrap();
            std::fs::remove_file(&path).unwrap();
        };
        appear("package-0\n", "5");
        let mut counter = CounterFile::new(path.clone());
        let value = |counter: &mut CounterFile| counter.read().map_err(|failure| failure.cause.kind());
        assert_eq!(value(&mut counter), Ok(5));
        vanish();
        appear("package-1\n", "7");
        assert_eq!(value(&mut counter), Err(io::ErrorKind::NotFound));
        std::fs::remove_file(directory.path().join("name")).unwrap();
        assert_eq!(value(&mut counter), Err(io::ErrorKind::NotFound));
        appear("package-0\n", "9");
        assert_eq!(value(&mut counter), Ok(9));
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
