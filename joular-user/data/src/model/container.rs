//! Shortens ids of containers as people and tools do.

/// Digits of a shortened id.
const SHORT_DIGITS: usize = 12;

/// The first digits of an id, which are enough to know a container on its host by.
pub fn short_id(id: &str) -> &str {
    id.get(..SHORT_DIGITS).unwrap_or(id)
}

/// Whether these are the first digits of an id, and enough of them.
pub fn is_short_for(digits: &str, id: &str) -> bool {
    digits.len() >= SHORT_DIGITS && id.starts_with(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_digits_are_enough() {
        let id = "4f2b7c0a9d8e1f3a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f9a0b1c2";
        assert_eq!([short_id(id), short_id("4f2b")], ["4f2b7c0a9d8e", "4f2b"]);
        for (digits, expected) in [(&id[..12], true), (&id[..20], true), (&id[..11], false), (&id[1..13], false)] {
            assert_eq!(is_short_for(digits, id), expected, "{digits}");
        }
    }
}
