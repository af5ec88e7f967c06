//! Decodes Java's own kind of UTF-8 (JVM Specification, 4.4.7). It has a character beyond the first 65 536 as the two
//! surrogates of UTF-16, three bytes each.

/// The text of these bytes. A surrogate by itself becomes `?`: no Rust text can have it.
pub fn java_text(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((first, behind)) = surrogate(rest) else {
            let end = (1..rest.len()).find(|at| surrogate(&rest[*at..]).is_some()).unwrap_or(rest.len());
            text.push_str(&String::from_utf8_lossy(&rest[..end]));
            rest = &rest[end..];
            continue;
        };
        let pair = surrogate(behind).and_then(|(second, behind)| {
            let character = char::decode_utf16([first, second]).next()?.ok()?;
            Some((character, behind))
        });
        let (character, behind) = pair.unwrap_or(('?', behind));
        text.push(character);
        rest = behind;
    }
    text
}

/// The surrogate that bytes begin with, and what is behind it.
fn surrogate(bytes: &[u8]) -> Option<(u16, &[u8])> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, behind @ ..] => {
            Some((0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f), behind))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_javas_own_kind() {
        let cases: [(&[u8], &str); 7] = [
            ("π".as_bytes(), "π"),
            (b"a\xed\xa0\xb5\xed\xb2\x9cb", "a\u{1d49c}b"),
            // A surrogate by itself, and two in the wrong order.
            (b"a\xed\xa0\xb5b", "a?b"),
            (b"\xed\xb2\x9c\xed\xa0\xb5", "??"),
            (b"\xcf\x80\xed\xa0\xb5\xed\xb2\x9e", "π\u{1d49e}"),
            (b"a\xff", "a\u{fffd}"),
            (b"\xed\xa0", "\u{fffd}\u{fffd}"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(java_text(bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn any_character_is_read_as_java_writes_it(text in any::<String>()) {
            let low_byte = |unit: u16| unit.to_le_bytes()[0];
            let three_bytes = |unit: u16| {
                [0xe0 | low_byte(unit >> 12), 0x80 | low_byte(unit >> 6 & 0x3f), 0x80 | low_byte(unit & 0x3f)]
            };
            let java: Vec<u8> = text
                .chars()
                .flat_map(|c| match u16::try_from(u32::from(c)) {
                    Ok(_) => c.to_string().into_bytes(),
                    Err(_) => c.encode_utf16(&mut [0; 2]).iter().copied().flat_map(three_bytes).collect(),
                })
                .collect();
            prop_assert_eq!(java_text(&java), text);
        }
    }
}
