//! Makes names of C++ and Rust functions readable, and of Java methods in native images.
//!
//! Only names that say that they are mangled are touched. The grammar of C++ names also takes a bare
//! type for a whole name, so a C function `a` would be called `signed char`.

use std::fmt::{self, Write as _};

use crate::bounds::Bound;

/// Longest readable name. Mangled names refer back to their own parts, so a short one of a hostile file
/// can stand for a very long one.
const MAX_BYTES: usize = 4096;

pub static NAMES: Bound = Bound::new(
    "name_not_demangled",
    MAX_BYTES as u64,
    "bytes of the readable name of a native function",
    "it keeps its mangled name",
);

/// The readable form of a symbol's name; the name itself if it is not mangled, or too long.
pub fn demangled(name: &str) -> String {
    if !["_Z", "_R", "__Z", "___Z"].iter().any(|prefix| name.starts_with(prefix)) {
        return name.to_owned();
    }
    if let Some(method) = java_method(name) {
        return method;
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

/// A method of a GraalVM native image with debug info: `_ZN16java.lang.String8hashCodeEJiv` is
/// `java.lang.String.hashCode`. GraalVM writes names as in C++, but with dots in them, and marks the type
/// that is returned with a J, which no C++ compiler does. Before the class there may be its loader.
fn java_method(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("_ZN")?;
    let mut parts = Vec::new();
    while !rest.starts_with('E') {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (length, behind) = rest.split_at_checked(digits)?;
        let (part, behind) = behind.split_at_checked(length.parse().ok()?)?;
        parts.push(part);
        rest = behind;
    }
    let (class, method) = match parts[..] {
        [class, method] | [_, class, method] => (class, method),
        _ => return None,
    };
    if rest.starts_with("EJ") {
        return Some(format!("{class}.{method}"));
    }
    // A constructor returns nothing, and has its class's name.
    let (_, simple) = class.rsplit_once('.')?;
    (method == simple).then(|| format!("{class}.<init>"))
}

/// Fails instead of growing too long.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_BYTES {
            NAMES.cut(1);
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

    #[test]
    fn methods_of_native_images_have_the_names_of_java() {
        for (name, expected) in [
            ("_ZN16java.lang.String8hashCodeEJiv", "java.lang.String.hashCode"),
            ("_ZN16java.lang.String9compareToEJiPS_", "java.lang.String.compareTo"),
            ("_ZN5Hello4mainEJvP18java.lang.String[]", "Hello.main"),
            ("_ZN14AppLoader_123410org.my.Foo6doAFooEJvv", "org.my.Foo.doAFoo"),
            ("_ZN16java.lang.String6StringEP6char[]", "java.lang.String.<init>"),
            // Not certain: a name of GraalVM's own with a reference, and C++.
            ("_ZN3FooS_EJvv", "_ZN3FooS_EJvv"),
            ("_ZN2os5abortEv", "os::abort()"),
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
        fn no_name_panics(tail in ".{0,60}", prefix in proptest::sample::select(vec!["", "_Z", "_ZN", "_ZN1a1b", "_R"])) {
            let _ = demangled(&format!("{prefix}{tail}"));
        }
    }
}
