//! Defines what is counted of bytes that threads move through sockets and files.
//!
//! Each call that moves bytes adds to its thread's own record, so the bytes of a thread are exact. Where its target
//! called from is only sampled: a call that moved many bytes is more likely to be, and a sample stands for more than
//! its own bytes accordingly (see [`super::sampled_bytes`]).

/// Key of the map of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoKey {
    /// [`super::ThreadKey`], without a place.
    pub thread: u64,
    /// [`super::StackId`] of the user's stack; 0 in a thread's own record.
    pub stack: u64,
    /// [`IoKind`].
    pub kind: u32,
    pub _reserved: u32,
}

/// Value of the map of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoSlot {
    /// What the samples stand for. In a thread's own record the bytes themselves.
    pub bytes: u64,
    /// Samples. In a thread's own record the calls.
    pub count: u32,
    pub tgid: u32,
}

/// Where bytes went to, or came from.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoKind {
    /// To another host, or to one that is not known.
    Sent = 0,
    Received = 1,
    /// Through a socket that ends on this host.
    LocalSent = 2,
    LocalReceived = 3,
    /// From and to a regular file, whether or not its pages were in memory.
    Read = 4,
    Written = 5,
    /// From a device, and into pages that go to one.
    DeviceRead = 6,
    DeviceWritten = 7,
}

impl IoKind {
    /// By number.
    pub const ALL: [Self; 8] = [
        Self::Sent,
        Self::Received,
        Self::LocalSent,
        Self::LocalReceived,
        Self::Read,
        Self::Written,
        Self::DeviceRead,
        Self::DeviceWritten,
    ];

    /// `None` for a number that has none.
    pub fn decode(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// What a thread had moved between memory and devices when it was last looked at: the kernel's own count of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceBytes {
    pub read: u64,
    pub written: u64,
}

impl DeviceBytes {
    /// What was moved since; nothing if this is another thread's by now.
    #[inline(always)]
    pub const fn since(self, earlier: Self) -> Self {
        Self { read: self.read.saturating_sub(earlier.read), written: self.written.saturating_sub(earlier.written) }
    }
}

/// An IP address as two numbers; one of version 4 as version 6 maps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpAddress {
    high: u64,
    low: u64,
}

const MAPPED: u64 = 0xffff << 32;
const LOOPBACK: IpAddress = IpAddress { high: 0, low: 1 };
const LOOPBACK_NETWORK: u64 = 127;

impl IpAddress {
    /// From the words of memory, in the order of the network.
    #[inline(always)]
    pub const fn v4(word: u32) -> Self {
        Self { high: 0, low: MAPPED | u32::from_be(word) as u64 }
    }

    /// The same for version 6.
    #[inline(always)]
    pub const fn v6(words: [u64; 2]) -> Self {
        Self { high: u64::from_be(words[0]), low: u64::from_be(words[1]) }
    }

    #[inline(always)]
    const fn is_unspecified(self) -> bool {
        self.high == 0 && (self.low == 0 || self.low == MAPPED)
    }

    /// Whether what is sent to this address, from a socket with an address of its own, stays on the host.
    #[inline(always)]
    pub const fn is_on_host(self, own: Self) -> bool {
        let is_loopback =
            self.high == 0 && (self.low == LOOPBACK.low || self.low >> 24 == MAPPED >> 24 | LOOPBACK_NETWORK);
        is_loopback || self.high == own.high && self.low == own.low && !own.is_unspecified()
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv6Addr};

    use super::*;

    fn address(text: &str) -> IpAddress {
        match text.parse().unwrap() {
            IpAddr::V4(address) => IpAddress::v4(u32::from_ne_bytes(address.octets())),
            IpAddr::V6(address) => IpAddress::v6(words(address)),
        }
    }

    fn words(address: Ipv6Addr) -> [u64; 2] {
        let bytes = address.octets();
        [0, 8].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()))
    }

    #[test]
    fn loopback_and_a_sockets_own_address_are_on_the_host() {
        for (peer, own, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.8.9.10", "0.0.0.0", true),
            ("126.255.255.255", "127.0.0.1", false),
            ("128.0.0.1", "0.0.0.0", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0", "0.0.0.0", false),
            ("::1", "::", true),
            ("::2", "::1", false),
            ("::", "::", false),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.3", false),
            ("::127.0.0.1", "::", false),
            ("fe80::1", "fe80::1", true),
            ("fe80::1", "fe80::2", false),
            ("1::ffff:127.0.0.1", "::", false),
        ] {
            assert_eq!(address(peer).is_on_host(address(own)), expected, "{peer} from {own}");
        }
    }

    #[test]
    fn kinds_are_known_by_their_numbers() {
        for (kind, number) in IoKind::ALL.into_iter().zip(0..) {
            assert_eq!((kind as u32, IoKind::decode(number)), (number, Some(kind)));
        }
        assert_eq!(IoKind::decode(8), None);
    }

    #[test]
    fn another_threads_count_is_no_progress() {
        let earlier = DeviceBytes { read: 100, written: 7 };
        assert_eq!(DeviceBytes { read: 150, written: 7 }.since(earlier), DeviceBytes { read: 50, written: 0 });
        assert_eq!(DeviceBytes { read: 3, written: 8 }.since(earlier), DeviceBytes { read: 0, written: 1 });
    }
}
