//! Reads what the kernel knows of sockets and files.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use joular_ebpf::abi::IpAddress;

use crate::maps::{MESSAGE_NAME, SOCK_FAMILY, SOCK_OWN, SOCK_OWN_V6, SOCK_PEER, SOCK_PEER_V6, SOCK_PROTOCOL};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;
const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;

/// Whether an inode of this mode is a regular file.
#[inline(always)]
pub const fn is_regular(mode: u16) -> bool {
    mode & S_IFMT == S_IFREG
}

/// Address of a `struct sock`.
#[derive(Clone, Copy)]
pub struct Socket(pub u64);

impl Socket {
    /// Whether it is one of TCP or UDP.
    #[inline(always)]
    pub fn is_counted(self) -> bool {
        let protocol: u16 = read(self.0, SOCK_PROTOCOL.load()).unwrap_or(0);
        let is_of_ip = matches!(self.family(), AF_INET | AF_INET6);
        is_of_ip && matches!(protocol, IPPROTO_TCP | IPPROTO_UDP)
    }

    #[inline(always)]
    pub fn is_v6(self) -> bool {
        self.family() == AF_INET6
    }

    #[inline(always)]
    fn family(self) -> u16 {
        read(self.0, SOCK_FAMILY.load()).unwrap_or(0)
    }

    /// Whether the other end is on this host: by the message's address if it has one, else by the connection's. A
    /// message (0: none) has the receiver's address, or that of who sent it.
    #[inline(always)]
    pub fn is_on_host(self, message: u64) -> bool {
        let is_v6 = self.is_v6();
        let own = if is_v6 {
            read(self.0, SOCK_OWN_V6.load()).map(IpAddress::v6)
        } else {
            read(self.0, SOCK_OWN.load()).map(IpAddress::v4)
        };
        let name: u64 = if message == 0 { 0 } else { read(message, MESSAGE_NAME.load()).unwrap_or(0) };
        let peer = if name != 0 {
            address_in(name)
        } else if is_v6 {
            read(self.0, SOCK_PEER_V6.load()).map(IpAddress::v6)
        } else {
            read(self.0, SOCK_PEER.load()).map(IpAddress::v4)
        };
        peer.is_some_and(|peer| peer.is_on_host(own.unwrap_or_default()))
    }
}

/// The address in a `struct sockaddr_in` or `sockaddr_in6`, whose layouts are fixed.
#[inline(always)]
fn address_in(name: u64) -> Option<IpAddress> {
    match read::<u16>(name, 0)? {
        AF_INET => read(name, 4).map(IpAddress::v4),
        AF_INET6 => read(name, 8).map(IpAddress::v6),
        _ => None,
    }
}

/// Reads kernel memory, if there is any.
#[inline(always)]
pub fn read<T>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper fails where nothing can be read, and `T` is made of integers.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(offset as u64) as *const T) }.ok()
}
