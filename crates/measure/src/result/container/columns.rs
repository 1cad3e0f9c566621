//! Raw readings as columns of variable-length integers: number, durations, distances.
//!
//! A duration is the end minus the start. A distance is the start minus the previous end, or minus
//! zero, zigzag-coded for a clock that steps back. Both are modulo 2^64, so that every reading is
//! restored exactly.

use cyclescope_exec::Sample;
use std::io::{self, BufRead};

/// Most bytes of a 64-bit integer in pieces of 7 bits.
const VARINT_MOST: usize = 10;
/// Memory reserved before readings arrive.
const SET_ASIDE: usize = 1 << 16;

/// Writes an integer with 7 bits per byte, the lowest first. The highest bit says that more bytes
/// follow (LEB128).
pub(crate) fn write_varint(number: u64, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes readings.
pub(crate) fn write_samples(samples: &[Sample], out: &mut Vec<u8>) {
    write_varint(samples.len() as u64, out);
    for sample in samples {
        write_varint(sample.end.wrapping_sub(sample.start), out);
    }
    let mut before = 0;
    for sample in samples {
        let distance = sample.start.wrapping_sub(before) as i64;
        write_varint((distance << 1 ^ distance >> 63) as u64, out);
        before = sample.end;
    }
}

/// Reads an integer. `None` if the bytes are not the beginning of one.
pub(crate) fn read_varint(from: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut number = 0;
    for index in 0..VARINT_MOST {
        let Some(&byte) = from.fill_buf()?.first() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        from.consume(1);
        // The tenth byte has room for one bit.
        if index + 1 == VARINT_MOST && byte > 1 {
            return Ok(None);
        }
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Reads readings. `None` if there are more than `most`, or if an integer is malformed.
pub(crate) fn read_samples(from: &mut impl BufRead, most: u64) -> io::Result<Option<Vec<Sample>>> {
    let Some(count) = read_varint(from)?.filter(|count| *count <= most) else { return Ok(None) };
    let mut samples = Vec::with_capacity((count as usize).min(SET_ASIDE));
    for _ in 0..count {
        let Some(end) = read_varint(from)? else { return Ok(None) };
        samples.push(Sample { start: 0, end });
    }
    let mut before = 0u64;
    for sample in &mut samples {
        let Some(coded) = read_varint(from)? else { return Ok(None) };
        let distance = coded >> 1 ^ (coded & 1).wrapping_neg();
        sample.start = before.wrapping_add(distance);
        sample.end = sample.end.wrapping_add(sample.start);
        before = sample.end;
    }
    Ok(Some(samples))
}
