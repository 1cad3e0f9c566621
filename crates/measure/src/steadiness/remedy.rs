//! Advises how to restore the states that the first copy uses up.

use super::finding::{Judge, register_name};
use cyclescope_code::asm::{CodeMode, Listing};
use iced_x86::{EncodingKind, Instruction, Register};
use std::collections::BTreeSet;

/// Largest value that counts as a number. Pointers are larger.
const LARGEST_NUMBER: u64 = u32::MAX as u64;

/// The same in 32-bit code, whose areas lie above.
const LARGEST_NUMBER_32: u64 = 0x00ff_ffff;

/// Registers that may keep a pointer.
const FREE_REGISTERS: [Register; 7] =
    [Register::R8, Register::R9, Register::R10, Register::R11, Register::R12, Register::R13, Register::RBX];

/// Pointers that string instructions move, each with one that points to another area.
const AREAS: [(Register, Register); 2] = [(Register::RDI, Register::R14), (Register::RSI, Register::RBP)];

/// Advises what to do about a function whose calls have another cost than its first one.
pub(super) fn advise_preparation(cost: &str) -> String {
    format!(
        "prepare each call with --setup NAME, a function of the same file that restores the state, or take the cost \
         as {cost}"
    )
}

impl Judge<'_> {
    /// Advises code that sets a mask again, if the first copy accessed this number of elements.
    pub(super) fn advise_mask(&self, mask: Register, instruction: &Instruction, first: u64) -> String {
        let name = register_name(mask).to_lowercase();
        let lanes = |register: Register| register.size() / instruction.memory_size().size().max(1);
        let vectors = (0..instruction.op_count()).map(|operand| instruction.op_register(operand));
        let lanes = vectors.filter(|register| register.is_vector_register()).map(lanes).max().unwrap_or_default();
        let full = match mask.is_k() {
            true => format!("kxnorw {name}, {name}, {name}"),
            false => format!("vpcmpeqd {name}, {name}, {name}"),
        };
        // With no element there is nothing to keep.
        if first == 0 || first >= lanes as u64 {
            return format!("set it before each copy with --setup '{full}'");
        }
        let instructions = self.watched.instructions();
        let is_used = |register: Register| {
            let uses = |one: &Instruction| {
                one.op_mask() == register || (0..one.op_count()).any(|operand| one.op_register(operand) == register)
            };
            instructions.iter().any(uses)
        };
        let masks = [Register::K7, Register::K6, Register::K5, Register::K4, Register::K3, Register::K2, Register::K1];
        let copy = match mask.is_k() {
            true => masks.into_iter().find(|register| !is_used(*register)).map(|free| ("kmovw", register_name(free))),
            false => self.usage.free_vector().map(|free| ("vmovdqu", format!("{}{free}", &name[..3]))),
        };
        let Some((moves, copy)) = copy else { return "set it before each copy with --setup".to_string() };
        let copy = copy.to_lowercase();
        let init = self.advise_init(vec![format!("{moves} {copy}, {name}")]);
        format!("set it before each copy{init} --setup '{moves} {name}, {copy}'")
    }

    /// Values that have to be on the x87 stack before the snippet.
    pub(super) fn needed_stack_values(&self) -> i64 {
        let mut factory = iced_x86::InstructionInfoFactory::new();
        let (mut depth, mut needed) = (0i64, 1i64);
        for instruction in self.watched.instructions() {
            let used = factory.info(instruction).used_registers().iter();
            let deepest = used
                .filter(|used| used.register().is_st() && used.access() != iced_x86::OpAccess::Write)
                .map(|used| used.register().number() as i64 + 1)
                .max();
            needed = needed.max(deepest.unwrap_or(0) - depth);
            depth -= i64::from(instruction.fpu_stack_increment_info().increment());
        }
        needed
    }

    /// Advises code that restores these registers, and pointers that the snippet moves.
    pub(super) fn advise_setup(&self, mut registers: Vec<Register>) -> String {
        let largest = match self.watched.mode() {
            CodeMode::Bits64 => LARGEST_NUMBER,
            CodeMode::Bits32 => LARGEST_NUMBER_32,
        };
        let is_pointer = |register: &Register| self.entry_value(*register).is_some_and(|value| value > largest);
        let moved = self.usage.carried().filter(|register| *register != Register::RSP);
        registers.extend(moved.filter(is_pointer));
        registers.retain(|register| *register != Register::RSP);
        let mut named = BTreeSet::new();
        registers.retain(|register| named.insert(register.number()));
        let mode = self.watched.mode();
        let exists = |register: &Register| mode.general_number(register.number()) == Some(register.number());
        let free = FREE_REGISTERS.iter().copied().filter(exists);
        let mut free = free.filter(|register| !self.usage.is_used(*register));
        let (mut saves, mut restores) = (Vec::new(), Vec::new());
        for register in registers {
            let name = self.name_register(register).to_lowercase();
            let area = (!self.usage.is_initialised(register))
                .then(|| AREAS.iter().find(|(moved, _)| *moved == register))
                .flatten()
                .map(|(_, area)| mode.register(*area))
                .filter(|area| !self.usage.is_used(*area));
            match (self.entry_value(register), area) {
                (Some(value), _) if value <= largest => {
                    let low = register_name(Register::EAX + register.number() as u32).to_lowercase();
                    restores.push(format!("mov {low}, {value}"));
                }
                (_, Some(area)) => restores.push(format!("mov {name}, {}", register_name(area).to_lowercase())),
                _ => {
                    let Some(copy) = free.next() else { continue };
                    let copy = self.name_register(copy).to_lowercase();
                    saves.push(format!("mov {copy}, {name}"));
                    restores.push(format!("mov {name}, {copy}"));
                }
            }
        }
        if restores.is_empty() {
            return "restore the state before each copy with --setup".to_string();
        }
        format!("restore it before each copy{} --setup '{}'", self.advise_init(saves), restores.join("; "))
    }

    /// Advises to add instructions to the init code.
    fn advise_init(&self, added: Vec<String>) -> String {
        if added.is_empty() {
            return " with".to_string();
        }
        let init = Listing::from_code(self.init, self.watched.mode()).text();
        let statements: Vec<String> = init.lines().map(str::to_string).chain(added).collect();
        format!(" with --init '{}'", statements.join("; "))
    }

    /// Advises code that restores the vector register that the copies carry.
    pub(super) fn advise_vector(&self) -> String {
        let Some((carried, free)) = self.usage.carried_vector().zip(self.usage.free_vector()) else {
            return "restore the numbers before each copy with --setup".to_string();
        };
        let instructions = self.watched.instructions();
        let names = |is: fn(Register) -> bool| {
            let operands = |one: &Instruction| (0..one.op_count()).any(|operand| is(one.op_register(operand)));
            instructions.iter().any(operands)
        };
        let encoding = |one: &Instruction| one.code().op_code().encoding();
        let is_vex = instructions.iter().any(|one| matches!(encoding(one), EncodingKind::VEX | EncodingKind::EVEX));
        let (moves, width) = match is_vex {
            _ if names(Register::is_zmm) => ("vmovaps", "zmm"),
            true => ("vmovaps", "ymm"),
            false => ("movaps", "xmm"),
        };
        // Other registers hold the same numbers at entry.
        let is_initialised = self.usage.is_vector_initialised(carried);
        let save = format!("{moves} {width}{free}, {width}{carried}");
        let saves = if is_initialised { vec![save] } else { Vec::new() };
        format!(
            "restore them before each copy{} --setup '{moves} {width}{carried}, {width}{free}'",
            self.advise_init(saves)
        )
    }
}
