//! Encodes values as a recording has them: integers with seven bits a byte, texts with their length, numbers as they are.

/// How a text is encoded.
mod text_kind {
    pub(super) const NONE: u8 = 0;
    pub(super) const EMPTY: u8 = 1;
    pub(super) const UTF8: u8 = 3;
}

/// Values, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Vec<u8>);

impl Values {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Up to nine bytes, the lowest bits first. All but the ninth say whether another follows.
    pub(super) fn natural(&mut self, value: u64) {
        let mut rest = value;
        for _ in 0..8 {
            let [low, ..] = rest.to_le_bytes();
            if rest < 0x80 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
            rest >>= 7;
        }
        let [last, ..] = rest.to_le_bytes();
        self.0.push(last);
    }

    /// An integer of 64 bits. A negative one takes nine bytes.
    pub(super) fn integer(&mut self, value: i64) {
        self.natural(value.cast_unsigned());
    }

    /// An integer of 32 bits that is -1 where nothing is known, as the JVM writes lines.
    pub(super) fn known(&mut self, value: Option<u32>) {
        self.natural(value.filter(|value| i32::try_from(*value).is_ok()).unwrap_or(u32::MAX).into());
    }

    /// `None` is not the same as an empty text.
    pub(super) fn text(&mut self, text: Option<&str>) {
        match text {
            None => self.0.push(text_kind::NONE),
            Some("") => self.0.push(text_kind::EMPTY),
            Some(text) => {
                self.0.push(text_kind::UTF8);
                self.natural(text.len() as u64);
                self.0.extend_from_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.0.push(value.into());
    }

    pub(super) fn double(&mut self, value: f64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// An event with these fields: its size, which counts the size itself, and then they.
    pub(super) fn event(&mut self, fields: &Self) {
        let length = fields.0.len() as u64;
        let of_size = (1..).find(|bytes| (length + bytes) >> (7 * bytes) == 0).unwrap_or(9);
        self.natural(length + of_size);
        self.append(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::flight::input::{Input, Text};

    #[test]
    fn integers_have_seven_bits_a_byte_and_the_ninth_byte_has_eight() {
        for (value, expected) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            ((1 << 56) - 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (1 << 56, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
            (u64::MAX, &[0xff; 9]),
        ] {
            let mut values = Values::default();
            values.natural(value);
            assert_eq!(values.bytes(), expected, "{value}");
            assert_eq!(Input::of(values.bytes()).natural().unwrap(), value);
        }
        let mut values = Values::default();
        values.integer(-1);
        assert_eq!(values.bytes(), [0xff; 9]);
    }

    #[test]
    fn a_line_that_is_not_known_is_minus_one_in_32_bits() {
        let not_known = u32::MAX;
        for (line, expected) in [(None, not_known), (Some(0), 0), (Some(42), 42), (Some(1 << 31), not_known)] {
            let mut values = Values::default();
            values.known(line);
            assert_eq!(Input::of(values.bytes()).natural().unwrap(), u64::from(expected));
        }
    }

    #[test]
    fn a_missing_text_is_not_an_empty_one() {
        for text in [None, Some(""), Some("µJ\n\0"), Some(&"x".repeat(200))] {
            let mut values = Values::default();
            values.text(text);
            let mut input = Input::of(values.bytes());
            let expected = text.map_or(Text::None, |text| Text::Here(text.to_owned()));
            assert_eq!(input.text().unwrap(), expected);
            assert!(input.is_at_end());
        }
    }

    #[test]
    fn the_size_of_an_event_counts_itself() {
        for length in [0, 1, 125, 126, 127, 128, 129, 16_380, 16_381, 16_382, 16_383, 16_384] {
            let (mut fields, mut values) = (Values::default(), Values::default());
            (0..length).for_each(|_| fields.flag(true));
            values.event(&fields);
            assert_eq!(Input::of(values.bytes()).natural().unwrap(), values.bytes().len() as u64, "{length}");
        }
    }
}
