//! Keeps values by key, as long as they are asked for and there is room.
//!
//! There are two halves. A value that is asked for moves to the young half. When that is full, or after some windows, it
//! becomes the old half, and values that were not asked for since are forgotten. So a JVM that makes new code all the
//! time costs no more memory than one that stays with its code.

use std::{collections::HashMap, hash::Hash, mem};

/// Windows until a half is old: what is asked for once in so many windows is kept.
const MAX_WINDOWS: u32 = 32;

/// The size of a value, in any unit.
pub trait Measured {
    fn size(&self) -> usize;
}

#[derive(Debug)]
pub struct Recent<K, V> {
    young: HashMap<K, V>,
    young_size: usize,
    /// Since the young half was empty.
    windows: u32,
    old: HashMap<K, V>,
    /// Of each half.
    max_size: usize,
}

impl<K: Eq + Hash + Copy, V: Measured> Recent<K, V> {
    pub fn new(max_size: usize) -> Self {
        Self { young: HashMap::new(), young_size: 0, windows: 0, old: HashMap::new(), max_size }
    }

    pub fn get(&mut self, key: K) -> Option<&V> {
        if !self.young.contains_key(&key) {
            let known = self.old.remove(&key)?;
            self.put(key, known);
        }
        self.young.get(&key)
    }

    pub fn put(&mut self, key: K, value: V) {
        if self.young_size >= self.max_size {
            self.renew();
        }
        self.old.remove(&key);
        self.young_size += value.size();
        self.young_size -= self.young.insert(key, value).map_or(0, |replaced| replaced.size());
    }

    pub fn take(&mut self, key: K) -> Option<V> {
        let Some(known) = self.young.remove(&key) else { return self.old.remove(&key) };
        self.young_size -= known.size();
        Some(known)
    }

    pub fn end_window(&mut self) {
        self.windows += 1;
        if self.windows >= MAX_WINDOWS {
            self.renew();
        }
    }

    pub fn retain(&mut self, keep: impl Fn(K) -> bool) {
        self.young.retain(|&key, _| keep(key));
        self.old.retain(|&key, _| keep(key));
        self.young_size = self.young.values().map(V::size).sum();
    }

    fn renew(&mut self) {
        self.old = mem::take(&mut self.young);
        (self.young_size, self.windows) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Measured for usize {
        fn size(&self) -> usize {
            *self
        }
    }

    #[test]
    fn what_is_asked_for_stays_however_much_else_comes() {
        let mut recent = Recent::new(100);
        recent.put(0, 1);
        for key in 1..1000 {
            recent.put(key, 1);
            assert!(key % 50 != 0 || recent.get(0).is_some());
        }
        assert!(recent.get(0).is_some() && recent.get(1).is_none());
    }

    #[test]
    fn what_is_not_asked_for_is_forgotten_after_some_windows() {
        let mut recent = Recent::new(100);
        recent.put("used", 1);
        recent.put("unused", 1);
        for _ in 0..2 * MAX_WINDOWS {
            assert!(recent.get("used").is_some());
            recent.end_window();
        }
        assert!(recent.get("used").is_some() && recent.get("unused").is_none());
    }

    proptest! {
        #[test]
        fn sizes_are_bounded_and_exact(
            steps in proptest::collection::vec((0_u8..6, 0_u8..20, 1_usize..9), 0..200),
        ) {
            let mut recent = Recent::new(40);
            for (step, key, size) in steps {
                match step {
                    0..=2 => recent.put(key, size),
                    3 => prop_assert!(recent.take(key).is_none() || recent.get(key).is_none()),
                    4 => recent.retain(|kept| kept != key),
                    _ => recent.end_window(),
                }
                let [young, old] = [&recent.young, &recent.old].map(|half| half.values().sum::<usize>());
                prop_assert_eq!(recent.young_size, young);
                prop_assert!(young < 40 + 9 && old < 40 + 9);
                prop_assert!(recent.young.keys().all(|key| !recent.old.contains_key(key)));
            }
        }
    }
}
