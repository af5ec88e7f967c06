//! Reads values as recordings encode them: integers with seven bits a byte, texts with their encoding and length.

use super::error::Damage;

/// Bytes, and how far they are read.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A text, or the number of a constant that is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Nothing, which is not the same as an empty text.
    None,
    Here(String),
    Constant(u64),
}

/// How a text is encoded.
mod encoding {
    pub(super) const NONE: u8 = 0;
    pub(super) const EMPTY: u8 = 1;
    pub(super) const CONSTANT: u8 = 2;
    pub(super) const UTF8: u8 = 3;
    pub(super) const UTF16: u8 = 4;
    pub(super) const LATIN1: u8 = 5;
}

impl<'a> Input<'a> {
    #[cfg(test)]
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The rest of `bytes` from there on.
    pub(super) fn from(bytes: &'a [u8], at: usize) -> Result<Self, Damage> {
        if at > bytes.len() { Err(Damage::Offset) } else { Ok(Self { bytes, at }) }
    }

    /// An event that begins there: its type, and its fields.
    ///
    /// # Errors
    /// If it has no size, or one that does not fit.
    pub fn event(bytes: &'a [u8], at: usize) -> Result<(u64, Self), Damage> {
        let size = Self::from(bytes, at)?.natural()?;
        let size = usize::try_from(size).map_err(|_| Damage::EventSize)?;
        let end = at.checked_add(size).filter(|end| size > 0 && *end <= bytes.len()).ok_or(Damage::EventSize)?;
        let mut input = Self { bytes: &bytes[..end], at };
        input.natural()?;
        Ok((input.natural()?, input))
    }

    pub const fn at(&self) -> usize {
        self.at
    }

    /// Where its bytes end.
    pub const fn end(&self) -> usize {
        self.bytes.len()
    }

    #[cfg(test)]
    pub const fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// How many bytes are left.
    pub const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// # Errors
    /// If there are fewer.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let end = self.at.checked_add(length).ok_or(Damage::Ends)?;
        let taken = self.bytes.get(self.at..end).ok_or(Damage::Ends)?;
        self.at = end;
        Ok(taken)
    }

    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, Damage> {
        self.take(1).map(|taken| taken[0])
    }

    /// Up to nine bytes, the lowest bits first. All but the ninth say whether another follows.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn natural(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for place in 0..8 {
            let byte = u64::from(self.byte()?);
            value |= (byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// A number of things that follow, each of which has a byte at least.
    ///
    /// # Errors
    /// If there is no room for so many.
    pub fn count(&mut self) -> Result<usize, Damage> {
        let count = usize::try_from(self.natural()?).map_err(|_| Damage::Ends)?;
        if count > self.left() { Err(Damage::Ends) } else { Ok(count) }
    }

    /// What is not text in its encoding is replaced.
    ///
    /// # Errors
    /// If it is not whole, or its encoding is not known.
    pub fn text(&mut self) -> Result<Text, Damage> {
        Ok(match self.byte()? {
            encoding::NONE => Text::None,
            encoding::EMPTY => Text::Here(String::new()),
            encoding::CONSTANT => Text::Constant(self.natural()?),
            encoding::UTF8 => {
                let length = self.count()?;
                Text::Here(String::from_utf8_lossy(self.take(length)?).into_owned())
            }
            encoding::UTF16 => {
                let length = self.count()?;
                let units = (0..length).map(|_| Ok(u16::try_from(self.natural()?).unwrap_or(0xfffd)));
                Text::Here(String::from_utf16_lossy(&units.collect::<Result<Vec<u16>, Damage>>()?))
            }
            encoding::LATIN1 => {
                let length = self.count()?;
                Text::Here(self.take(length)?.iter().copied().map(char::from).collect())
            }
            _ => return Err(Damage::Encoding),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_five_encodings() {
        let here = |text: &str| Ok(Text::Here(text.to_owned()));
        for (bytes, expected) in [
            (&[0][..], Ok(Text::None)),
            (&[1], here("")),
            (&[2, 0x81, 1], Ok(Text::Constant(129))),
            (&[3, 3, 0xc2, 0xb5, b'J'], here("µJ")),
            (&[3, 1, 0xff], here("\u{fffd}")),
            (&[4, 2, 0xb5, 1, b'J'], here("µJ")),
            (&[4, 2, 0xe5, 0xcb, 1, 0xac, 0xce, 1], here("日本")),
            (&[4, 1, 0x80, 0xb0, 3], here("\u{fffd}")),
            (&[5, 2, 0xb5, b'J'], here("µJ")),
            (&[6, 0], Err(Damage::Encoding)),
            (&[3, 200, 1, b'x'], Err(Damage::Ends)),
            (&[3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Err(Damage::Ends)),
            (&[4, 2, b'x'], Err(Damage::Ends)),
            (&[], Err(Damage::Ends)),
        ] {
            assert_eq!(Input::of(bytes).text(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn an_event_without_a_size_or_beyond_the_chunk_is_refused() {
        for (bytes, expected) in [
            (&[3, 7, 1][..], Ok((7, 1))),
            (&[0x83, 0, 7], Ok((7, 0))),
            (&[0, 7, 1], Err(Damage::EventSize)),
            (&[4, 7, 1], Err(Damage::EventSize)),
            (&[1, 7, 1], Err(Damage::Ends)),
            (&[0xff; 9], Err(Damage::EventSize)),
        ] {
            assert_eq!(Input::event(bytes, 0).map(|(of, fields)| (of, fields.left())), expected, "{bytes:?}");
        }
        assert_eq!(Input::event(&[3, 7, 1], 4).map(|_| ()), Err(Damage::Offset));
    }
}
