//! Names the ways that bytes go through sockets and files.

use joular_ebpf::abi::IoKind;

use super::byte_costs::BytesByKind;

/// Which way bytes went, as people ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Through sockets, to this host and to others.
    Sent,
    Received,
    Read,
    Written,
    DeviceRead,
    DeviceWritten,
    /// Through sockets, to other hosts only.
    RemoteSent,
    RemoteReceived,
    /// Through sockets, within this host.
    LocalSent,
    LocalReceived,
}

impl Way {
    pub const ALL: [Self; 10] = [
        Self::Sent,
        Self::Received,
        Self::Read,
        Self::Written,
        Self::DeviceRead,
        Self::DeviceWritten,
        Self::RemoteSent,
        Self::RemoteReceived,
        Self::LocalSent,
        Self::LocalReceived,
    ];

    /// Ways that have no bytes in common: each kind of bytes goes one of them.
    pub const APART: [Self; 6] =
        [Self::Sent, Self::Received, Self::Read, Self::Written, Self::DeviceRead, Self::DeviceWritten];

    /// The way of one kind of bytes only.
    pub const fn of_kind(kind: IoKind) -> Self {
        match kind {
            IoKind::Sent => Self::RemoteSent,
            IoKind::Received => Self::RemoteReceived,
            IoKind::LocalSent => Self::LocalSent,
            IoKind::LocalReceived => Self::LocalReceived,
            IoKind::Read => Self::Read,
            IoKind::Written => Self::Written,
            IoKind::DeviceRead => Self::DeviceRead,
            IoKind::DeviceWritten => Self::DeviceWritten,
        }
    }

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Read => "read",
            Self::Written => "written",
            Self::DeviceRead => "device-read",
            Self::DeviceWritten => "device-written",
            Self::RemoteSent => "remote-sent",
            Self::RemoteReceived => "remote-received",
            Self::LocalSent => "local-sent",
            Self::LocalReceived => "local-received",
        }
    }

    pub const fn heading(self) -> &'static str {
        match self {
            Self::Sent => "SENT MB",
            Self::Received => "RECEIVED MB",
            Self::Read => "READ MB",
            Self::Written => "WRITTEN MB",
            Self::DeviceRead => "DEVICE READ MB",
            Self::DeviceWritten => "DEVICE WRITTEN MB",
            Self::RemoteSent => "REMOTE SENT MB",
            Self::RemoteReceived => "REMOTE RECEIVED MB",
            Self::LocalSent => "LOCAL SENT MB",
            Self::LocalReceived => "LOCAL RECEIVED MB",
        }
    }

    /// As in "bytes …".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Read => "read from files",
            Self::Written => "written to files",
            Self::DeviceRead => "read from devices",
            Self::DeviceWritten => "written to devices",
            Self::RemoteSent => "sent to other hosts",
            Self::RemoteReceived => "received from other hosts",
            Self::LocalSent => "sent within this host",
            Self::LocalReceived => "received within this host",
        }
    }

    pub const fn kinds(self) -> &'static [IoKind] {
        match self {
            Self::Sent => &[IoKind::Sent, IoKind::LocalSent],
            Self::Received => &[IoKind::Received, IoKind::LocalReceived],
            Self::Read => &[IoKind::Read],
            Self::Written => &[IoKind::Written],
            Self::DeviceRead => &[IoKind::DeviceRead],
            Self::DeviceWritten => &[IoKind::DeviceWritten],
            Self::RemoteSent => &[IoKind::Sent],
            Self::RemoteReceived => &[IoKind::Received],
            Self::LocalSent => &[IoKind::LocalSent],
            Self::LocalReceived => &[IoKind::LocalReceived],
        }
    }

    /// Bytes that went this way.
    pub fn of(self, bytes: &BytesByKind) -> u64 {
        self.kinds().iter().fold(0, |sum, kind| sum.saturating_add(bytes[*kind as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_bytes_goes_one_way() {
        let all: Vec<IoKind> = Way::APART.into_iter().flat_map(|way| way.kinds().iter().copied()).collect();
        assert!(IoKind::ALL.into_iter().all(|kind| all.contains(&kind)) && all.len() == IoKind::ALL.len(), "{all:?}");
        assert!(IoKind::ALL.into_iter().all(|kind| *Way::of_kind(kind).kinds() == [kind]));
    }
}
