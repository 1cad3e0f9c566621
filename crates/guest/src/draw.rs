//! Random code: noise, instructions drawn from the decoder's list, and such instructions with bits
//! flipped.

use cyclescope::random::Random;
use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, MandatoryPrefix, OpCodeTableKind};

const MAX_CODE_BYTES: usize = 64;

/// One piece of code, 1 to 64 bytes.
pub fn draw_code(random: &mut Random) -> Vec<u8> {
    loop {
        let bytes = draw_bytes(random);
        if !crashes_emulator(&bytes) {
            return bytes;
        }
    }
}

/// VROUNDSS and VROUNDSD with VEX.L, at any offset: they crash QEMU 10 (`gen_VROUNDSS: Assertion`).
fn crashes_emulator(bytes: &[u8]) -> bool {
    bytes
        .windows(4)
        .any(|four| four[0] == 0xc4 && four[1] & 0x1f == 3 && four[2] & 4 != 0 && matches!(four[3], 0x0a | 0x0b))
}

fn draw_bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(4) {
        0 => draw_noise(random),
        _ => draw_instructions(random),
    };
    if random.below(4) == 0 {
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
    }
    bytes
}

fn draw_noise(random: &mut Random) -> Vec<u8> {
    (0..=random.below(MAX_CODE_BYTES)).map(|_| random.next_bits() as u8).collect()
}

fn draw_instructions(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(6) {
        let next = draw_instruction(random);
        if bytes.len() + next.len() <= MAX_CODE_BYTES {
            bytes.extend(next);
        }
    }
    bytes
}

/// An instruction that the decoder knows.
fn draw_instruction(random: &mut Random) -> Vec<u8> {
    let count = Code::values().len();
    loop {
        // The iterator's `nth` passes each code before: most of the fuzzer's time in emulation.
        let code = Code::try_from(random.below(count)).unwrap_or_default();
        let Some(bytes) = encode_attempt(random, code) else { continue };
        let mut decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
        let decoded = decoder.decode();
        if !decoded.is_invalid() {
            return bytes[..decoded.len()].to_vec();
        }
    }
}

/// Bytes that may start with this instruction: its prefixes and opcode, then random operands.
fn encode_attempt(random: &mut Random, code: Code) -> Option<Vec<u8>> {
    let info = code.op_code();
    if !info.mode64() {
        return None;
    }
    let prefix = match info.mandatory_prefix() {
        MandatoryPrefix::P66 => Some(0x66),
        MandatoryPrefix::PF3 => Some(0xf3),
        MandatoryPrefix::PF2 => Some(0xf2),
        _ => (random.below(16) == 0).then(|| [0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e][random.below(6)]),
    };
    let map = match info.table() {
        OpCodeTableKind::T0F => 1,
        OpCodeTableKind::T0F38 => 2,
        OpCodeTableKind::T0F3A => 3,
        _ => 0,
    };
    let mut bytes = Vec::new();
    match info.encoding() {
        EncodingKind::Legacy => {
            bytes.extend(prefix);
            if random.below(2) == 0 {
                bytes.push(0x40 | random.below(16) as u8);
            }
            bytes.extend_from_slice([&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]][map]);
        }
        EncodingKind::VEX => {
            let order = match info.mandatory_prefix() {
                MandatoryPrefix::P66 => 1,
                MandatoryPrefix::PF3 => 2,
                MandatoryPrefix::PF2 => 3,
                _ => 0,
            };
            let third = random.next_bits() as u8 & 0xfc | order;
            bytes.extend([0xc4, random.next_bits() as u8 & 0xe0 | map as u8, third]);
        }
        // Processors without AVX-512 raise #UD for all following bytes; one such instruction
        // represents all.
        _ if random.below(16) == 0 => {
            bytes.extend([0x62, random.next_bits() as u8, random.next_bits() as u8, random.next_bits() as u8])
        }
        _ => return None,
    }
    if info.op_code_len() == 2 {
        bytes.push((info.op_code() >> 8) as u8);
    }
    bytes.push(info.op_code() as u8);
    bytes.push(draw_modrm(random, info.group_index()));
    bytes.extend((0..11).map(|_| random.next_bits() as u8));
    Some(bytes)
}

/// A ModRM byte, harmless for instructions without one. Its memory is often that of an area, which
/// is mapped.
fn draw_modrm(random: &mut Random, group: i32) -> u8 {
    let register = if group < 0 { random.below(8) as u8 } else { group as u8 };
    match random.below(4) {
        0 => random.next_bits() as u8 & 0xc7 | register << 3,
        // RSI, RDI, and with a REX prefix R14.
        1 => register << 3 | [6, 7][random.below(2)],
        _ => 0xc0 | register << 3 | random.below(8) as u8,
    }
}
