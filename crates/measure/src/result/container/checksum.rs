//! FNV-1a in 64 bits (RFC 9923). Changing any single byte changes the sum, since each step is a
//! bijection.

/// A checksum in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    /// The sum of no bytes.
    fn default() -> Checksum {
        Checksum(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Adds bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    }

    /// The sum of some bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Checksum {
        let mut sum = Checksum::default();
        sum.add_bytes(bytes);
        sum
    }

    /// The sum as a number.
    pub(crate) fn as_number(self) -> u64 {
        self.0
    }

    /// The sum as written in manifests.
    pub fn to_hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_rfc() {
        // RFC 9923, appendix: test vectors of FNV-1a in 64 bits.
        assert_eq!(Checksum::from_bytes(b"").to_hex(), "cbf29ce484222325");
        assert_eq!(Checksum::from_bytes(b"a").to_hex(), "af63dc4c8601ec8c");
        assert_eq!(Checksum::from_bytes(b"foobar").to_hex(), "85944171f73967e8");
    }
}
