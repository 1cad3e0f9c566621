//! Machine code of independent instructions of a given length.

use super::step_loop::{StepLoop, straight_loop};
pub(crate) use cyclescope_code::asm::pad_with_prefixes;

/// Numbers of the registers that programs without memory may change: the first eight except RSP and
/// RBP.
const REGISTERS: [u8; 6] = [0, 1, 2, 3, 6, 7];

const RBP: u8 = 5;

/// The recommended no-operations by length (Intel SDM vol. 2, NOP).
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
    &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
    &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];

/// A no-operation of 1 to 15 bytes.
pub(crate) fn nop_of_length(length: usize) -> Vec<u8> {
    pad_with_prefixes(NOPS[length.min(NOPS.len()) - 1], length)
}

/// xor r32, r32 of one register, 2 to 15 bytes long. Cores know its result without execution.
pub(crate) fn zeroing_of_length(length: usize, place: usize) -> Vec<u8> {
    let register = register_number(place);
    pad_with_prefixes(&[0x31, 0xc0 | register << 3 | register], length)
}

/// mov r32, imm32, 5 to 15 bytes long.
pub(crate) fn mov_imm_of_length(length: usize, place: usize) -> Vec<u8> {
    pad_with_prefixes(&[0xb8 | register_number(place), 0, 0, 0, 0], length)
}

/// mov r32, ebp, 2 to 15 bytes long.
pub(crate) fn mov_reg_of_length(length: usize, place: usize) -> Vec<u8> {
    pad_with_prefixes(&[0x89, 0xc0 | RBP << 3 | register_number(place)], length)
}

/// Bytes per instruction of the loops below: longer ones need fewer entries of a cache of decoded
/// instructions.
const LOOP_INSTRUCTION_BYTES: usize = 5;

/// A loop of this number of no-operations.
pub(crate) fn nop_loop(number: usize) -> StepLoop {
    straight_loop(nop_of_length(LOOP_INSTRUCTION_BYTES).repeat(number), number)
}

/// A loop of this number of instructions that zero a register.
pub(crate) fn zeroing_loop(number: usize) -> StepLoop {
    straight_loop((0..number).flat_map(|place| zeroing_of_length(LOOP_INSTRUCTION_BYTES, place)).collect(), number)
}

/// A loop of this number of moves of constants.
pub(crate) fn mov_imm_loop(number: usize) -> StepLoop {
    straight_loop((0..number).flat_map(|place| mov_imm_of_length(LOOP_INSTRUCTION_BYTES, place)).collect(), number)
}

/// A loop of this number of copies of a register that the loop never writes. Some cores complete
/// them without execution.
pub(crate) fn mov_reg_loop(number: usize) -> StepLoop {
    straight_loop((0..number).flat_map(|place| mov_reg_of_length(LOOP_INSTRUCTION_BYTES, place)).collect(), number)
}

fn register_number(place: usize) -> u8 {
    REGISTERS[place % REGISTERS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    fn decoded(code: &[u8]) -> (usize, Mnemonic) {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        (instruction.len(), instruction.mnemonic())
    }

    #[test]
    fn every_generated_instruction_has_its_length() {
        for length in 1..=15 {
            assert_eq!(decoded(&nop_of_length(length)), (length, Mnemonic::Nop));
            for place in 0..8 {
                if length >= 2 {
                    assert_eq!(decoded(&zeroing_of_length(length, place)), (length, Mnemonic::Xor));
                    assert_eq!(decoded(&mov_reg_of_length(length, place)), (length, Mnemonic::Mov));
                }
                if length >= 5 {
                    assert_eq!(decoded(&mov_imm_of_length(length, place)), (length, Mnemonic::Mov));
                }
            }
        }
    }
}
