//! Takes a pipe that the process before this one left open for it.

use std::{
    io,
    os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

use rustix::fs::{FileType, fstat};

/// Takes the pipe with this number. It may be called once for each number, before this process opens anything.
///
/// # Errors
/// If the number is not that of a pipe beside the three standard streams.
pub fn pipe(number: RawFd) -> io::Result<OwnedFd> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("descriptor {number} {why}"));
    if number <= libc::STDERR_FILENO {
        return Err(wrong("is not one that joular-bpf leaves open"));
    }
    // SAFETY: it is not -1, and is only asked what it is. If it is not open, the kernel says so.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = fstat(borrowed).map_err(|error| wrong(&format!("cannot be used: {}", io::Error::from(error))))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return Err(wrong("is not a pipe"));
    }
    // SAFETY: it is open, and was passed across the exec for this process alone. Nothing else here has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsRawFd as _};

    use super::*;

    #[test]
    fn only_a_pipe_is_taken() {
        let file = File::open("/dev/null").unwrap();
        let cases = [
            (-1, "leaves open"),
            (i32::MIN, "leaves open"),
            (0, "leaves open"),
            (2, "leaves open"),
            (i32::MAX, "Bad file descriptor"),
            (file.as_raw_fd(), "is not a pipe"),
        ];
        for (number, why) in cases {
            let error = pipe(number).unwrap_err().to_string();
            assert!(error.contains(why), "{number}: {error}");
        }
        let (reader, _writer) = io::pipe().unwrap();
        let number = reader.as_raw_fd();
        std::mem::forget(reader);
        assert_eq!(pipe(number).unwrap().as_raw_fd(), number);
    }
}
