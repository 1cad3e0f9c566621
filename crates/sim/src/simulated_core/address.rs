//! Addresses of memory accesses, known without running the code.
//!
//! An address is a symbol and an offset: the initial value of its base register, and the sum of
//! later additions. Copies and additions of constants are followed, so that two base registers may
//! be known to hold one address. Any other write is assumed to leave a register's value unchanged,
//! as chains through an address do.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Number of registers, by iced's numbers; 0 means no register.
const REGISTER_COUNT: usize = 256;

/// The symbol of constants, which are offsets from it.
const CONSTANT_SYMBOL: u32 = REGISTER_COUNT as u32;

/// The known value of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SymbolicValue {
    origin: u32,
    offset: i64,
}

/// How an instruction changes a register that may be part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterChange {
    /// A register becomes the sum of another and a constant.
    Add {
        to: Register,
        from: Register,
        constant: i64,
    },
    Set {
        to: Register,
        constant: i64,
    },
    /// A register becomes a copy of another if it holds zero, and stays unchanged otherwise.
    Fill {
        to: Register,
        from: Register,
    },
    Swap {
        one: Register,
        other: Register,
    },
}

/// The known values of all registers.
#[derive(Debug, Clone)]
pub(super) struct SymbolicRegisters([SymbolicValue; REGISTER_COUNT]);

/// A symbol and an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SymbolicAddress {
    pub(super) symbol: u64,
    pub(super) offset: i64,
}

/// The address of an access as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessExpression {
    pub(super) base: Register,
    pub(super) index: Register,
    pub(super) scale: i64,
    pub(super) displacement: i64,
}

impl Default for SymbolicRegisters {
    /// Each register holds its own symbol.
    fn default() -> SymbolicRegisters {
        let mut values = [SymbolicValue { origin: CONSTANT_SYMBOL, offset: 0 }; REGISTER_COUNT];
        for (number, value) in values.iter_mut().enumerate().skip(1) {
            value.origin = number as u32;
        }
        values[Register::RIP as usize].origin = CONSTANT_SYMBOL;
        SymbolicRegisters(values)
    }
}

impl SymbolicRegisters {
    pub(super) fn resolve_address(&self, expression: &AccessExpression) -> SymbolicAddress {
        let base = self.0[expression.base as usize];
        let index = self.0[expression.index as usize];
        // A constant in the index is not part of the symbol.
        let index_symbol = if index.origin == CONSTANT_SYMBOL { 0 } else { index.origin * 8 + expression.scale as u32 };
        let offset = index.offset.wrapping_mul(expression.scale).wrapping_add(base.offset);
        SymbolicAddress {
            symbol: u64::from(base.origin) << 32 | u64::from(index_symbol),
            offset: offset.wrapping_add(expression.displacement),
        }
    }

    pub(super) fn apply_change(&mut self, change: RegisterChange) {
        let values = &mut self.0;
        match change {
            RegisterChange::Add { to, from, constant } => {
                let SymbolicValue { origin, offset } = values[from as usize];
                values[to as usize] = SymbolicValue { origin, offset: offset.wrapping_add(constant) };
            }
            RegisterChange::Set { to, constant } => {
                values[to as usize] = SymbolicValue { origin: CONSTANT_SYMBOL, offset: constant };
            }
            RegisterChange::Fill { to, from } => {
                if values[to as usize] == (SymbolicValue { origin: CONSTANT_SYMBOL, offset: 0 }) {
                    values[to as usize] = values[from as usize];
                }
            }
            RegisterChange::Swap { one, other } => values.swap(one as usize, other as usize),
        }
    }
}

/// Adds the known changes of registers by an instruction.
pub(super) fn collect_changes(instruction: &Instruction, moves: &mut Vec<RegisterChange>) {
    moves.extend(explicit_change(instruction));
    let stack = instruction.stack_pointer_increment();
    if stack != 0 {
        moves.push(RegisterChange::Add { to: Register::RSP, from: Register::RSP, constant: stack.into() });
    }
    if instruction.is_string_instruction() && !instruction.has_rep_prefix() && !instruction.has_repne_prefix() {
        let has = |kind| (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == kind);
        // The direction flag is clear at the start of a snippet.
        let constant = instruction.memory_size().size() as i64;
        for (kind, register) in [(OpKind::MemorySegRSI, Register::RSI), (OpKind::MemoryESRDI, Register::RDI)] {
            if has(kind) {
                moves.push(RegisterChange::Add { to: register, from: register, constant });
            }
        }
    }
}

fn explicit_change(instruction: &Instruction) -> Option<RegisterChange> {
    let register = |operand: u32| {
        let named = operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Register;
        named.then(|| instruction.op_register(operand)).filter(|register| register.is_gpr64())
    };
    let immediate = || instruction.try_immediate(1).ok().map(|value| value as i64);
    let low = instruction.op0_register();
    if instruction.mnemonic() == Mnemonic::Xor && low.is_gpr32() && instruction.op1_register() == low {
        return Some(RegisterChange::Set { to: low.full_register(), constant: 0 });
    }
    let to = register(0)?;
    let add = |from, constant| Some(RegisterChange::Add { to, from, constant });
    match instruction.mnemonic() {
        Mnemonic::Mov => match register(1) {
            Some(from) => add(from, 0),
            None => Some(RegisterChange::Set { to, constant: immediate()? }),
        },
        Mnemonic::Lea if instruction.memory_index() == Register::None => {
            let base = instruction.memory_base();
            let constant = instruction.memory_displacement64() as i64;
            if base.is_gpr64() { add(base, constant) } else { Some(RegisterChange::Set { to, constant }) }
        }
        Mnemonic::Add => add(to, immediate()?),
        Mnemonic::Sub => add(to, immediate()?.wrapping_neg()),
        Mnemonic::Inc => add(to, 1),
        Mnemonic::Dec => add(to, -1),
        Mnemonic::Xor if register(1) == Some(to) => Some(RegisterChange::Set { to, constant: 0 }),
        Mnemonic::Or => Some(RegisterChange::Fill { to, from: register(1)? }),
        Mnemonic::Xchg => Some(RegisterChange::Swap { one: to, other: register(1)? }),
        _ => None,
    }
}
