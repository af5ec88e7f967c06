//! Says by what the energy of garbage collectors is charged.

use super::filter::FilterError;

/// What the energy of a collector is charged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeBy {
    /// Bytes allocated.
    Allocated,
    /// Bytes that survived, as far as collections showed that.
    Survived,
}

impl ChargeBy {
    /// # Errors
    /// If the text is neither name.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        match text {
            "allocated" => Ok(Self::Allocated),
            "survived" => Ok(Self::Survived),
            _ => Err(FilterError::ChargeBy { text: text.to_owned() }),
        }
    }
}
