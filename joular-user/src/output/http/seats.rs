//! Gives every new connection a place, and closes another one for it if there is none left.
//!
//! Otherwise clients that send nothing, or too slowly, would keep all places, and a good client would get none. If the address
//! has too many connections, its own oldest one is closed. If all places are taken, the oldest connection is closed whose
//! client has not shown that it may read what is served.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::AbortHandle;

/// The places, which connections share.
#[derive(Clone, Debug)]
pub struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug)]
struct Taken {
    /// Connections at a time.
    most: usize,
    /// Connections of an address at a time.
    most_of_address: usize,
    next: u64,
    /// By number, so the oldest is the first.
    seats: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    address: IpAddr,
    is_trusted: bool,
    /// `None` until its task has begun.
    task: Option<AbortHandle>,
}

/// A connection's place; free when dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Seats,
    number: u64,
}

impl Seats {
    pub fn new(most: usize, most_of_address: usize) -> Self {
        Self(Arc::new(Mutex::new(Taken { most, most_of_address, next: 0, seats: BTreeMap::new() })))
    }

    /// A place for a connection from `address`. Another one may be ended for it.
    pub fn take(&self, address: IpAddr) -> Seat {
        let mut taken = self.taken();
        if let Some(evicted) = taken.evicted(address).and_then(|number| taken.seats.remove(&number))
            && let Some(task) = evicted.task
        {
            task.abort();
        }
        let number = taken.next;
        taken.next += 1;
        taken.seats.insert(number, Held { address, is_trusted: false, task: None });
        Seat { seats: self.clone(), number }
    }

    /// Says which task serves the connection of a place.
    pub fn serve(&self, number: u64, task: AbortHandle) {
        if let Some(held) = self.taken().seats.get_mut(&number) {
            held.task = Some(task);
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Which connection is closed for one from `address`, if no place is left for it.
    fn evicted(&self, address: IpAddr) -> Option<u64> {
        let of_address = || self.seats.iter().filter(|(_, held)| held.address == address);
        let oldest = |of: &mut dyn Iterator<Item = (&u64, &Held)>| {
            // Trusted ones come after all others.
            of.min_by_key(|(number, held)| (held.is_trusted, **number)).map(|(number, _)| *number)
        };
        if of_address().count() >= self.most_of_address {
            return oldest(&mut of_address());
        }
        if self.seats.len() >= self.most { oldest(&mut self.seats.iter()) } else { None }
    }
}

impl Seat {
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The client has shown that it may read what is served.
    pub fn trust(&self) {
        if let Some(held) = self.seats.taken().seats.get_mut(&self.number) {
            held.is_trusted = true;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().seats.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64;
    const MOST_OF_ADDRESS: usize = 8;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn has(seat: &Seat) -> bool {
        seat.seats.taken().seats.contains_key(&seat.number)
    }

    #[test]
    fn an_address_with_too_many_loses_its_own_oldest() {
        let seats = Seats::new(MOST, MOST_OF_ADDRESS);
        let other = seats.take(address(1));
        let own: Vec<Seat> = (0..MOST_OF_ADDRESS).map(|_| seats.take(address(2))).collect();
        own[0].trust();
        let more = seats.take(address(2));
        assert!(has(&other) && has(&own[0]) && !has(&own[1]) && has(&own[2]) && has(&more));
        drop(own);
        assert_eq!(seats.taken().seats.len(), 2);
    }

    #[test]
    fn when_all_are_taken_the_oldest_that_is_not_trusted_goes() {
        let seats = Seats::new(MOST, MOST_OF_ADDRESS);
        let all: Vec<Seat> = (0..u8::try_from(MOST).unwrap()).map(|last| seats.take(address(last))).collect();
        all[0].trust();
        let more = seats.take(address(200));
        assert!(has(&all[0]) && !has(&all[1]) && has(&all[2]) && has(&more));
        all.iter().for_each(Seat::trust);
        more.trust();
        let last = seats.take(address(201));
        assert!(!has(&all[0]) && has(&last), "all are trusted");
        assert_eq!(seats.taken().seats.len(), MOST);
    }
}
