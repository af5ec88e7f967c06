//! Keeps names by address, of every process, with a bound.
//!
//! Names are told once. The receiver keeps them, and the sender remembers what it has told. Both
//! must forget the same names at the same moment, or a name is missing for good. Therefore both
//! keep a [`NamedAddresses`] and change it by the same calls in the same order:
//! [`NamedAddresses::make_room`] once for what is told at once, then [`NamedAddresses::insert`] for
//! each address.

use std::{collections::BTreeMap, hash::BuildHasher as _, num::NonZeroU64};

use foldhash::quality::FixedState;

use super::work::ProcessKey;
use crate::{events::Symbol, model::units::Address, stacks::FrameId};

/// One event may exceed the limits, up to this many times their size.
pub(super) const NEVER_MORE: usize = 8;

/// Named addresses of one process, and of all, before they are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameLimits {
    pub(super) of_process: usize,
    pub(super) of_all: usize,
}

impl Default for NameLimits {
    fn default() -> Self {
        Self { of_process: 1 << 15, of_all: 1 << 19 }
    }
}

/// What an address stands for. Most stand for one frame, which needs no allocation of its own.
#[derive(Debug)]
pub(super) enum NamedFrames {
    One([FrameId; 1]),
    Any(Box<[FrameId]>),
}

impl FromIterator<FrameId> for NamedFrames {
    fn from_iter<I: IntoIterator<Item = FrameId>>(frames: I) -> Self {
        let frames: Box<[FrameId]> = frames.into_iter().collect();
        <[FrameId; 1]>::try_from(&*frames).map_or(Self::Any(frames), Self::One)
    }
}

impl NamedFrames {
    pub(super) fn as_slice(&self) -> &[FrameId] {
        match self {
            Self::One(frame) => frame,
            Self::Any(frames) => frames,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [FrameId] {
        match self {
            Self::One(frame) => frame,
            Self::Any(frames) => frames,
        }
    }
}

/// In order, because a new table of frames numbers them as they come.
#[derive(Debug)]
pub(super) struct NamedAddresses<V> {
    limits: NameLimits,
    processes: BTreeMap<ProcessKey, BTreeMap<Address, V>>,
    /// Addresses of all processes.
    len: usize,
}

impl<V> Default for NamedAddresses<V> {
    fn default() -> Self {
        Self::with_limits(NameLimits::default())
    }
}

impl<V> NamedAddresses<V> {
    pub(super) const fn with_limits(limits: NameLimits) -> Self {
        Self { limits, processes: BTreeMap::new(), len: 0 }
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) fn addresses(&self) -> Vec<(ProcessKey, Vec<Address>)> {
        self.processes.iter().map(|(key, known)| (*key, known.keys().copied().collect())).collect()
    }

    pub(super) fn get(&self, process: ProcessKey, address: Address) -> Option<&V> {
        self.processes.get(&process)?.get(&address)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.processes.values_mut().flat_map(BTreeMap::values_mut)
    }

    fn values_of_mut(&mut self, process: ProcessKey) -> impl Iterator<Item = &mut V> {
        self.processes.get_mut(&process).into_iter().flat_map(BTreeMap::values_mut)
    }

    /// Says whether there was anything to forget.
    pub(super) fn forget(&mut self, process: ProcessKey) -> bool {
        let forgotten = self.processes.remove(&process);
        self.len = self.len.saturating_sub(forgotten.as_ref().map_or(0, BTreeMap::len));
        forgotten.is_some()
    }

    /// Forgets what is too much before a process's names are told, and returns the processes whose
    /// names are gone.
    pub(super) fn make_room(&mut self, process: ProcessKey) -> Vec<ProcessKey> {
        let mut forgotten = Vec::new();
        if self.processes.get(&process).is_some_and(|known| known.len() >= self.limits.of_process) {
            forgotten.push(process);
            self.forget(process);
        }
        if self.len >= self.limits.of_all {
            let most = self.processes.iter().max_by_key(|(key, known)| (known.len(), **key)).map(|(key, _)| *key);
            if let Some(most) = most {
                forgotten.push(most);
                self.forget(most);
            }
        }
        forgotten
    }

    /// Whether there is room for a name: a new one, or another one of a known address.
    pub(super) fn has_room(&self, process: ProcessKey, address: Address) -> bool {
        let known = self.processes.get(&process);
        let is_full = known.is_some_and(|known| known.len() >= self.limits.of_process.saturating_mul(NEVER_MORE))
            || self.len >= self.limits.of_all.saturating_mul(NEVER_MORE);
        !is_full || known.is_some_and(|known| known.contains_key(&address))
    }

    /// Inserts a name; call it only if there is room.
    pub(super) fn insert(&mut self, process: ProcessKey, address: Address, value: V) {
        if self.has_room(process, address) {
            let before = self.processes.entry(process).or_default().insert(address, value);
            self.len += usize::from(before.is_none());
        }
    }
}

/// What the engine has been told. Names are sent again only when they change.
#[derive(Debug, Default)]
pub struct ToldNames {
    /// A hash of the last answer; `None`: tell it again, whatever it is.
    told: NamedAddresses<Option<NonZeroU64>>,
}

impl ToldNames {
    #[cfg(test)]
    pub(super) const fn with_limits(limits: NameLimits) -> Self {
        Self { told: NamedAddresses::with_limits(limits) }
    }

    /// Returns the names of a process that must be sent, in one event if there are any, and notes
    /// them as told.
    pub fn news(&mut self, process: ProcessKey, symbols: Vec<Symbol>) -> Vec<Symbol> {
        let hashes: Vec<NonZeroU64> = symbols.iter().map(hash).collect();
        // Nothing is forgotten where nothing is sent: the engine would not know.
        if symbols.iter().zip(&hashes).all(|(symbol, hash)| !self.is_news(process, symbol.address, *hash)) {
            return Vec::new();
        }
        self.told.make_room(process);
        let mut hashed: Vec<(Symbol, NonZeroU64)> = symbols.into_iter().zip(hashes).collect();
        hashed.retain(|(symbol, hash)| self.is_news(process, symbol.address, *hash));
        hashed.iter().for_each(|(symbol, hash)| self.told.insert(process, symbol.address, Some(*hash)));
        hashed.into_iter().map(|(symbol, _)| symbol).collect()
    }

    fn is_news(&self, process: ProcessKey, address: Address, hash: NonZeroU64) -> bool {
        self.told.get(process, address) != Some(&Some(hash))
    }

    /// Says that the process runs another program now. The engine keeps the old names until it is
    /// told others, so they still count.
    pub fn tell_again(&mut self, process: ProcessKey) {
        self.told.values_of_mut(process).for_each(|told| *told = None);
    }

    /// Forgets a process that ended or is not a target any more, as the engine does.
    pub fn forget(&mut self, process: ProcessKey) {
        self.told.forget(process);
    }
}

/// Never 0, so that an address without an answer needs no room beside it.
fn hash(symbol: &Symbol) -> NonZeroU64 {
    NonZeroU64::new(FixedState::default().hash_one(&symbol.frames)).unwrap_or(NonZeroU64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        attribution::{limits::Limits, paths::Paths},
        model::{
            frame::{Frame, FrameKind},
            units::Pid,
        },
    };

    const LIMITS: NameLimits = NameLimits { of_process: 6, of_all: 10 };

    /// A process, the addresses of one window, and which of two names they have.
    fn window() -> impl Strategy<Value = (u32, BTreeSet<u64>, bool)> {
        (0..4_u32, proptest::collection::btree_set(0..60_u64, 1..60), any::<bool>())
    }

    fn symbol(process: u32, address: u64, has_new_name: bool) -> Symbol {
        let frame = Frame::new(FrameKind::Native, format!("{process}-{address}-{has_new_name}"));
        Symbol { address: Address(address), frames: vec![frame] }
    }

    #[test]
    fn nothing_is_forgotten_where_nothing_is_sent() {
        let mut told = ToldNames::with_limits(LIMITS);
        let of = |process| (Pid(process), 0);
        for process in 0..2 {
            assert_eq!(told.news(of(process), (0..6).map(|at| symbol(process, at, false)).collect()).len(), 6);
        }
        // All is full now, but the engine has it still: no event, no change.
        assert_eq!(told.news(of(1), vec![symbol(1, 5, false)]), []);
        assert_eq!(told.news(of(0), vec![symbol(0, 5, false)]), []);
    }

    #[test]
    fn names_of_the_program_before_still_count() {
        let mut told = ToldNames::with_limits(LIMITS);
        let mut paths = Paths::with_limits(Limits { names: LIMITS, ..Limits::default() });
        let key = (Pid(1), 0);
        let mut tell = |told: &mut ToldNames, addresses: std::ops::Range<u64>| {
            let news = told.news(key, addresses.map(|at| symbol(1, at, false)).collect());
            paths.learn(key, &news);
            (news.len(), told.told.len(), paths.names(key, Address(0)).is_some())
        };
        assert_eq!(tell(&mut told, 0..4), (4, 4, true));
        told.tell_again(key);
        // It is full with what both programs had.
        assert_eq!(tell(&mut told, 0..6), (6, 6, true));
        assert_eq!(tell(&mut told, 6..7), (1, 1, false));
        assert_eq!(tell(&mut told, 0..1), (1, 2, true), "what the engine forgot is told again");
    }

    proptest! {
        #[test]
        fn what_counts_as_told_is_what_the_engine_knows(
            windows in proptest::collection::vec(window(), 1..40),
            changes in proptest::collection::vec((0..4_u32, any::<bool>()), 0..20),
        ) {
            let mut told = ToldNames::with_limits(LIMITS);
            let mut paths = Paths::with_limits(Limits { names: LIMITS, ..Limits::default() });
            let mut changes = changes.into_iter();
            for (process, addresses, has_new_name) in windows {
                let key = (Pid(process), 0);
                let symbols = addresses.iter().map(|at| symbol(process, *at, has_new_name)).collect();
                let news = told.news(key, symbols);
                if !news.is_empty() {
                    paths.learn(key, &news);
                }
                prop_assert_eq!(told.told.addresses(), paths.named_addresses());
                for symbol in addresses.iter().map(|at| symbol(process, *at, has_new_name)) {
                    // What found no room is news again.
                    if !told.is_news(key, symbol.address, hash(&symbol)) {
                        prop_assert_eq!(paths.names(key, symbol.address), Some(symbol.frames));
                    }
                }
                match changes.next() {
                    Some((process, true)) => {
                        told.forget((Pid(process), 0));
                        paths.forget_process((Pid(process), 0));
                    }
                    Some((process, false)) => told.tell_again((Pid(process), 0)),
                    None => {}
                }
            }
        }
    }
}
