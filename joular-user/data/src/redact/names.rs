//! Says which names have values that are secret.

/// What a name holds, in any case, whose value is secret.
const TELLING: [&str; 9] = ["pass", "pwd", "secret", "token", "key", "credential", "auth", "cookie", "session"];

/// Whether a name says that its value is secret.
pub(super) fn is_telling(name: &str) -> bool {
    if name.is_ascii() {
        return TELLING.iter().any(|word| holds(name.as_bytes(), word.as_bytes()));
    }
    let lower = name.to_lowercase();
    TELLING.iter().any(|word| lower.contains(word))
}

fn holds(name: &[u8], word: &[u8]) -> bool {
    name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// The name of a property, an option or a variable, as it is written before `=`: what comes after the last slash.
pub(super) fn last_part(written: &str) -> &str {
    written.rsplit('/').next().unwrap_or(written)
}

/// A name without what marks it as an option (`--x`) or as a property of a JVM (`-Dx`, `-J-Dx`).
pub(super) fn bare(written: &str) -> &str {
    let written = written.strip_prefix("-J").unwrap_or(written);
    written.strip_prefix("-D").unwrap_or_else(|| written.trim_start_matches('-'))
}

/// Whether a word is an option that may have the next word as its value. Properties of a JVM (`-Dx`) and its own options
/// (`-Xx`, `-XX:x`) have theirs after `=` or `:`, or none.
pub(super) fn is_option(word: &str) -> bool {
    let of_jvm = ["-D", "-X", "-J"].iter().any(|start| word.starts_with(start));
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '[' | ']');
    word.starts_with('-') && !of_jvm && !bare(word).is_empty() && word.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_by_what_they_hold_in_any_case() {
        for name in [
            "password",
            "DB_PASSWD",
            "PGPASSWORD",
            "pwd",
            "clientSecret",
            "X-Api-Key",
            "aws_credentials",
            "Authorization",
            "JSESSIONID",
            "set-cookie",
            "accessToken",
            "clé-API-Key",
            "monkey",
            "to\u{212a}en",
        ] {
            assert!(is_telling(name), "{name}");
        }
        for name in ["", "user", "Xmx4g", "java.security.manager", "classpath", "пароль", "pas", "sword", "host"]
        {
            assert!(!is_telling(name), "{name}");
        }
    }

    #[test]
    fn options_may_have_a_value_in_the_next_word() {
        for word in ["--password", "-storepass", "-p", "--api.key", "---x"] {
            assert!(is_option(word), "{word}");
        }
        for word in
            ["-Dpassword", "-XX:key", "-Xkey", "-J-Dkey", "--password=x", "-", "--", "password", "-javaagent:key", ""]
        {
            assert!(!is_option(word), "{word}");
        }
    }
}
