//! Memory in place of a file.

use std::io::{Result, Write};

/// The last few kilobytes written. Wrapping to the start takes no time.
pub(super) struct LogMemory {
    bytes: [u8; 4096],
    used: usize,
}

impl LogMemory {
    pub(super) const fn new() -> LogMemory {
        LogMemory { bytes: [0; 4096], used: 0 }
    }

    /// Text written since the last wrap.
    #[cfg(test)]
    pub(super) fn as_text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.used]).expect("loggers write text")
    }
}

impl Write for LogMemory {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let len = bytes.len().min(self.bytes.len());
        if self.used + len > self.bytes.len() {
            self.used = 0;
        }
        self.bytes[self.used..][..len].copy_from_slice(&bytes[..len]);
        self.used += len;
        Ok(len)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_wraps_to_the_start() {
        let mut memory = LogMemory::new();
        memory.write_all(&[b'a'; 4090]).unwrap();
        memory.write_all(b"beginning").unwrap();
        assert_eq!(memory.as_text(), "beginning");
        memory.write_all(&[b'c'; 5000]).unwrap();
        assert_eq!(memory.as_text(), "c".repeat(5000 - 4096));
    }
}
