//! Keeps the two maps in which one thing is counted, one for each bank, and makes them larger.
//!
//! Nobody knows at the start how many threads will come. The programs find a bank's map in an array of maps.
//! A bank that was just drained is written by no program until the next boundary, so its map can be replaced
//! then: nothing is lost, and the next window has more room.

use std::{
    io,
    os::fd::{AsFd as _, FromRawFd as _, OwnedFd},
};

use aya::{
    Ebpf, Pod,
    maps::{ArrayOfMaps, MapData, MapError},
};

use super::{
    banks::{map_error, take},
    batch::Drain,
    error::KernelError,
};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_TYPE_HASH: u32 = 1;
/// A map that was fuller than one part in so many is too small for what may come next.
const FULLEST: usize = 2;
/// How much more room there is than entries after that.
const ROOM: usize = 4;

/// How many entries maps have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub first: u32,
    pub most: u32,
}

/// A bank's map.
struct Bank {
    map: MapData,
    capacity: u32,
}

/// The maps of both banks.
pub(super) struct BankMaps<K, V> {
    name: &'static str,
    banks: [Bank; 2],
    by_bank: ArrayOfMaps<MapData, MapData>,
    most: u32,
    drain: Drain<K, V>,
}

impl<K: Pod + Default, V: Pod + Default> BankMaps<K, V> {
    pub(super) fn new(ebpf: &mut Ebpf, name: &'static str, capacity: Capacity) -> Result<Self, KernelError> {
        let mut by_bank: ArrayOfMaps<MapData, MapData> = take(ebpf, name)?;
        let mut made = |bank| {
            let map = create::<K, V>(capacity.first).and_then(|map| set(&mut by_bank, bank, map));
            map.map(|map| Bank { map, capacity: capacity.first }).map_err(|source| map_error("creating", name, source))
        };
        let banks = [made(0)?, made(1)?];
        Ok(Self { name, banks, by_bank, most: capacity.most, drain: Drain::new() })
    }

    /// Takes all entries of a bank that no program writes to, and gives it more room if there were many.
    pub(super) fn drain(&mut self, bank: u32, mut take: impl FnMut(K, V)) -> Result<(), KernelError> {
        let Some(ended) = self.banks.get_mut(bank as usize) else { return Ok(()) };
        let mut entries = 0;
        let count = |key, value| {
            entries += 1;
            take(key, value);
        };
        self.drain
            .drain(ended.map.fd().as_fd(), count)
            .map_err(|source| KernelError::Drain { map: self.name, source })?;
        if let Some(capacity) = grown(entries, ended.capacity, self.most) {
            match create::<K, V>(capacity).and_then(|map| set(&mut self.by_bank, bank, map)) {
                Ok(map) => *ended = Bank { map, capacity },
                // What finds no place is counted as lost, as it would be without a larger map.
                Err(_) => self.most = ended.capacity,
            }
        }
        Ok(())
    }
}

/// The size that a map should have which had so many entries; none if it is large enough, or as large as it
/// may be.
fn grown(entries: usize, capacity: u32, most: u32) -> Option<u32> {
    let is_full = entries.saturating_mul(FULLEST) > capacity as usize;
    let wanted = u32::try_from(entries.saturating_mul(ROOM).next_power_of_two()).unwrap_or(most).min(most);
    (is_full && wanted > capacity).then_some(wanted)
}

fn set(by_bank: &mut ArrayOfMaps<MapData, MapData>, bank: u32, map: MapData) -> Result<MapData, MapError> {
    by_bank.set(bank, &map, 0).map(|()| map)
}

/// The first members of `union bpf_attr` for this command (include/uapi/linux/bpf.h).
#[repr(C)]
struct CreateAttr {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

/// A map whose entries are allocated with it, as those are that the programs were verified with.
fn create<K, V>(capacity: u32) -> Result<MapData, MapError> {
    let attr = CreateAttr {
        map_type: BPF_MAP_TYPE_HASH,
        key_size: u32::try_from(size_of::<K>()).unwrap_or(u32::MAX),
        value_size: u32::try_from(size_of::<V>()).unwrap_or(u32::MAX),
        max_entries: capacity,
    };
    // SAFETY: the attribute is live and as large as said; the kernel takes the rest as zero.
    let made = unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_CREATE, &raw const attr, size_of::<CreateAttr>()) };
    let failed = |_| MapError::IoError(io::Error::last_os_error());
    let made = i32::try_from(made).ok().filter(|made| *made >= 0).ok_or(()).map_err(failed)?;
    // SAFETY: a descriptor that was just made, and nobody else has. Programs that are started do not inherit it: the
    // kernel makes all such descriptors so.
    MapData::from_fd(unsafe { OwnedFd::from_raw_fd(made) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_is_more_than_half_full_becomes_larger_up_to_a_limit() {
        for (entries, capacity, expected) in [
            (0, 16_384, None),
            (8_192, 16_384, None),
            (8_193, 16_384, Some(65_536)),
            (16_384, 16_384, Some(65_536)),
            (40_000, 65_536, Some(262_144)),
            (600_000, 1 << 20, None),
            (300_000, 1 << 19, Some(1 << 20)),
        ] {
            assert_eq!(grown(entries, capacity, 1 << 20), expected, "{entries} in {capacity}");
        }
    }
}
