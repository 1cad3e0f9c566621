//! Which registers a program of a form uses: some to rotate through, some that keep their value.

use crate::forms::operands::{Anatomy, Bank, Slot};
use cyclescope_code::asm::forms::Variant;
use cyclescope_code::asm::registers::HIGH_BYTES;
use iced_x86::{EncodingKind, Register};

/// General registers in the order in which they are given out for rotation; constants come from the other end. RSP is
/// the stack's, R15 counts the loop and R14 holds the address of memory operands; RDI, RSI and RBP hold addresses at
/// first, which make no good constants. Golden Cove rotates the low bytes of the registers whose encodings end in 4 to 7
/// in 3 cycles, not 1.
const GENERAL: [u8; 13] = [8, 9, 3, 0, 2, 7, 6, 5, 13, 12, 1, 10, 11];
/// Those that stand beside AH to BH, whose numbers they share, and need no REX.
const LOW: [u8; 4] = [2, 3, 1, 0];

/// Hands out registers, each once.
#[derive(Debug, Clone)]
pub(crate) struct Allocator {
    general: Vec<u8>,
    vector: Vec<u8>,
    mask: Vec<u8>,
    mmx: Vec<u8>,
    x87: Vec<u8>,
    base: u8,
}

impl Allocator {
    /// All registers that programs of this form may use, but for those that it implies.
    pub(crate) fn new(anatomy: &Anatomy) -> Allocator {
        let encoding = anatomy.sample.op_code().encoding();
        let evex = encoding == EncodingKind::EVEX;
        let high = anatomy.form.variants.contains(&Variant::HighByte) || encoding == EncodingKind::D3NOW;
        let mut allocator = Allocator {
            general: if high { LOW.to_vec() } else { GENERAL.to_vec() },
            vector: (0..if evex { 32 } else { 16 }).collect(),
            mask: (1..8).collect(),
            mmx: (0..8).collect(),
            // Six values are on the stack; ST0 is its top.
            x87: (1..6).collect(),
            base: if high { 7 } else { 14 },
        };
        for register in anatomy.fixed() {
            allocator.take(register);
        }
        for operand in 0..anatomy.sample.op_count() {
            // What is fixed because it is the first of a group.
            let register = anatomy.sample.op_register(operand);
            if !anatomy.slots().contains(&Slot::Operand(operand)) && register.is_vector_register() {
                let number = register.number() as u8;
                allocator.vector.retain(|other| !(number..number + 4).contains(other));
            }
        }
        allocator
    }

    /// The register that holds addresses.
    pub(crate) fn base(&self) -> u8 {
        self.base
    }

    fn pool(&mut self, bank: Bank) -> Option<&mut Vec<u8>> {
        match bank {
            Bank::General | Bank::HighByte => Some(&mut self.general),
            Bank::Vector => Some(&mut self.vector),
            Bank::Mask => Some(&mut self.mask),
            Bank::Mmx => Some(&mut self.mmx),
            Bank::X87 => Some(&mut self.x87),
            Bank::Flags | Bank::Memory | Bank::Other => None,
        }
    }

    /// Keeps a register from being given out.
    pub(crate) fn take(&mut self, register: Register) {
        let high = HIGH_BYTES.iter().position(|other| *other == register);
        let number = high.unwrap_or(register.full_register().number()) as u8;
        if let Some(pool) = self.pool(Bank::of(register)) {
            pool.retain(|other| *other != number);
        }
    }

    /// How many registers of a bank are left.
    pub(crate) fn left(&mut self, bank: Bank) -> usize {
        self.pool(bank).map_or(0, |pool| pool.len())
    }

    /// A register that keeps its value.
    pub(crate) fn constant(&mut self, bank: Bank) -> Option<u8> {
        self.pool(bank)?.pop()
    }

    /// Up to `most` registers to rotate through; none where there is none left.
    pub(crate) fn rotation(&mut self, bank: Bank, most: usize) -> Option<Vec<u8>> {
        let pool = self.pool(bank)?;
        let count = most.min(pool.len());
        if count == 0 {
            return None;
        }
        Some(pool.drain(..count).collect())
    }
}
