//! A program's body, decoded: what its instructions need, as numbers that a pipeline can run through quickly.

use super::address::{Expression, Move, Values, moves};
use super::form::Form;
use super::hashing::QuickMap;
use super::key::FormKey;
use super::model::CoreModel;
use super::operands::{FLAG_GROUPS, Slot, reads_memory, writes};
use super::ports::PortSets;
use cyclescope_code::asm::access::{is_atomic, is_non_temporal_store};
use cyclescope_code::program::Program;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, Register};
use std::ops::Range;

/// Registers by iced's numbers, then the groups of flags.
pub(super) const RESOURCES: usize = 256 + FLAG_GROUPS.len();

/// A longer path through a body without its loop is one that never ends.
const LONGEST_PATH: usize = 1 << 18;

/// What is read or written, and as which of the form's inputs or outputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) resource: u16,
    pub(super) slot: u8,
}

/// A memory access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) expression: Expression,
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
pub(super) struct Operation {
    pub(super) form: usize,
    pub(super) inputs: Range<usize>,
    pub(super) outputs: Range<usize>,
    pub(super) accesses: Range<usize>,
    pub(super) moves: Range<usize>,
    /// By how much the top of the x87 stack moves.
    pub(super) stack: i8,
}

/// The instructions of one iteration, in the order in which they run.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) operations: Vec<Operation>,
    pub(super) inputs: Vec<Use>,
    pub(super) outputs: Vec<Use>,
    pub(super) accesses: Vec<Access>,
    pub(super) moves: Vec<Move>,
    /// What registers hold at its entry.
    pub(super) values: Values,
}

/// The forms that were met.
#[derive(Debug)]
pub(super) struct Forms {
    pub(super) model: CoreModel,
    pub(super) sets: PortSets,
    pub(super) all: Vec<Form>,
    known: QuickMap<FormKey, usize>,
    factory: InstructionInfoFactory,
}

impl Forms {
    pub(super) fn new(model: CoreModel) -> Forms {
        let sets = model.sets();
        let factory = InstructionInfoFactory::new();
        Forms { model, sets, all: Vec::new(), known: QuickMap::default(), factory }
    }

    fn number(&mut self, instruction: &Instruction) -> usize {
        *self.known.entry(FormKey::of(instruction)).or_insert_with(|| {
            self.all.push(Form::derive(&self.model, &self.sets, instruction));
            self.all.len() - 1
        })
    }
}

impl Body {
    /// # Panics
    ///
    /// Where the code cannot be decoded, or runs in a circle.
    pub(super) fn of(program: &Program, forms: &mut Forms) -> Body {
        let mut body = Body::default();
        for instruction in Decoder::new(64, program.init(), DecoderOptions::NONE) {
            check(&instruction, program.init());
            moves(&instruction, &mut body.moves);
        }
        for change in body.moves.drain(..) {
            body.values.apply(change);
        }
        for instruction in path(program) {
            body.push(&instruction, forms);
        }
        body
    }

    fn push(&mut self, instruction: &Instruction, forms: &mut Forms) {
        let number = forms.number(instruction);
        let starts = [self.inputs.len(), self.outputs.len(), self.accesses.len(), self.moves.len()];
        let form = &forms.all[number];
        let operands = &form.operands;
        for (slot, input) in operands.inputs.iter().enumerate() {
            bind(*input, instruction, operands.flags_read, slot as u8, &mut self.inputs);
            let only_address = *input == Slot::Address && operands.loads + operands.stores == 0;
            if only_address {
                let registers = [instruction.memory_base(), instruction.memory_index()];
                let registers = registers.iter().filter(|register| **register != Register::None);
                let uses = registers.map(|register| register_use(*register, slot as u8));
                self.inputs.extend(uses);
            }
        }
        for (slot, output) in operands.outputs.iter().enumerate() {
            bind(*output, instruction, operands.flags_written, slot as u8, &mut self.outputs);
        }
        if operands.loads + operands.stores > 0 {
            let general = !operands.vector;
            let combined = is_non_temporal_store(instruction);
            let renamable = general && !combined && !is_atomic(instruction);
            for memory in forms.factory.info(instruction).used_memory() {
                let size = memory.memory_size().size().max(1) as i64;
                self.accesses.push(Access {
                    expression: Expression {
                        base: memory.base(),
                        index: memory.index(),
                        scale: i64::from(memory.scale()),
                        displacement: memory.displacement() as i64,
                    },
                    size,
                    load: reads_memory(memory.access()),
                    store: writes(memory.access()),
                    combined,
                    renamable: renamable && (size == 4 || size == 8) && memory.index() == Register::None,
                });
            }
        }
        moves(instruction, &mut self.moves);
        self.operations.push(Operation {
            form: number,
            inputs: starts[0]..self.inputs.len(),
            outputs: starts[1]..self.outputs.len(),
            accesses: starts[2]..self.accesses.len(),
            moves: starts[3]..self.moves.len(),
            stack: instruction.fpu_stack_increment_info().increment() as i8,
        });
    }
}

fn bind(slot: Slot, instruction: &Instruction, flags: u8, number: u8, into: &mut Vec<Use>) {
    match slot {
        Slot::Operand(operand) => into.push(register_use(instruction.op_register(operand.into()), number)),
        Slot::Implicit(register) => into.push(register_use(register, number)),
        Slot::Mask => into.push(register_use(instruction.op_mask(), number)),
        Slot::Flags => {
            let groups = (0..FLAG_GROUPS.len()).filter(|group| flags >> group & 1 != 0);
            into.extend(groups.map(|group| Use { resource: (256 + group) as u16, slot: number }));
        }
        Slot::Address | Slot::Memory => {}
    }
}

fn register_use(register: Register, slot: u8) -> Use {
    Use { resource: register.full_register() as u16, slot }
}

fn check(instruction: &Instruction, code: &[u8]) {
    let at = instruction.ip() as usize;
    let bytes = &code[at.min(code.len())..(at + 16).min(code.len())];
    assert!(!instruction.is_invalid(), "the simulated core cannot decode {bytes:02x?} at {at:#x}");
}

/// The instructions of one iteration. Branches to addresses inside the body are followed where they always branch,
/// and conditional ones never do; those to anywhere else go on to the next instruction.
fn path(program: &Program) -> Vec<Instruction> {
    let (code, body) = (program.code(), program.body());
    let mut decoder = Decoder::new(64, &code[..body.end], DecoderOptions::NONE);
    let (mut path, mut returns, mut at) = (Vec::new(), Vec::new(), body.start);
    while at < body.end {
        decoder.set_position(at).expect("the body is in the code");
        decoder.set_ip(at as u64);
        let instruction = decoder.decode();
        check(&instruction, code);
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
