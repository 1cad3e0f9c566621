//! Symbolic values of general registers: enough to recognise equal addresses.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::collections::HashMap;

/// The XOR of symbols, plus a number. With two or more symbols, the number is zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Value {
    symbols: Vec<u32>,
    offset: i64,
}

/// Symbols below this are the initial values of the general registers.
const FIRST_UNKNOWN: u32 = 16;

impl Value {
    fn symbol(symbol: u32) -> Value {
        Value { symbols: vec![symbol], offset: 0 }
    }

    /// The register that initially held this address, and the number added. `None` for other
    /// values.
    pub fn area(&self) -> Option<(u32, i64)> {
        match self.symbols[..] {
            [symbol] if symbol < FIRST_UNKNOWN => Some((symbol, self.offset)),
            _ => None,
        }
    }

    fn is_zero(&self) -> bool {
        *self == Value::default()
    }

    fn plus(&self, number: i64) -> Option<Value> {
        (self.symbols.len() < 2)
            .then(|| Value { symbols: self.symbols.clone(), offset: self.offset.wrapping_add(number) })
    }

    fn xor(&self, other: &Value) -> Option<Value> {
        if self == other {
            return Some(Value::default());
        }
        if other.is_zero() || self.is_zero() {
            return Some(if self.is_zero() { other.clone() } else { self.clone() });
        }
        if self.offset != 0 || other.offset != 0 {
            return None;
        }
        let mut symbols: Vec<u32> = [&self.symbols[..], &other.symbols].concat();
        symbols.sort();
        let once = |symbol: &u32| symbols.iter().filter(|other| *other == symbol).count() == 1;
        Some(Value { symbols: symbols.iter().copied().filter(once).collect(), offset: 0 })
    }
}

/// The values of registers and of 8-byte words in memory.
#[derive(Debug, Clone)]
pub struct Values {
    registers: Vec<Value>,
    memory: HashMap<(u32, i64), Value>,
    /// Symbols of sums, so that an XOR can use them.
    sums: HashMap<Value, u32>,
    unknown: u32,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            registers: (0..FIRST_UNKNOWN).map(Value::symbol).collect(),
            memory: HashMap::new(),
            sums: HashMap::new(),
            unknown: FIRST_UNKNOWN,
        }
    }
}

impl Values {
    pub fn of(&self, register: Register) -> Value {
        match register.full_register().is_gpr64() {
            true => self.registers[register.full_register().number()].clone(),
            false => Value::default(),
        }
    }

    fn unknown(&mut self) -> Value {
        self.unknown += 1;
        Value::symbol(self.unknown)
    }

    /// A register's value, with a sum as one symbol.
    fn whole(&mut self, register: Register) -> Value {
        let value = self.of(register);
        if value.offset == 0 {
            return value;
        }
        self.unknown += 1;
        Value::symbol(*self.sums.entry(value).or_insert(self.unknown))
    }

    /// The area and offset of an address. `None` if unknown.
    pub fn address(&self, base: Register, index: Register, displacement: i64) -> Option<(u32, i64)> {
        let index = if index.is_vector_register() { Register::None } else { index };
        let (base, index) = (self.of(base), self.of(index));
        let (area, offset) = if index.is_zero() { base.area() } else { None }?;
        Some((area, offset.wrapping_add(displacement)))
    }

    /// Executes an instruction that writes these registers and possibly memory.
    pub fn step(&mut self, instruction: &Instruction, written: &[Register], stores: &[(u32, i64)]) {
        let known = self.known(instruction);
        let moved = self.moved(instruction);
        for register in written.iter().filter(|register| register.is_gpr64()) {
            let value = match (&known, moved.iter().find(|(other, _)| other == register)) {
                (Some((other, value)), _) if other == register => value.clone(),
                (_, Some((_, value))) => value.clone(),
                _ => self.unknown(),
            };
            self.registers[register.number()] = value;
        }
        for store in stores {
            let plain = instruction.mnemonic() == Mnemonic::Mov && instruction.op_register(1).is_gpr64();
            let value = if plain { self.of(instruction.op_register(1)) } else { self.unknown() };
            self.memory.insert(*store, value);
        }
    }

    /// The new value of the first operand, if known.
    fn known(&mut self, instruction: &Instruction) -> Option<(Register, Value)> {
        let register = |operand: u32| {
            let is = operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Register;
            is.then(|| instruction.op_register(operand))
        };
        let to = register(0)?;
        let full = to.full_register();
        let old = self.of(full);
        let other = register(1);
        let value = match instruction.mnemonic() {
            Mnemonic::Xor if other == Some(to) && (to.is_gpr64() || to.is_gpr32()) => Value::default(),
            _ if !to.is_gpr64() => return None,
            Mnemonic::Mov => match other {
                Some(from) => self.of(from),
                None => self.loaded(instruction)?,
            },
            Mnemonic::Xor => old.xor(&self.whole(other?))?,
            Mnemonic::And if old.is_zero() || self.of(other?).is_zero() => Value::default(),
            Mnemonic::Or if old.is_zero() => self.of(other?),
            Mnemonic::Or if self.of(other?).is_zero() || self.of(other?) == old => old,
            Mnemonic::Lea => self.of(instruction.memory_base()).plus(instruction.memory_displacement64() as i64)?,
            _ => return None,
        };
        Some((full, value))
    }

    fn loaded(&self, instruction: &Instruction) -> Option<Value> {
        if instruction.op1_kind() != OpKind::Memory {
            return None;
        }
        let displacement = instruction.memory_displacement64() as i64;
        let at = self.address(instruction.memory_base(), instruction.memory_index(), displacement)?;
        self.memory.get(&at).cloned()
    }

    /// The implied address registers that the instruction advances.
    fn moved(&self, instruction: &Instruction) -> Vec<(Register, Value)> {
        let mut moved = Vec::new();
        let (one, other) = (instruction.op0_register(), instruction.op1_register());
        if instruction.mnemonic() == Mnemonic::Xchg && one.is_gpr64() && other.is_gpr64() {
            moved.extend([(one, self.of(other)), (other, self.of(one))]);
        }
        let stack = instruction.stack_pointer_increment();
        if stack != 0 {
            moved.extend(self.of(Register::RSP).plus(stack.into()).map(|value| (Register::RSP, value)));
        }
        let has = |kind| (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == kind);
        let step = instruction.memory_size().size() as i64;
        if !instruction.has_rep_prefix() && !instruction.has_repne_prefix() && instruction.is_string_instruction() {
            for (kind, register) in [(OpKind::MemorySegRSI, Register::RSI), (OpKind::MemoryESRDI, Register::RDI)] {
                if has(kind) {
                    moved.extend(self.of(register).plus(step).map(|value| (register, value)));
                }
            }
        }
        moved
    }
}
