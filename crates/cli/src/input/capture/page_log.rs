//! A page as it was at the region's start, and what the region did with each of its bytes.

use super::process_map::PAGE;
use std::ops::Range;

/// One bit for each byte of a page.
#[derive(Clone)]
struct ByteSet([u64; PAGE as usize / 64]);

impl ByteSet {
    const EMPTY: ByteSet = ByteSet([0; PAGE as usize / 64]);

    fn has(&self, byte: usize) -> bool {
        self.0[byte / 64] >> (byte % 64) & 1 != 0
    }

    fn insert(&mut self, byte: usize) {
        self.0[byte / 64] |= 1 << (byte % 64);
    }
}

/// How an instruction uses bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteUse {
    /// Whether it may read them.
    pub reads: bool,
    /// Whether it may write them.
    pub writes: bool,
    /// Whether it writes them for certain.
    pub surely: bool,
}

/// A page that the region touches.
pub struct PageLog {
    /// Its contents at the region's start.
    pub contents: Vec<u8>,
    /// Whether the region executes code in it.
    pub is_code: bool,
    /// Bytes whose initial value the region may read.
    live: ByteSet,
    /// Bytes that the region may write.
    written: ByteSet,
    /// Bytes that the region writes before it can read them.
    replaced: ByteSet,
    /// Bytes of executed instructions.
    executed: ByteSet,
}

impl PageLog {
    /// A page with these contents, not yet used.
    pub fn new(contents: Vec<u8>) -> PageLog {
        PageLog {
            contents,
            is_code: false,
            live: ByteSet::EMPTY,
            written: ByteSet::EMPTY,
            replaced: ByteSet::EMPTY,
            executed: ByteSet::EMPTY,
        }
    }

    /// Notes an access to bytes of the page.
    pub fn note_use(&mut self, bytes: Range<usize>, with: ByteUse) {
        for byte in bytes {
            if with.reads && !self.replaced.has(byte) {
                self.live.insert(byte);
            }
            if with.writes {
                self.written.insert(byte);
                if with.surely && !self.live.has(byte) {
                    self.replaced.insert(byte);
                }
            }
        }
    }

    /// Notes the execution of bytes of the page.
    pub fn note_execution(&mut self, bytes: Range<usize>) {
        self.is_code = true;
        bytes.for_each(|byte| self.executed.insert(byte));
    }

    /// Whether the region writes a byte.
    pub fn is_written(&self) -> bool {
        self.written.0.iter().any(|word| *word != 0)
    }

    /// Whether the region executes or reads a byte.
    pub fn is_needed(&self, byte: usize) -> bool {
        self.executed.has(byte) || self.live.has(byte)
    }

    /// Whether the region needs the initial value of a byte and overwrites it.
    pub fn is_to_restore(&self, byte: usize) -> bool {
        self.live.has(byte) && self.written.has(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: ByteUse = ByteUse { reads: true, writes: false, surely: false };
    const WRITE: ByteUse = ByteUse { reads: false, writes: true, surely: true };
    const MASKED: ByteUse = ByteUse { reads: false, writes: true, surely: false };
    const UPDATE: ByteUse = ByteUse { reads: true, writes: true, surely: true };

    fn log(uses: &[ByteUse]) -> PageLog {
        let mut page = PageLog::new(vec![0; PAGE as usize]);
        uses.iter().for_each(|with| page.note_use(64..65, *with));
        page
    }

    #[test]
    fn only_bytes_that_are_read_first_and_written_later_are_restored() {
        for (uses, restored) in [
            (&[READ][..], false),
            (&[WRITE], false),
            (&[READ, WRITE], true),
            (&[UPDATE], true),
            (&[WRITE, READ], false),
            (&[WRITE, READ, WRITE], false),
            // A masked store may leave the byte as it was.
            (&[MASKED, READ], true),
            (&[MASKED, WRITE, READ], false),
        ] {
            assert_eq!(log(uses).is_to_restore(64), restored, "{uses:?}");
            assert!(!log(uses).is_to_restore(63) && !log(uses).is_to_restore(65));
        }
    }
}
