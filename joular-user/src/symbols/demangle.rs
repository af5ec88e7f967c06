//! Makes names of C++ and Rust functions readable.
//!
//! Only names that say that they are mangled are touched. The grammar of C++ names also takes a bare
//! type for a whole name, so a C function `a` would be called `signed char`.

use std::fmt::{self, Write as _};

/// Longest readable name. Mangled names refer back to their own parts, so a short one of a hostile file
/// can stand for a very long one.
const MAX_BYTES: usize = 4096;

/// The readable form of a symbol's name; the name itself if it is not mangled, or too long.
pub fn demangled(name: &str) -> String {
    if !["_Z", "_R", "__Z", "___Z"].iter().any(|prefix| name.starts_with(prefix)) {
        return name.to_owned();
    }
    let mut readable = Bounded(String::new());
    // Rust first: its older names are C++ names with a hash at the end, which `#` leaves out.
    let written = match (rustc_demangle::try_demangle(name), cpp_demangle::Symbol::new(name)) {
        (Ok(rust), _) => write!(readable, "{rust:#}"),
        (Err(_), Ok(cpp)) => cpp.structured_demangle(&mut readable, &cpp_demangle::DemangleOptions::default()),
        (Err(_), Err(_)) => Err(fmt::Error),
    };
    if written.is_ok() { readable.0 } else { name.to_owned() }
}

/// Fails instead of growing too long.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_c_functions_stay_what_they_are() {
        for name in ["a", "b", "i", "v", "main", "qsort_r", "St", "Dn", "_start", "__libc_start_main", "", "_Z", "_R"] {
            assert_eq!(demangled(name), name);
        }
    }

    #[test]
    fn mangled_names_become_readable() {
        for (name, expected) in [
            ("_ZN2os13javaTimeNanosEv", "os::javaTimeNanos()"),
            ("_ZN7Monitor4waitEm", "Monitor::wait(unsigned long)"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
        ] {
            assert_eq!(demangled(name), expected, "{name}");
        }
    }

    /// Each argument is twice the one before: 2⁶⁰ times `int` at the end.
    #[test]
    fn a_short_name_cannot_stand_for_an_endless_one() {
        let mut name = "_Z1fSt4pairIiiE".to_owned();
        for back in 0..60_u32 {
            let reference = |back: u32| char::from_digit(back % 36, 36).map(|digit| digit.to_ascii_uppercase());
            name += &format!("St4pairIS{0}_S{0}_E", reference(back).unwrap());
        }
        assert!(demangled(&name).len() <= MAX_BYTES);
    }

    proptest::proptest! {
        #[test]
        fn no_name_panics(tail in ".{0,60}", prefix in proptest::sample::select(vec!["", "_Z", "_ZN", "_R"])) {
            let _ = demangled(&format!("{prefix}{tail}"));
        }
    }
}
