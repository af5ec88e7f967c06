//! Shares out the threads that wait for targets, so that targets of one owner which do not answer leave threads for those
//! of others.
//!
//! The owner is the user that a process runs as. Root's processes are told apart by container: what runs as root in one of
//! them need not be trusted outside of it. A user can name control groups, and so containers, at will; those of one user
//! count together.

use std::{collections::BTreeMap, fmt, sync::Arc};

use joular_data::events::ProcessInfo;

/// Threads at the same time, most of which must be stuck then.
pub const MAX_THREADS: usize = 256;
/// Threads that may wait for targets of one owner at the same time, where nobody else has any.
pub const MOST_OF_ONE: usize = 32;
/// An owner has at most this part of what others have left. So those of many owners that do not answer leave some, too:
/// eight owners take 165 threads together, twenty 235.
const PART_OF_FREE: usize = MAX_THREADS / MOST_OF_ONE;
/// Owners that are told of between two looks.
const MOST_REFUSED: usize = 8;

/// Whose memory or files are waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    user: u32,
    container: Option<Arc<str>>,
}

impl Owner {
    pub fn new(user: u32, container: Option<&str>) -> Self {
        Self { user, container: container.filter(|_| user == 0).map(Into::into) }
    }

    pub fn of(process: &ProcessInfo) -> Self {
        Self::new(process.uid, process.container.as_ref().map(|id| id.raw()))
    }
}

/// As a notice names it.
impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.container, self.user) {
            (Some(id), _) => write!(out, "root in container {}", id.get(..12).unwrap_or(id).escape_debug()),
            (None, 0) => out.write_str("root"),
            (None, user) => write!(out, "user {user}"),
        }
    }
}

/// Who has how many threads.
#[derive(Debug)]
pub struct Quota {
    shares: BTreeMap<Owner, Share>,
    /// Sum of all shares.
    taken: usize,
    /// Who was refused one and was not told of yet, and how many they had.
    refused: Vec<(Owner, usize)>,
}

#[derive(Debug, Default)]
struct Share {
    threads: usize,
    /// Whether it was refused one since it had none.
    is_refused: bool,
}

impl Quota {
    /// Nobody has any.
    pub const EMPTY: Self = Self { shares: BTreeMap::new(), taken: 0, refused: Vec::new() };

    /// Whether the owner may have one more thread.
    pub fn has_room(&self, owner: &Owner) -> bool {
        self.has_room_beside(self.shares.get(owner).map_or(0, |share| share.threads))
    }

    /// Whether somebody who has so many may have one more: each may have one.
    fn has_room_beside(&self, own: usize) -> bool {
        let left = MAX_THREADS.saturating_sub(self.taken.saturating_sub(own));
        own < (left / PART_OF_FREE).max(1)
    }

    /// Takes one thread more for the owner, if that is possible.
    pub fn take(&mut self, owner: &Owner) -> bool {
        let has_room = self.has_room(owner);
        let share = self.shares.entry(owner.clone()).or_default();
        if has_room {
            share.threads += 1;
            self.taken += 1;
        } else if !std::mem::replace(&mut share.is_refused, true) && self.refused.len() < MOST_REFUSED {
            self.refused.push((owner.clone(), share.threads));
        }
        has_room
    }

    /// Gives one back.
    pub fn give_back(&mut self, owner: &Owner) {
        if let Some(share) = self.shares.get_mut(owner) {
            self.taken = self.taken.saturating_sub(share.threads.min(1));
            share.threads = share.threads.saturating_sub(1);
            if share.threads == 0 {
                self.shares.remove(owner);
            }
        }
    }

    /// Who was refused one since the last call, each once until none of theirs is left.
    pub fn take_refused(&mut self) -> Vec<(Owner, usize)> {
        std::mem::take(&mut self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_containers_of_root_are_told_apart() {
        let of = Owner::new;
        for (a, b, are_one) in [
            (of(1000, None), of(1000, None), true),
            (of(1000, None), of(1001, None), false),
            (of(1000, Some("made up")), of(1000, Some("another")), true),
            (of(0, Some("a")), of(0, Some("b")), false),
            (of(0, Some("a")), of(0, None), false),
            (of(0, None), of(0, None), true),
        ] {
            assert_eq!(a == b, are_one, "{a} {b}");
        }
        assert_eq!(of(1000, Some("x")).to_string(), "user 1000");
        assert_eq!(of(0, Some("0123456789abcdef")).to_string(), "root in container 0123456789ab");
        assert_eq!(of(0, Some("\u{1b}[2J")).to_string(), "root in container \\u{1b}[2J");
    }

    #[test]
    fn one_owner_gets_no_more_than_a_part() {
        let mut quota = Quota::EMPTY;
        let hostile = Owner::new(1000, None);
        let taken = (0..256).filter(|_| quota.take(&hostile)).count();
        assert_eq!(taken, MOST_OF_ONE);
        assert_eq!((quota.take_refused(), quota.take_refused()), (vec![(hostile.clone(), MOST_OF_ONE)], vec![]));
        quota.give_back(&hostile);
        assert!(quota.has_room(&hostile) && quota.take(&hostile) && !quota.take(&hostile));
        (0..MOST_OF_ONE * 2).for_each(|_| quota.give_back(&hostile));
        assert!(quota.shares.is_empty() && quota.taken == 0, "nothing is kept of who has none");
    }

    #[test]
    fn many_owners_leave_threads_for_one_more() {
        let mut quota = Quota::EMPTY;
        let mut take = |user| (0..256).filter(|_| quota.take(&Owner::new(user, None))).count();
        let taken: Vec<usize> = (1000..1020).map(&mut take).collect();
        assert_eq!(taken[..4], [32, 28, 24, 21]);
        assert_eq!((taken[..8].iter().sum(), taken.iter().sum()), (165, 235));
        assert!(take(1020) >= 1);
        assert_eq!(quota.take_refused().len(), MOST_REFUSED, "only some are named");
        // The first one has more than it would get now.
        quota.give_back(&Owner::new(1000, None));
        assert!(!quota.has_room(&Owner::new(1000, None)));
    }
}
