//! Keeps answers that may be asked for again, as long as what they were made of is the same and they have room.

use std::collections::{BTreeMap, HashMap};

use super::{answer::Answer, identity::Identity};

/// Answers by what was asked, each of one state of the data set.
#[derive(Debug)]
pub struct Cache {
    most_bytes: u64,
    bytes: u64,
    answers: HashMap<String, Kept>,
    /// When each was used, so the one that was not used for longest is the first.
    order: BTreeMap<u64, String>,
    next: u64,
}

#[derive(Debug)]
struct Kept {
    identity: Identity,
    answer: Answer,
    used: u64,
}

impl Cache {
    pub fn new(most_bytes: u64) -> Self {
        Self { most_bytes, bytes: 0, answers: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Bytes of the answers that are kept.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was answered to this question about the data set as it is.
    pub fn get(&mut self, identity: Identity, key: &str) -> Option<Answer> {
        let kept = self.answers.get_mut(key).filter(|kept| kept.identity == identity)?;
        self.order.remove(&kept.used);
        kept.used = self.next;
        self.order.insert(self.next, key.to_owned());
        self.next += 1;
        Some(kept.answer.clone())
    }

    /// Keeps an answer instead of one to the same question; those that were not used for longest go.
    pub fn put(&mut self, identity: Identity, key: &str, answer: &Answer) {
        self.remove(key);
        let size = size(key, answer);
        if size > self.most_bytes {
            return;
        }
        while self.bytes + size > self.most_bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
        self.bytes += size;
        self.answers.insert(key.to_owned(), Kept { identity, answer: answer.clone(), used: self.next });
        self.order.insert(self.next, key.to_owned());
        self.next += 1;
    }

    fn remove(&mut self, key: &str) {
        if let Some(gone) = self.answers.remove(key) {
            self.order.remove(&gone.used);
            self.bytes = self.bytes.saturating_sub(size(key, &gone.answer));
        }
    }
}

/// With what keeping it takes, roughly.
fn size(key: &str, answer: &Answer) -> u64 {
    u64::try_from(answer.body.len() + 2 * key.len()).unwrap_or(u64::MAX).saturating_add(200)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Identity = Identity::of_test(1);

    fn answer(bytes: usize) -> Answer {
        Answer { kind: "text/plain", body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_room_is_never_exceeded() {
        let mut cache = Cache::new(3 * size("a", &answer(1000)));
        for key in ["a", "b", "c"] {
            cache.put(NOW, key, &answer(1000));
        }
        assert!(cache.get(NOW, "a").is_some());
        cache.put(NOW, "d", &answer(1000));
        let kept = ["a", "b", "c", "d"].map(|key| cache.get(NOW, key).is_some());
        assert_eq!(kept, [true, false, true, true]);
        cache.put(NOW, "e", &answer(100_000));
        assert!(cache.get(NOW, "e").is_none() && cache.get(NOW, "d").is_some());
        cache.put(NOW, "f", &answer(2500));
        assert_eq!(["a", "c", "d", "f"].map(|key| cache.get(NOW, key).is_some()), [false, false, false, true]);
        assert!(cache.bytes() <= cache.most_bytes);
    }

    #[test]
    fn an_answer_about_another_state_of_the_data_set_is_never_given() {
        let mut cache = Cache::new(10_000);
        cache.put(NOW, "a", &answer(10));
        assert!(cache.get(Identity::of_test(2), "a").is_none());
        assert_eq!(cache.get(NOW, "a"), Some(answer(10)));
        cache.put(Identity::of_test(2), "a", &answer(20));
        assert_eq!(cache.get(Identity::of_test(2), "a"), Some(answer(20)));
        assert!(cache.get(NOW, "a").is_none() && cache.bytes() < 500);
        // Others may be about another part, which is as it was.
        cache.put(NOW, "b", &answer(30));
        assert!(cache.get(NOW, "b").is_some() && cache.get(Identity::of_test(2), "a").is_some());
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut cache = Cache::new(0);
        cache.put(NOW, "a", &answer(0));
        assert_eq!((cache.get(NOW, "a"), cache.bytes()), (None, 0));
    }
}
