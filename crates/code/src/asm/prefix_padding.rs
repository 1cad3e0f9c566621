//! Longer encodings of an instruction, by prefixes without effect.

/// The segment prefix of CS, which does nothing in 64-bit mode (Intel SDM vol. 1, 3.3.4).
const CS_PREFIX: u8 = 0x2e;

/// The machine code of an instruction, padded with prefixes to `length` bytes. Longer code stays as
/// it is.
pub fn pad_with_prefixes(instruction: &[u8], length: usize) -> Vec<u8> {
    [&vec![CS_PREFIX; length.saturating_sub(instruction.len())], instruction].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions};

    #[test]
    fn padded_code_is_the_same_instruction() {
        for length in 3..=8 {
            let code = pad_with_prefixes(&[0x48, 0x31, 0xc0], length);
            let instruction = Decoder::new(64, &code, DecoderOptions::NONE).decode();
            assert_eq!((instruction.code(), instruction.len()), (Code::Xor_rm64_r64, length));
        }
        assert_eq!(pad_with_prefixes(&[0x66, 0x90], 1), [0x66, 0x90]);
    }
}
