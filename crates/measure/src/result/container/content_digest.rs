//! SHA-256 of contents. A file that differs in any way has another digest.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// A digest in progress.
#[derive(Debug, Clone, Default)]
pub struct ContentDigest(Sha256);

impl ContentDigest {
    /// Adds bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of some bytes, as written in files.
    pub(super) fn hex_of(bytes: &[u8]) -> String {
        let mut digest = ContentDigest::default();
        digest.add_bytes(bytes);
        digest.to_hex()
    }

    /// The digest of all bytes so far.
    pub(super) fn to_bytes(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }

    /// The digest of all bytes so far, as written in files.
    pub fn to_hex(&self) -> String {
        to_hex(&self.to_bytes())
    }
}

/// Two lower-case hexadecimal digits for each byte.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text grows"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        // FIPS 180-4, example of SHA-256: one block.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ContentDigest::hex_of(b"abc"), digest);
    }
}
