//! Classes that a program generates while it runs belong to families: Groovy's `Script12` and `Script13` are both of the
//! family `Script`. A family has the name of its classes without the number, hash or address that tells them apart.
//!
//! Such a number differs in every run, and a program that generates a class per script, query or request has hundreds of
//! them, each with a thousandth of the energy. So tables, graphs, metrics and comparisons name families, and a data set
//! has the exact names.

use std::borrow::Cow;

/// Classes of these families have a number at the end.
const NUMBERED: [&str; 4] = [
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    // Spark SQL, for each stage of a query that is compiled as a whole.
    "GeneratedIteratorForCodegenStage",
];

/// Ends of segments, parted by dollars, behind which a number or a hash follows in a segment of its own:
/// `Shop$$EnhancerBySpringCGLIB$$1a2b3c4d`.
const GENERATORS: [&str; 5] = ["CGLIB", "ByteBuddy", "HibernateProxy", "MockitoMock", "auxiliary"];

/// Classes of Javassist have a number or a hash behind these.
const JAVASSIST: [&str; 2] = ["_jvst", "_javassist"];

/// The family of a class, which is its own name if a person wrote it. Classes of arrays have their brackets behind them.
pub fn family(class: &str) -> Cow<'_, str> {
    // No other name is changed, and most have none of these.
    if !class.bytes().any(|byte| byte == b'$' || byte.is_ascii_digit()) {
        return Cow::Borrowed(class);
    }
    let element = class.trim_end_matches("[]");
    let brackets = &class[element.len()..];
    let name = without_address(element);
    let (package, simple) = name.rsplit_once('.').map_or(("", name), |(package, simple)| (package, simple));
    let dot = if name.len() > simple.len() { "." } else { "" };
    let family = format!("{}{dot}{}{brackets}", family_of_package(package), family_of_simple(package, simple));
    if family == class { Cow::Borrowed(class) } else { Cow::Owned(family) }
}

/// A JVM signature with the families of its classes.
pub fn families(signature: &str) -> Cow<'_, str> {
    if !signature.bytes().any(|byte| byte == b'$' || byte.is_ascii_digit()) {
        return Cow::Borrowed(signature);
    }
    let part = |part: &str| match part.split_once('L') {
        Some((before, class)) if before.bytes().all(|byte| b"()[BCDFIJSZV".contains(&byte)) => {
            format!("{before}L{}", family(&class.replace('/', ".")).replace('.', "/"))
        }
        _ => part.to_owned(),
    };
    Cow::Owned(signature.split(';').map(part).collect::<Vec<_>>().join(";"))
}

/// Hidden classes: `/0x…`, or `+0x…` and `.0x…` as some tools and releases write it. Before there were hidden classes the
/// number of the class loaded follows: `$$Lambda$14/1826771953`.
fn without_address(class: &str) -> &str {
    let is_address = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let before = |separator: &str, is_left_out: &dyn Fn(&str) -> bool| {
        class.rsplit_once(separator).filter(|(_, rest)| is_left_out(rest)).map(|(name, _)| name)
    };
    let addresses = ["/0x", "+0x", ".0x"].into_iter().find_map(|separator| before(separator, &is_address));
    // One may be in another's name.
    addresses.or_else(|| before("/", &is_number)).map_or(class, without_address)
}

/// `jdk.proxy2` of proxies, and `$line12` of Scala's shell.
fn family_of_package(package: &str) -> Cow<'_, str> {
    let Some((prefix, rest)) = ["jdk.proxy", "$line"].into_iter().find_map(|prefix| {
        let rest = package.strip_prefix(prefix)?.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.is_empty() || rest.starts_with('.')).then_some((prefix, rest))
    }) else {
        return Cow::Borrowed(package);
    };
    Cow::Owned(format!("{prefix}{rest}"))
}

fn family_of_simple(package: &str, simple: &str) -> String {
    // Trino's and Presto's are called by their query, which begins with a date.
    if package.ends_with(".$gen")
        && let Some((at, _)) = simple.match_indices('_').find(|(at, _)| starts_with_digit(&simple[at + 1..]))
    {
        return simple[..at].to_owned();
    }
    let mut kept: Vec<Cow<'_, str>> = Vec::new();
    // Empty segments, which go with the segment behind them.
    let mut pending = 0;
    let mut is_left_out: Option<fn(&str) -> bool> = None;
    let mut before = None;
    for segment in simple.split('$') {
        let generator = generator(package, before, segment);
        match is_left_out {
            Some(_) if segment.is_empty() => pending += 1,
            Some(is_left_out) if generator.is_none() && is_left_out(segment) => pending = 0,
            _ => {
                kept.extend((0..pending).map(|_| Cow::Borrowed("")));
                pending = 0;
                is_left_out = generator;
                kept.push(family_of_segment(package, before, segment));
            }
        }
        before = Some(segment);
    }
    kept.join("$")
}

/// If a segment is a generator's, how to recognise the segments behind it that its classes differ by.
fn generator(package: &str, before: Option<&str>, segment: &str) -> Option<fn(&str) -> bool> {
    match segment {
        "Lambda" if before == Some("") => Some(is_number),
        "JShell" if before == Some("") => Some(is_snippet),
        "Script" | "Recompilation" if package.ends_with("nashorn.internal.scripts") => Some(is_number),
        _ if GENERATORS.iter().any(|generator| segment.ends_with(generator)) => Some(is_hash),
        _ => None,
    }
}

fn family_of_segment<'a>(package: &str, before: Option<&str>, segment: &'a str) -> Cow<'a, str> {
    let numbered = |name: &str| segment.strip_prefix(name).is_some_and(is_number);
    if let Some(name) = NUMBERED.iter().find(|name| numbered(name)) {
        return Cow::Borrowed(&segment[..name.len()]);
    }
    if let Some(name) = JAVASSIST.iter().find(|name| segment.starts_with(**name)) {
        return Cow::Borrowed(&segment[..name.len()]);
    }
    match before {
        None if package.is_empty() => Cow::Borrowed(groovy(segment).unwrap_or(segment)),
        None => Cow::Borrowed(segment),
        Some("") if numbered("Proxy") => Cow::Borrowed("Proxy"),
        // Clojure: what `eval` compiled, and functions within.
        _ if numbered("eval") => Cow::Borrowed("eval"),
        _ => without_numbers(segment),
    }
}

/// The family of Groovy's scripts: `Script12`, `Script_5d41402abc4b2a76`, `script16956381274`.
fn groovy(segment: &str) -> Option<&str> {
    let (family, rest) =
        segment.split_at_checked("script".len()).filter(|(name, _)| ["Script", "script"].contains(name))?;
    let hash = rest.strip_prefix('_').unwrap_or(rest);
    let is_long_hash = hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_number(rest) || is_long_hash).then_some(family)
}

/// Clojure numbers functions with two underscores before: `fn__1235`, `iter__12__16`.
fn without_numbers(segment: &str) -> Cow<'_, str> {
    let mut words = segment.split("__");
    let name = words.next().unwrap_or_default();
    if name.is_empty() || !words.clone().any(is_number) {
        return Cow::Borrowed(segment);
    }
    Cow::Owned(std::iter::once(name).chain(words.filter(|word| !is_number(word))).collect::<Vec<_>>().join("__"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `12`, and `12B` where a snippet was changed.
fn is_snippet(text: &str) -> bool {
    is_number(text.trim_end_matches(|c: char| c.is_ascii_uppercase()))
}

fn is_hash(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn generated_classes_belong_to_families() {
        for (class, expected) in [
            // The JVM's own: lambdas, method handles, reflection, proxies.
            ("com.acme.Shop$$Lambda/0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda+0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda.0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda$14/0x0000000800c03000", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda$14/1826771953", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda$14", "com.acme.Shop$$Lambda"),
            ("java.lang.invoke.LambdaForm$MH/0x000000080000", "java.lang.invoke.LambdaForm$MH"),
            ("jdk.internal.reflect.GeneratedMethodAccessor12", "jdk.internal.reflect.GeneratedMethodAccessor"),
            ("com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy"),
            ("jdk.proxy2.$Proxy7", "jdk.proxy.$Proxy"),
            ("jdk.proxy2.$Proxy7[]", "jdk.proxy.$Proxy[]"),
            ("REPL.$JShell$12B$Shop", "REPL.$JShell$Shop"),
            // Libraries that subclass.
            ("com.acme.Shop$$EnhancerBySpringCGLIB$$1a2b3c4d", "com.acme.Shop$$EnhancerBySpringCGLIB"),
            ("com.acme.Shop$$FastClassBySpringCGLIB$$1a2b3c4d", "com.acme.Shop$$FastClassBySpringCGLIB"),
            ("com.acme.Shop$$SpringCGLIB$$0", "com.acme.Shop$$SpringCGLIB"),
            ("com.acme.Shop$ByteBuddy$kX3a", "com.acme.Shop$ByteBuddy"),
            ("com.acme.Shop$MockitoMock$123456789", "com.acme.Shop$MockitoMock"),
            ("com.acme.Shop$MockitoMock$12$auxiliary$x3Yz", "com.acme.Shop$MockitoMock$auxiliary"),
            ("com.acme.Shop$HibernateProxy$aB3", "com.acme.Shop$HibernateProxy"),
            ("com.acme.Shop_$$_jvst35c_0", "com.acme.Shop_$$_jvst"),
            ("com.acme.Shop_$$_javassist_12", "com.acme.Shop_$$_javassist"),
            // Languages.
            ("Script12", "Script"),
            ("Script12$_run_closure3", "Script$_run_closure3"),
            ("Script_5d41402abc4b2a76b9719d911017c592", "Script"),
            ("script16956381274", "script"),
            ("user$eval1234", "user$eval"),
            ("user$eval1234$fn__1235", "user$eval$fn"),
            ("acme.core$sum$iter__1__5$fn__6", "acme.core$sum$iter$fn"),
            ("acme.core$reify__77", "acme.core$reify"),
            ("$line12.$read$$iw$$iw", "$line.$read$$iw$$iw"),
            (r"jdk.nashorn.internal.scripts.Script$12$\^eval\_", r"jdk.nashorn.internal.scripts.Script$\^eval\_"),
            // Engines.
            (
                "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage12",
                "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage",
            ),
            ("io.trino.$gen.PageFilter_20210101_123456_00001_abcde_12", "io.trino.$gen.PageFilter"),
        ] {
            assert_eq!(family(class), expected, "{class}");
        }
    }

    #[test]
    fn a_class_that_a_person_wrote_is_its_own_family() {
        for class in [
            "com.acme.Shop$1",
            "com.acme.Shop$Item2",
            "com.acme.Script12",
            "com.acme.Shop$Proxy12",
            "com.acme.Proxy12",
            "com.acme.$ProxyFactory",
            "com.acme.Utf8",
            "Script",
            "Script$1",
            "ScriptRunner2",
            "com.google.protobuf.GeneratedMessageV3",
            "com.acme.Order__1",
            "byte[]",
            "",
            "/0x",
        ] {
            assert_eq!(family(class), class);
        }
    }

    #[test]
    fn a_signature_has_the_families_of_its_classes() {
        for (signature, expected) in [
            ("(I[LScript12;J)Lcom/acme/Shop$ByteBuddy$kX3a;", "(I[LScript;J)Lcom/acme/Shop$ByteBuddy;"),
            ("(Ljdk/proxy2/$Proxy7;)V", "(Ljdk/proxy/$Proxy;)V"),
            ("(Ljava/lang/Object;)Z", "(Ljava/lang/Object;)Z"),
            ("(Lcom/acme/Shop$1;)V", "(Lcom/acme/Shop$1;)V"),
        ] {
            assert_eq!(families(signature), expected);
        }
    }

    proptest! {
        #[test]
        fn a_family_is_its_own_family(name in "\\PC{0,40}", shaped in "([a-z]{1,3}\\.)?[A-Za-z$_0-9.+/x]{0,40}(\\[\\])?") {
            for name in [name, shaped] {
                let once = family(&name).into_owned();
                prop_assert_eq!(family(&once), once.clone());
                let _ = families(&name);
            }
        }
    }
}
