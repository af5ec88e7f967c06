//! Defines what moving a byte costs: the model of a network card or a disk, and the weights by which its energy is
//! divided.

use joular_ebpf::abi::IoKind;
use serde::{Deserialize, Serialize};

/// Bytes by [`IoKind`].
pub type BytesByKind = [u64; IoKind::ALL.len()];

/// Energy of moving one byte, pJ. What stays in memory costs nothing here: it is the processor's and the memory's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteCosts {
    /// To another host.
    pub sent_pj: u64,
    /// From another host.
    pub received_pj: u64,
    /// From a disk.
    pub device_read_pj: u64,
    /// To a disk.
    pub device_written_pj: u64,
}

impl ByteCosts {
    /// Energy of these bytes, pJ.
    pub fn of(&self, bytes: &BytesByKind) -> u128 {
        let cost = |kind| u128::from(self.of_one(kind)) * u128::from(bytes[kind as usize]);
        IoKind::ALL.into_iter().map(cost).fold(0, u128::saturating_add)
    }

    const fn of_one(&self, kind: IoKind) -> u64 {
        match kind {
            IoKind::Sent => self.sent_pj,
            IoKind::Received => self.received_pj,
            IoKind::DeviceRead => self.device_read_pj,
            IoKind::DeviceWritten => self.device_written_pj,
            IoKind::LocalSent | IoKind::LocalReceived | IoKind::Read | IoKind::Written => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leaves_the_memory_costs_anything() {
        let network = ByteCosts { sent_pj: 2, received_pj: 3, ..ByteCosts::default() };
        let disk = ByteCosts { device_read_pj: 5, device_written_pj: 7, ..ByteCosts::default() };
        let bytes = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
        assert_eq!(network.of(&bytes), 2 + 30);
        assert_eq!(disk.of(&bytes), 5_000_000 + 70_000_000);
        assert_eq!(network.of(&[u64::MAX; 8]), 5 * u128::from(u64::MAX));
    }
}
