//! The worker's executable.

/// An ELF file for Linux on x86-64, static, linked to [`IMAGE_AT`](super::view::IMAGE_AT).
pub static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/worker"));

/// A mapped part of the executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSegment {
    /// Its address.
    pub address: u64,
    /// Bytes in memory, of whole pages.
    pub bytes: usize,
    /// Offset in the file, if the part comes from it.
    pub offset: usize,
    /// Whether the whole part comes from the file; otherwise it is zeros.
    pub in_file: bool,
}

/// Number of segments: code, and variables.
pub const SEGMENT_COUNT: usize = 2;

/// The mapped segments: the code, and the variables, which are zero at first.
pub fn read_segments() -> [ImageSegment; SEGMENT_COUNT] {
    const LOAD: u64 = 1;
    let word = |at: usize, bytes: usize| {
        IMAGE[at..at + bytes].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    };
    // `e_phoff`, and Elf64_Phdr (System V ABI, chapter 5).
    let header = |number: usize| {
        let at = word(0x20, 8) as usize + 56 * number;
        assert_eq!(word(at, 4), LOAD, "the executable begins with what is mapped");
        let [offset, address, in_file, in_memory] = [8, 16, 32, 40].map(|field| word(at + field, 8));
        ImageSegment {
            address,
            bytes: (in_memory as usize).next_multiple_of(4096),
            offset: offset as usize,
            in_file: in_file != 0,
        }
    };
    [header(0), header(1)]
}

/// The address of its first instruction.
pub fn entry_address() -> u64 {
    // `e_entry`.
    u64::from_le_bytes(IMAGE[0x18..0x20].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::view::{CALL_AT, IMAGE_AT};
    use super::*;

    #[test]
    fn the_executable_matches_the_protocol() {
        let [code, variables] = read_segments();
        assert_eq!((code.address, code.offset, code.in_file), (IMAGE_AT, 0, true));
        assert!(!variables.in_file && variables.address == IMAGE_AT + code.bytes as u64, "{variables:?}");
        let call = (CALL_AT - IMAGE_AT) as usize;
        assert_eq!(IMAGE[call..call + 3], [0x0f, 0x05, 0xc3], "syscall; ret");
        assert!((CALL_AT..CALL_AT + code.bytes as u64).contains(&entry_address()));
        // More than a few kilobytes would include something unneeded.
        assert!(IMAGE.len() < 64 << 10, "{} bytes", IMAGE.len());
    }
}
