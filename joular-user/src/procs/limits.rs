//! Raises limits that the kernel sets this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Allows as many open files as the hard limit does: each file of a target
/// whose symbols may be needed is held open, and the soft limit is often 1024.
/// Where that fails, the limit stays what it was, and files of later targets have no names.
pub fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        raise_open_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
