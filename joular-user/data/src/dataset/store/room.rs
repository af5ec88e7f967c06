//! Says how much of a file system is free, and how much is to stay so.

use rustix::fs::StatVfs;

/// No percentage keeps more free than this: 5 % of a large disk would be much.
const MOST_BY_SHARE: u64 = 4 << 30;

/// What a file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    /// For everybody: some file systems keep a part for root.
    pub free_bytes: u64,
    /// Inodes; 0 if they are not counted.
    pub files: u64,
    pub free_files: u64,
}

impl From<StatVfs> for Room {
    fn from(found: StatVfs) -> Self {
        Self {
            bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            files: found.f_files,
            free_files: found.f_favail,
        }
    }
}

/// How much is to stay free for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFree {
    Bytes(u64),
    /// Of bytes, 4 GiB at most, and of inodes.
    Percent(u8),
}

impl KeepFree {
    /// Whether it stays free if a file of so many bytes is added.
    pub(super) fn allows(self, room: Room, bytes: u64) -> bool {
        let least_bytes = match self {
            Self::Bytes(least) => least,
            Self::Percent(percent) => share(room.bytes, percent).min(MOST_BY_SHARE),
        };
        let least_files = match self {
            Self::Percent(percent) => share(room.files, percent),
            Self::Bytes(_) => 0,
        };
        room.free_bytes.saturating_sub(bytes) >= least_bytes && room.free_files >= least_files
    }
}

fn share(of: u64, percent: u8) -> u64 {
    of / 100 * u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn room(free_bytes: u64, free_files: u64) -> Room {
        Room { bytes: 1_000 * MIB, free_bytes, files: 1_000, free_files }
    }

    #[test]
    fn what_is_kept_free_is_kept_of_bytes_and_of_inodes() {
        let five = KeepFree::Percent(5);
        assert!(five.allows(room(52 * MIB, 50), MIB));
        assert!(!five.allows(room(50 * MIB, 50), MIB));
        assert!(!five.allows(room(500 * MIB, 49), MIB));
        assert!(KeepFree::Bytes(10 * MIB).allows(room(11 * MIB, 0), MIB));
        assert!(!KeepFree::Bytes(10 * MIB).allows(room(10 * MIB, 0), MIB));
        assert!(five.allows(Room { files: 0, ..room(100 * MIB, 0) }, MIB), "inodes are not counted");
    }

    #[test]
    fn a_share_of_a_large_disk_is_bounded() {
        let room = Room { bytes: 1 << 44, free_bytes: 5 << 30, files: 0, free_files: 0 };
        assert!(KeepFree::Percent(5).allows(room, MIB));
        assert!(!KeepFree::Percent(5).allows(Room { free_bytes: 4 << 30, ..room }, MIB));
    }
}
