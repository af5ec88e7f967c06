//! Says how names of Java look in a JVM's own symbols, which a recording has.

use std::borrow::Cow;

/// A class as the JVM calls it: slashes between packages, `[B` for `byte[]`. The number of a hidden class stands behind
/// a plus sign (`Shop$$Lambda+0x1`), so that no slash is taken for a package.
pub(super) fn class(name: &str) -> Cow<'_, str> {
    let element = name.trim_end_matches("[]");
    let dimensions = (name.len() - element.len()) / 2;
    if dimensions == 0 {
        return internal(name);
    }
    let element = match primitive(element) {
        Some(letter) => letter.into(),
        None => format!("L{};", internal(element)),
    };
    format!("{}{element}", "[".repeat(dimensions)).into()
}

fn internal(name: &str) -> Cow<'_, str> {
    if name.contains(['.', '/']) { name.replace('/', "+").replace('.', "/").into() } else { name.into() }
}

/// The package of a class, as [`class`] gives it.
pub(super) fn package(class: &str) -> Option<&str> {
    let element = class.trim_start_matches('[');
    let name = if element.len() < class.len() { element.strip_prefix('L').unwrap_or(element) } else { class };
    name.rsplit_once('/').map(|(package, _)| package)
}

const fn primitive(name: &str) -> Option<&'static str> {
    Some(match name.as_bytes() {
        b"boolean" => "Z",
        b"byte" => "B",
        b"char" => "C",
        b"double" => "D",
        b"float" => "F",
        b"int" => "I",
        b"long" => "J",
        b"short" => "S",
        _ => return None,
    })
}

/// What stands for a signature that is not known. Readers expect one.
pub(super) const NO_DESCRIPTOR: &str = "()V";

/// The descriptor of a method. Readers take it apart and trust it, so a text that is not one is left out.
pub(super) fn descriptor(signature: &str) -> &str {
    if is_descriptor(signature) { signature } else { NO_DESCRIPTOR }
}

fn is_descriptor(text: &str) -> bool {
    let Some((mut parameters, result)) = text.strip_prefix('(').and_then(|rest| rest.rsplit_once(')')) else {
        return false;
    };
    while !parameters.is_empty() {
        let Some(rest) = after_type(parameters) else { return false };
        parameters = rest;
    }
    result == "V" || after_type(result).is_some_and(str::is_empty)
}

/// What follows the first type of a descriptor.
fn after_type(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('[').chars();
    match rest.next()? {
        'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' | 'Z' => Some(rest.as_str()),
        'L' => rest.as_str().split_once(';').filter(|(class, _)| !class.is_empty()).map(|(_, rest)| rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_are_called_as_in_the_jvm() {
        for (name, expected, of_package) in [
            ("", "", None),
            ("Main", "Main", None),
            ("java.util.HashMap$Node", "java/util/HashMap$Node", Some("java/util")),
            ("Shop$$Lambda/0x00007f1", "Shop$$Lambda+0x00007f1", None),
            ("com.acme.Shop$$Lambda/0x1", "com/acme/Shop$$Lambda+0x1", Some("com/acme")),
            ("byte[]", "[B", None),
            ("int[][]", "[[I", None),
            ("java.lang.String[]", "[Ljava/lang/String;", Some("java/lang")),
        ] {
            assert_eq!(class(name), expected);
            assert_eq!(package(&class(name)), of_package, "{name}");
        }
    }

    #[test]
    fn only_what_readers_can_take_apart_is_a_descriptor() {
        for signature in ["()V", "(I)I", "(ILjava/lang/String;[[J)[Ljava/lang/Object;", "()Lscript/Script;"] {
            assert_eq!(descriptor(signature), signature);
        }
        for text in
            ["", "V", "()", "(", ")", ")(", "(I", "I)V", "(Ljava/lang/String)V", "(L;)V", "(X)V", "()VV", "([)V"]
        {
            assert_eq!(descriptor(text), NO_DESCRIPTOR, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name in ".*") {
            let class = class(&name);
            package(&class);
            prop_assert!(is_descriptor(descriptor(&name)));
        }
    }
}
