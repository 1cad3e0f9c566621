//! A program's decoded body: the needs of its instructions, as numbers that a pipeline can process
//! quickly.

use super::address::{AccessExpression, RegisterChange, SymbolicRegisters, collect_changes};
use super::form::SimulatedForm;
use super::form_key::FormKey;
use super::model::CoreModel;
use super::operands::{FLAG_GROUPS, SimulatedSlot, is_write, reads_memory};
use super::ports::PortSets;
use super::quick_hash::QuickMap;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_code::program::Program;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, Register};
use std::ops::Range;

/// Registers by iced's numbers, then the groups of flags.
pub(super) const RESOURCE_COUNT: usize = 256 + FLAG_GROUPS.len();

/// A longer path through a body without its loop counts as endless.
const LONGEST_PATH: usize = 1 << 18;

/// A register or flag group that is read or written, and the input or output of the form that it
/// is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceUse {
    pub(super) resource: u16,
    pub(super) slot: u8,
}

/// A memory access.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedAccess {
    pub(super) expression: AccessExpression,
    pub(super) size: i64,
    pub(super) load: bool,
    pub(super) store: bool,
    /// Whether memory renaming may follow it.
    pub(super) renamable: bool,
    /// Whether it stores past the caches.
    pub(super) combined: bool,
}

/// An instruction of a body.
#[derive(Debug, Clone)]
pub(super) struct BodyOperation {
    pub(super) form: usize,
    pub(super) inputs: Range<usize>,
    pub(super) outputs: Range<usize>,
    pub(super) accesses: Range<usize>,
    pub(super) moves: Range<usize>,
    /// How far the top of the x87 stack moves.
    pub(super) stack: i8,
}

/// The instructions of one iteration, in execution order.
#[derive(Debug, Default)]
pub(super) struct DecodedBody {
    pub(super) operations: Vec<BodyOperation>,
    pub(super) inputs: Vec<ResourceUse>,
    pub(super) outputs: Vec<ResourceUse>,
    pub(super) accesses: Vec<SimulatedAccess>,
    pub(super) moves: Vec<RegisterChange>,
    /// The registers' values at its entry.
    pub(super) values: SymbolicRegisters,
}

/// The forms used so far.
#[derive(Debug)]
pub(super) struct SimulatedForms {
    pub(super) model: CoreModel,
    pub(super) sets: PortSets,
    pub(super) all: Vec<SimulatedForm>,
    known: QuickMap<FormKey, usize>,
    factory: InstructionInfoFactory,
}

impl SimulatedForms {
    pub(super) fn new(model: CoreModel) -> SimulatedForms {
        let sets = model.port_sets();
        let factory = InstructionInfoFactory::new();
        SimulatedForms { model, sets, all: Vec::new(), known: QuickMap::default(), factory }
    }

    fn form_number(&mut self, instruction: &Instruction) -> usize {
        *self.known.entry(FormKey::from_instruction(instruction)).or_insert_with(|| {
            self.all.push(SimulatedForm::derive(&self.model, &self.sets, instruction));
            self.all.len() - 1
        })
    }
}

impl DecodedBody {
    /// # Panics
    ///
    /// If the code cannot be decoded, or loops endlessly.
    pub(super) fn decode_program(program: &Program, forms: &mut SimulatedForms) -> DecodedBody {
        let mut body = DecodedBody::default();
        for instruction in Decoder::new(program.mode().bits(), program.init(), DecoderOptions::NONE) {
            assert_decoded(&instruction, program.init());
            collect_changes(&instruction, &mut body.moves);
        }
        for change in body.moves.drain(..) {
            body.values.apply_change(change);
        }
        for instruction in follow_path(program) {
            body.push_instruction(&instruction, forms);
        }
        body
    }

    fn push_instruction(&mut self, instruction: &Instruction, forms: &mut SimulatedForms) {
        let number = forms.form_number(instruction);
        let starts = [self.inputs.len(), self.outputs.len(), self.accesses.len(), self.moves.len()];
        let form = &forms.all[number];
        let operands = &form.operands;
        for (slot, input) in operands.inputs.iter().enumerate() {
            bind_slot(*input, instruction, operands.flags_read, slot as u8, &mut self.inputs);
            let only_address = *input == SimulatedSlot::Address && operands.loads + operands.stores == 0;
            if only_address {
                let registers = [instruction.memory_base(), instruction.memory_index()];
                let registers = registers.iter().filter(|register| **register != Register::None);
                let uses = registers.map(|register| register_use(*register, slot as u8));
                self.inputs.extend(uses);
            }
        }
        for (slot, output) in operands.outputs.iter().enumerate() {
            bind_slot(*output, instruction, operands.flags_written, slot as u8, &mut self.outputs);
        }
        if operands.loads + operands.stores > 0 {
            let general = !operands.vector;
            let combined = is_non_temporal_store(instruction);
            let renamable = general && !combined && !is_atomic(instruction);
            for memory in forms.factory.info(instruction).used_memory() {
                let size = memory.memory_size().size().max(1) as i64;
                self.accesses.push(SimulatedAccess {
                    expression: AccessExpression {
                        base: memory.base(),
                        index: memory.index(),
                        scale: i64::from(memory.scale()),
                        displacement: memory.displacement() as i64,
                    },
                    size,
                    load: reads_memory(memory.access()),
                    store: is_write(memory.access()),
                    combined,
                    renamable: renamable && (size == 4 || size == 8) && memory.index() == Register::None,
                });
            }
        }
        collect_changes(instruction, &mut self.moves);
        self.operations.push(BodyOperation {
            form: number,
            inputs: starts[0]..self.inputs.len(),
            outputs: starts[1]..self.outputs.len(),
            accesses: starts[2]..self.accesses.len(),
            moves: starts[3]..self.moves.len(),
            stack: instruction.fpu_stack_increment_info().increment() as i8,
        });
    }
}

fn bind_slot(slot: SimulatedSlot, instruction: &Instruction, flags: u8, number: u8, into: &mut Vec<ResourceUse>) {
    match slot {
        SimulatedSlot::Operand(operand) => into.push(register_use(instruction.op_register(operand.into()), number)),
        SimulatedSlot::Implicit(register) => into.push(register_use(register, number)),
        SimulatedSlot::Mask => into.push(register_use(instruction.op_mask(), number)),
        SimulatedSlot::Flags => {
            let groups = (0..FLAG_GROUPS.len()).filter(|group| flags >> group & 1 != 0);
            into.extend(groups.map(|group| ResourceUse { resource: (256 + group) as u16, slot: number }));
        }
        SimulatedSlot::Address | SimulatedSlot::Memory => {}
    }
}

fn register_use(register: Register, slot: u8) -> ResourceUse {
    ResourceUse { resource: register.full_register() as u16, slot }
}

fn assert_decoded(instruction: &Instruction, code: &[u8]) {
    let at = instruction.ip() as usize;
    let bytes = &code[at.min(code.len())..(at + 16).min(code.len())];
    assert!(!instruction.is_invalid(), "the simulated core cannot decode {bytes:02x?} at {at:#x}");
}

/// The instructions of one iteration. Branches to addresses inside the body are followed if they
/// are unconditional; conditional ones are never taken. Branches to other places continue with the
/// next instruction.
fn follow_path(program: &Program) -> Vec<Instruction> {
    let (code, body) = (program.code(), program.body_range());
    let mut decoder = Decoder::new(program.mode().bits(), &code[..body.end], DecoderOptions::NONE);
    let (mut path, mut returns, mut at) = (Vec::new(), Vec::new(), body.start);
    while at < body.end {
        decoder.set_position(at).expect("the body is in the code");
        decoder.set_ip(at as u64);
        let instruction = decoder.decode();
        assert_decoded(&instruction, code);
        at = decoder.position();
        path.push(instruction);
        assert!(path.len() < LONGEST_PATH, "the simulated core runs in a circle at {at:#x}");
        let target = instruction.near_branch_target() as usize;
        let follows = instruction.is_jmp_short_or_near() || instruction.is_call_near();
        if follows && body.contains(&target) {
            if instruction.is_call_near() {
                returns.push(at);
            }
            at = target;
        } else if instruction.mnemonic() == Mnemonic::Ret {
            at = returns.pop().unwrap_or(at);
        }
    }
    path
}
