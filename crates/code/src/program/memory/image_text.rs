//! The bytes of an image as text: two hexadecimal digits each. Evidence of earlier versions has a
//! list of numbers.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

/// Either form of an image.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum ImageText {
    Digits(String),
    Numbers(Vec<u8>),
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes the bytes as text.
pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    to.serialize_str(&digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect::<String>())
}

/// Reads the bytes.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match ImageText::deserialize(from)? {
        ImageText::Numbers(bytes) => Ok(bytes),
        ImageText::Digits(text) => {
            let (pairs, rest) = text.as_bytes().as_chunks::<2>();
            let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
            let bytes: Option<Vec<u8>> = bytes.collect();
            bytes.filter(|_| rest.is_empty()).ok_or_else(|| D::Error::custom("an image is pairs of hexadecimal digits"))
        }
    }
}
