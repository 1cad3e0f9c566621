//! Mutated bytes.

use crate::FuzzRandom;

/// Pieces of text that some reader treats specially.
const MEANINGFUL_PIECES: [&[u8]; 26] = [
    b"-1",
    b"0",
    b"1e308",
    b"-1e-308",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"1152921504606846976",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"\"",
    b",",
    b"\n",
    b"\r\n",
    b"#",
    b";",
    b"\0",
    b"\xff",
    b"\x1b[2J",
    b"{",
    b"*",
    b"%",
];
/// Largest number of bytes of an input.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// A copy with one or a few changes. Pieces come from itself and from another input.
pub(crate) fn mutate_bytes(seed: &[u8], other: &[u8], random: &mut FuzzRandom) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(4) {
        change_bytes(&mut bytes, other, random);
    }
    bytes.truncate(MAX_INPUT_BYTES.max(seed.len()));
    bytes
}

fn change_bytes(bytes: &mut Vec<u8>, other: &[u8], random: &mut FuzzRandom) {
    let at = random.below(bytes.len() + 1);
    let most = if random.below(4) == 0 { 400 } else { 8 };
    let length = 1 + random.below(most);
    let end = (at + length).min(bytes.len());
    match random.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.bits() as u8,
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => drop(bytes.splice(at..end, random.pick(&MEANINGFUL_PIECES).iter().copied())),
        5 => drop(bytes.splice(at..at, random.pick(&MEANINGFUL_PIECES).iter().copied())),
        6 => {
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        7 if !other.is_empty() => {
            let from = random.below(other.len());
            let piece = other[from..(from + length).min(other.len())].to_vec();
            bytes.splice(at..end, piece);
        }
        _ => {
            // A length, as binary files store it.
            let number = *random.pick(&[0u64, 1, 0x7f, 0xff, 0xffff, 1 << 31, u64::MAX, 1 << 60]);
            let number = number.to_le_bytes();
            let length = *random.pick(&[1, 2, 4, 8]);
            for (byte, new) in bytes.iter_mut().skip(at).zip(&number[..length]) {
                *byte = *new;
            }
        }
    }
}
