//! Runs what libraries do with bytes that anybody may have made. A library that trusts a length in them may panic: here
//! that is an error like any other.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
};

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `run` gives; `None` if it panics. Do not use values that `run` was changing when it panicked.
pub fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    let before = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_CAUGHT.set(before);
    result.ok()
}

/// Whether this thread would catch a panic now.
pub fn is_catching() -> bool {
    IS_CAUGHT.get()
}

/// Has the program say nothing of panics that are caught.
pub fn hush() {
    let say = take_hook();
    set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            say(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_result() {
        hush();
        assert_eq!(caught(|| 7), Some(7));
        assert_eq!(caught(|| [1, 2, 3][std::hint::black_box(3)]), None);
        assert!(!IS_CAUGHT.get(), "later panics are said");
    }
}
