//! Interpreted methods that were seen. Their words are addresses, and when a class is
//! unloaded its memory may become another method's, which would be shown under the
//! old name.
//!
//! So what an address leads to is noted when it is first asked for, which is right
//! after the first sample, and looked at once more when the window ends. If another
//! method stands there by then, a sample could be either's: [`Now::Another`]. If
//! nothing does that is a method, all samples are the old one's.

use std::collections::HashMap;

use super::method::Identity;

/// Methods that are remembered: a program under the interpreter has some thousands.
const MAX_SEEN: usize = 1 << 16;

/// What stands at a method's address when the window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// What was seen there first.
    Same,
    /// No method: what was seen there is what ran.
    Gone,
    Another,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Seen {
    identities: HashMap<u64, Identity>,
    /// What was found at the end of this window; `None` during it.
    checked: Option<HashMap<u64, Now>>,
}

impl Seen {
    pub fn note(&mut self, method: u64, identity: Identity) {
        if self.identities.len() < MAX_SEEN || self.identities.contains_key(&method) {
            self.identities.insert(method, identity);
        }
    }

    /// From now on until [`Self::end_window`], names are for samples of the window
    /// that is over.
    pub fn begin_check(&mut self) {
        self.checked = Some(HashMap::new());
    }

    /// Whether the method is still what it was; `read` says what it is now, `None` if
    /// that is no method.
    pub fn check(&mut self, method: u64, read: impl FnOnce() -> Option<Identity>) -> Now {
        let (Some(checked), Some(known)) = (&mut self.checked, self.identities.get(&method)) else { return Now::Same };
        *checked.entry(method).or_insert_with(|| match read() {
            Some(now) if now == *known => Now::Same,
            Some(_) => Now::Another,
            None => Now::Gone,
        })
    }

    /// Forgets what is no longer there; whether memory was used again.
    pub fn end_window(&mut self) -> Changes {
        let checked = self.checked.take().unwrap_or_default();
        let mut changes = Changes::default();
        for (method, now) in checked.into_iter().filter(|(_, now)| *now != Now::Same) {
            self.identities.remove(&method);
            changes.any = true;
            changes.reused |= now == Now::Another;
        }
        changes
    }
}

/// What a window's end has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// A method is gone or another one.
    pub any: bool,
    /// Another one.
    pub reused: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(of: u64) -> Identity {
        Identity::of_test(of)
    }

    #[test]
    fn a_method_is_looked_at_when_its_window_ends() {
        for (now, expected, changes) in [
            (Some(identity(1)), Now::Same, Changes::default()),
            (Some(identity(2)), Now::Another, Changes { any: true, reused: true }),
            (None, Now::Gone, Changes { any: true, reused: false }),
        ] {
            let mut seen = Seen::default();
            seen.note(8, identity(1));
            assert_eq!(seen.check(8, || panic!("the window is not over")), Now::Same);
            seen.begin_check();
            assert_eq!(seen.check(8, || now), expected);
            assert_eq!(seen.check(8, || panic!("once is enough")), expected);
            assert_eq!(seen.check(16, || panic!("it is not known")), Now::Same);
            assert_eq!(seen.end_window(), changes);
            // What was another one is new.
            seen.begin_check();
            let again = seen.check(8, || Some(identity(2)));
            assert_eq!(again, if expected == Now::Same { Now::Another } else { Now::Same });
        }
    }

    #[test]
    fn the_number_of_methods_is_bounded() {
        let mut seen = Seen::default();
        (0..2 * MAX_SEEN as u64).for_each(|method| seen.note(method * 8, identity(1)));
        assert_eq!(seen.identities.len(), MAX_SEEN);
    }
}
