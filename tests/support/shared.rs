//! Keeps what several tests look at. The first of them that runs makes it; it is dropped, with its
//! directories and processes, when the test program ends.

use std::{
    any::Any,
    sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak},
};

use anyhow::{Context as _, Error, Result};

/// Keeps the shared values until the end: statics are never dropped.
static KEPT: Mutex<Vec<Arc<dyn Any + Send + Sync>>> = Mutex::new(Vec::new());

/// A value to be made once, for a static.
pub struct Shared<T> {
    value: OnceLock<Result<Weak<T>, String>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Shared<T> {
    pub const fn new() -> Self {
        Self { value: OnceLock::new() }
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// The value, or why it could not be made, which is the same for every test.
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let value = self.value.get_or_init(|| make().map(keep).map_err(|error| format!("{error:?}")));
        let value = value.as_ref().map_err(|error| Error::msg(error.clone()))?;
        value.upgrade().context("the tests are over")
    }
}

fn keep<T: Send + Sync + 'static>(value: T) -> Weak<T> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: a plain function without arguments. If there is no room to note it, the
        // directories stay.
        let _refused = unsafe { libc::atexit(give_up) };
    });
    let value = Arc::new(value);
    let weak = Arc::downgrade(&value);
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    weak
}

extern "C" fn give_up() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_value_is_made_once_and_so_is_a_failure() {
        static VALUE: Shared<String> = Shared::new();
        static FAILURE: Shared<String> = Shared::new();
        let made = AtomicUsize::new(0);
        for _ in 0..2 {
            let value = VALUE.get(|| Ok(format!("made {}", made.fetch_add(1, Ordering::Relaxed))));
            assert_eq!(*value.unwrap(), "made 0");
            let error = FAILURE.get(|| anyhow::bail!("failed {}", made.fetch_add(1, Ordering::Relaxed))).unwrap_err();
            assert!(error.to_string().starts_with("failed 1"), "{error}");
        }
    }
}
