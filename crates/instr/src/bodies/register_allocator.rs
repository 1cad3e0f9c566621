//! Allocates the registers of a program: some rotate, some keep their value.

use crate::forms::form_anatomy::{FormAnatomy, RegisterBank, RegisterSlot};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::forms::OperandVariant;
use cyclescope_code::asm::registers::HIGH_BYTES;
use iced_x86::{EncodingKind, InstructionInfoFactory, Register};

/// General registers in the order of allocation for rotation; constants come from the other end.
/// RSP, R15 (loop counter) and R14 (address of memory operands) are excluded. RDI, RSI and RBP hold
/// addresses at first, which are bad constants. Golden Cove rotates the low bytes of registers with
/// encodings ending in 4 to 7 in 3 cycles, not 1.
const GENERAL_ORDER: [u8; 13] = [8, 9, 3, 0, 2, 7, 6, 5, 13, 12, 1, 10, 11];
/// The same in 32-bit code, where EBP counts loops and EDI is the address of memory operands. Links
/// read bytes of constant registers, which only the last ones have.
const GENERAL_ORDER_32: [u8; 5] = [3, 6, 2, 1, 0];
/// General registers of forms with AH to BH: they share the numbers and need no REX. In 32-bit code
/// these are the only ones that have bytes.
const LOW_ORDER: [u8; 4] = [2, 3, 1, 0];
/// Numbers of the addresses of memory operands: R14, or RDI for forms that need all registers of
/// [`LOW_ORDER`] and in 32-bit code.
const BASE_NUMBER: u8 = 14;
const LOW_BASE_NUMBER: u8 = 7;

/// Allocates each register at most once.
#[derive(Debug, Clone)]
pub(crate) struct RegisterAllocator {
    general: Vec<u8>,
    vector: Vec<u8>,
    mask: Vec<u8>,
    mmx: Vec<u8>,
    x87: Vec<u8>,
    /// General registers that no instance can use, because its encoding has no number for them.
    spare: Vec<u8>,
    base: u8,
    /// Whether no instance has a memory operand.
    is_base_idle: bool,
    mode: CodeMode,
}

impl RegisterAllocator {
    /// All registers that programs of this form may use, except those that the form implies.
    pub(crate) fn new(anatomy: &FormAnatomy) -> RegisterAllocator {
        let encoding = anatomy.sample.op_code().encoding();
        let mode = anatomy.mode();
        let vectors = if encoding == EncodingKind::EVEX { mode.evex_registers() } else { mode.vector_registers() };
        let slots = anatomy.slots();
        let has_base = slots.contains(&RegisterSlot::Base);
        // Links carry bytes to and from memory too.
        let has_bytes =
            has_base && anatomy.memory_bytes == 1 || slots.iter().any(|slot| anatomy.slot_register(*slot).is_gpr8());
        let low = match mode {
            CodeMode::Bits64 => {
                anatomy.form.variants.contains(&OperandVariant::HighByte) || encoding == EncodingKind::D3NOW
            }
            CodeMode::Bits32 => has_bytes,
        };
        let (general, spare, base): (&[u8], &[u8], u8) = match mode {
            CodeMode::Bits64 => (&GENERAL_ORDER, &[9, 8], BASE_NUMBER),
            CodeMode::Bits32 => (&GENERAL_ORDER_32, &[6], LOW_BASE_NUMBER),
        };
        let mut allocator = RegisterAllocator {
            general: if low { LOW_ORDER.to_vec() } else { general.to_vec() },
            vector: (0..vectors as u8).collect(),
            mask: (1..8).collect(),
            mmx: (0..8).collect(),
            // Six values are on the stack; ST0 is its top.
            x87: (1..6).collect(),
            spare: if low { spare.to_vec() } else { Vec::new() },
            base: if low { LOW_BASE_NUMBER } else { base },
            is_base_idle: InstructionInfoFactory::new().info(&anatomy.sample).used_memory().is_empty(),
            mode,
        };
        for register in anatomy.fixed_registers() {
            allocator.exclude_register(register);
        }
        for operand in 0..anatomy.sample.op_count() {
            // The first register of a fixed group.
            let register = anatomy.sample.op_register(operand);
            if !anatomy.slots().contains(&RegisterSlot::Operand(operand)) && register.is_vector_register() {
                let number = register.number() as u8;
                allocator.vector.retain(|other| !(number..number + 4).contains(other));
            }
        }
        allocator
    }

    /// The mode of the programs.
    pub(crate) fn mode(&self) -> CodeMode {
        self.mode
    }

    /// The base register of memory operands of the form.
    pub(crate) fn base(&self) -> u8 {
        self.base
    }

    /// The base register of memory operands of other instructions beside instances.
    pub(crate) fn claim_base(&mut self) -> u8 {
        self.is_base_idle = false;
        self.base
    }

    fn bank_pool(&mut self, bank: RegisterBank) -> Option<&mut Vec<u8>> {
        match bank {
            RegisterBank::General | RegisterBank::HighByte => Some(&mut self.general),
            RegisterBank::Vector => Some(&mut self.vector),
            RegisterBank::Mask => Some(&mut self.mask),
            RegisterBank::Mmx => Some(&mut self.mmx),
            RegisterBank::X87 => Some(&mut self.x87),
            RegisterBank::Flags | RegisterBank::Memory | RegisterBank::Other => None,
        }
    }

    /// Excludes a register from allocation.
    pub(crate) fn exclude_register(&mut self, register: Register) {
        let high = HIGH_BYTES.iter().position(|other| *other == register);
        let number = high.unwrap_or(register.full_register().number()) as u8;
        if let Some(pool) = self.bank_pool(RegisterBank::from_register(register)) {
            pool.retain(|other| *other != number);
        }
        if register.full_register().is_gpr64() {
            self.spare.retain(|other| *other != number);
        }
    }

    /// Number of registers left in a bank.
    pub(crate) fn count_left(&mut self, bank: RegisterBank) -> usize {
        self.bank_pool(bank).map_or(0, |pool| pool.len())
    }

    /// Whether a register is left in a bank.
    pub(crate) fn has_register(&self, bank: RegisterBank, number: u8) -> bool {
        self.clone().bank_pool(bank).is_some_and(|pool| pool.contains(&number))
    }

    /// Allocates a register that keeps its value: at last that of addresses, if no instance has one.
    pub(crate) fn allocate_constant(&mut self, bank: RegisterBank) -> Option<u8> {
        if let Some(register) = self.bank_pool(bank)?.pop() {
            return Some(register);
        }
        let is_left = bank == RegisterBank::General && self.is_base_idle;
        self.is_base_idle &= !is_left;
        is_left.then_some(self.base)
    }

    /// Allocates a general register for other instructions than instances.
    pub(crate) fn allocate_spare(&mut self) -> Option<u8> {
        self.spare.pop().or_else(|| Some(self.allocate_rotation(RegisterBank::General, 1)?[0]))
    }

    /// Allocates up to `most` registers to rotate through. `None` if the bank is exhausted.
    pub(crate) fn allocate_rotation(&mut self, bank: RegisterBank, most: usize) -> Option<Vec<u8>> {
        let pool = self.bank_pool(bank)?;
        let count = most.min(pool.len());
        if count == 0 {
            return None;
        }
        Some(pool.drain(..count).collect())
    }
}
