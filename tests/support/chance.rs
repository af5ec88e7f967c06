//! Repeats a test that chance or a busy machine can fail: once, with fresh data, and more of it where the test decides
//! how much there is.
//!
//! Such a test fails only if it fails both times; what it said the first time is shown either way. A real error
//! fails twice, and more data make it plainer. CONTRIBUTING.md says how often chance alone fails a run of all tests.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use anyhow::{Context as _, Result, anyhow};

use crate::notes;

/// How many times as much the second look sees.
pub const MORE: u32 = 3;

/// Runs a test with one measure of data and, if that fails, with [`MORE`]. The test is told how many measures.
pub fn repeat_once(test: impl Fn(u32) -> Result<()>) -> Result<()> {
    let Err(first) = look(&test, 1) else { return Ok(()) };
    let thread = thread::current();
    let name = thread.name().unwrap_or("a test");
    notes::figure(&format!("{name}: repeated with {MORE} times the data, because: {first:#}"));
    eprintln!("repeated with {MORE} times the data, because: {first:#}");
    look(&test, MORE).with_context(|| format!("it failed twice, the first time because: {first:#}"))
}

/// A panic is a failure like others.
fn look(test: &impl Fn(u32) -> Result<()>, measures: u32) -> Result<()> {
    catch_unwind(AssertUnwindSafe(|| test(measures))).unwrap_or_else(|panic| Err(anyhow!("{}", message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::ensure;

    use super::*;

    fn looks(fails: impl Fn(u32) -> bool) -> (Vec<u32>, Result<()>) {
        let looks = RefCell::new(Vec::new());
        let result = repeat_once(|measures| {
            looks.borrow_mut().push(measures);
            ensure!(!fails(measures), "{measures} are off");
            Ok(())
        });
        (looks.into_inner(), result)
    }

    #[test]
    fn a_test_that_passes_is_not_repeated() {
        let (looks, result) = looks(|_| false);
        assert_eq!((looks, result.is_ok()), (vec![1], true));
    }

    #[test]
    fn a_test_that_fails_once_is_repeated_with_more_data() {
        let (looks, result) = looks(|measures| measures == 1);
        assert_eq!((looks, result.is_ok()), (vec![1, MORE], true));
    }

    #[test]
    fn a_test_that_fails_twice_says_why_both_times() {
        let (looks, result) = looks(|_| true);
        assert_eq!(looks, [1, MORE]);
        let said = format!("{:#}", result.unwrap_err());
        assert!(said.contains("1 are off") && said.contains("3 are off"), "{said}");
    }

    #[test]
    fn a_panic_is_a_failure() {
        let result = repeat_once(|measures| {
            assert!(measures > 3, "{measures} of more than three");
            Ok(())
        });
        assert!(format!("{:#}", result.unwrap_err()).contains("1 of more than three"));
    }
}
