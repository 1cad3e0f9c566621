//! The marker's instructions on the likely path: backward slices within a block.

use super::super::compiled_design::PatchSite;
use super::super::source::design::Enabling;
use super::flow_graph::{EdgeCut, EdgeKind, FlowGraph};
use super::function_code::FunctionCode;
use super::gate;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::BTreeSet;

/// The registers of a function's first arguments, in order (System V ABI for x86-64, 3.2.3).
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

/// Length of the longest NOP that enabling replaces with a call or a jump.
const PATCHED_BYTES: usize = 5;

/// The marker's instructions on the likely path.
pub(super) fn find_own_instructions(
    base: &FlowGraph,
    site: &FlowGraph,
    function: &FunctionCode,
    enabling: Enabling,
    gates: &[EdgeCut],
) -> BTreeSet<usize> {
    let likely = site.reachable_nodes(gates);
    let nodes: Vec<usize> = match enabling {
        Enabling::Variable(_) | Enabling::Immediate | Enabling::Switch(_) => {
            gates.iter().flat_map(|(branch, _)| slice_test(site, *branch)).collect()
        }
        Enabling::Jump | Enabling::Entry => {
            function.sites.iter().flat_map(|place| find_patched_nops(site, place)).collect()
        }
        Enabling::Probe => {
            let slice = function.mode.choose([slice_call as fn(&FlowGraph, usize) -> Vec<usize>, slice_stack_call]);
            gate::list_ungated_calls(base, site).into_iter().flat_map(|call| slice(site, call)).collect()
        }
        Enabling::Never => Vec::new(),
        Enabling::Tracer if !function.sites.is_empty() => {
            function.sites.iter().filter_map(|place| site.node_at_offset(place.place)).collect()
        }
        Enabling::Tracer => find_breakpoint_nops(site, &likely),
    };
    nodes.into_iter().filter(|node| likely[*node]).collect()
}

/// Executed NOPs that only align what follows.
///
/// A compiler aligns branch targets to at least 8 bytes.
pub(super) fn find_aligning_nops(flow: &FlowGraph, reached: &[bool]) -> BTreeSet<usize> {
    let targets = flow.mark_targets();
    let mut found = BTreeSet::new();
    let mut ahead = false;
    for (node, instruction) in flow.instructions().iter().enumerate().rev() {
        let aligns = ahead && reached[node] && flow.is_nop(node) && !targets[node];
        if aligns {
            found.insert(node);
        }
        ahead = aligns || (targets[node] && instruction.ip() % 8 == 0);
    }
    found
}

/// The NOPs at a place to patch.
fn find_patched_nops(flow: &FlowGraph, site: &PatchSite) -> Vec<usize> {
    let Some(first) = flow.node_at_offset(site.place) else { return Vec::new() };
    let near = |node: &usize| *node == first || flow.node_offset(*node) < site.place + PATCHED_BYTES;
    // One NOP of several bytes is the whole site. One-byte NOPs are as many as a call has bytes.
    let single = flow.instructions()[first].len() > 1;
    let last = if single { first + 1 } else { flow.instructions().len() };
    (first..last).take_while(near).take_while(|node| flow.is_nop(*node)).collect()
}

/// One-byte NOPs, for a tracer's breakpoint of one byte.
fn find_breakpoint_nops(flow: &FlowGraph, likely: &[bool]) -> Vec<usize> {
    let aligning = find_aligning_nops(flow, likely);
    let one_byte = |node: &usize| likely[*node] && flow.is_nop(*node) && flow.instructions()[*node].len() == 1;
    let all: Vec<usize> = (0..flow.instructions().len()).filter(one_byte).collect();
    let working: Vec<usize> = all.iter().copied().filter(|node| !aligning.contains(node)).collect();
    if working.is_empty() { all } else { working }
}

/// A branch, the instructions that set its flags, and those that load the tested value.
fn slice_test(flow: &FlowGraph, branch: usize) -> Vec<usize> {
    let mut slice = vec![branch];
    let mut factory = InstructionInfoFactory::new();
    let instruction = &flow.instructions()[branch];
    let mut flags = instruction.rflags_read();
    let mut registers: BTreeSet<Register> = registers_read(&mut factory, instruction).collect();
    for node in instructions_before(flow, branch) {
        let instruction = &flow.instructions()[node];
        let sets = flags & instruction.rflags_modified();
        let written: Vec<Register> =
            registers_written(&mut factory, instruction).filter(|it| registers.contains(it)).collect();
        if sets == 0 && written.is_empty() {
            continue;
        }
        slice.push(node);
        flags = flags & !sets | instruction.rflags_read();
        written.iter().for_each(|register| _ = registers.remove(register));
        registers.extend(registers_read(&mut factory, instruction));
    }
    slice
}

/// A call and the instructions that set up its arguments. Arguments fill the registers in order, so
/// the first register without a setup ends them. The number of variable arguments in `al` also
/// counts.
fn slice_call(flow: &FlowGraph, call: usize) -> Vec<usize> {
    let mut factory = InstructionInfoFactory::new();
    let mut set_up = ARGUMENTS.map(|_| None);
    let mut slice = vec![call];
    let target: Vec<Register> = registers_read(&mut factory, &flow.instructions()[call]).collect();
    let mut settled = BTreeSet::new();
    for node in instructions_before(flow, call) {
        let instruction = &flow.instructions()[node];
        for register in registers_perhaps_written(&mut factory, instruction) {
            // The last write decides. The body's own work may end in an argument register.
            if !settled.insert(register) || !is_set_up(instruction) {
                continue;
            }
            match ARGUMENTS.iter().position(|argument| *argument == register) {
                Some(index) => set_up[index] = Some(node),
                None if register == Register::RAX || target.contains(&register) => slice.push(node),
                None => {}
            }
        }
    }
    slice.extend(set_up.iter().map_while(|node| *node));
    slice
}

/// A call of 32-bit code, the instructions that put its arguments on the stack (System V ABI for
/// i386, 2.2.2), and the load of its target.
fn slice_stack_call(flow: &FlowGraph, call: usize) -> Vec<usize> {
    let mut factory = InstructionInfoFactory::new();
    let target: Vec<Register> = registers_read(&mut factory, &flow.instructions()[call]).collect();
    let is_argument = |instruction: &Instruction| match instruction.mnemonic() {
        Mnemonic::Push => true,
        Mnemonic::Mov => instruction.memory_base() == Register::ESP && instruction.op0_kind() == OpKind::Memory,
        Mnemonic::Sub => instruction.op0_register() == Register::ESP,
        _ => false,
    };
    let mut slice = vec![call];
    for node in instructions_before(flow, call) {
        let instruction = &flow.instructions()[node];
        let mut loaded = registers_written(&mut factory, instruction);
        if is_argument(instruction) || is_set_up(instruction) && loaded.any(|register| target.contains(&register)) {
            slice.push(node);
        }
    }
    // The caller removes the arguments.
    let after = flow.instructions().get(call + 1);
    if after.is_some_and(|one| one.mnemonic() == Mnemonic::Add && one.op0_register() == Register::ESP) {
        slice.push(call + 1);
    }
    slice
}

/// Whether an instruction gives a register a new value, as for an argument.
fn is_set_up(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => true,
        Mnemonic::Xor => instruction.op0_register() == instruction.op1_register(),
        _ => false,
    }
}

/// The preceding instructions in the same block, nearest first. A call ends a block, because flags
/// and argument registers do not survive it.
fn instructions_before(flow: &FlowGraph, node: usize) -> impl Iterator<Item = usize> {
    let targets = flow.mark_targets();
    let mut behind = node;
    std::iter::from_fn(move || {
        let before = behind.checked_sub(1).filter(|_| !targets[behind])?;
        let goes_on = matches!(flow.edges(before), [edge] if edge.kind == EdgeKind::Next);
        behind = before;
        (goes_on && !flow.is_call(before)).then_some(before)
    })
}

fn registers_read(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> impl Iterator<Item = Register> {
    registers_used(factory, instruction, |access| {
        matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    })
}

fn registers_written(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> impl Iterator<Item = Register> {
    registers_used(factory, instruction, |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite))
}

/// Includes registers that are written conditionally, for example by a string instruction repeated
/// zero times.
fn registers_perhaps_written(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> impl Iterator<Item = Register> {
    registers_used(factory, instruction, |access| {
        matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
    })
}

/// General registers except the stack pointer, which the whole function uses.
fn registers_used(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    wanted: impl Fn(OpAccess) -> bool,
) -> impl Iterator<Item = Register> {
    let registers = factory.info(instruction).used_registers().iter();
    let registers = registers.filter(|used| wanted(used.access())).map(|used| used.register());
    let general = registers.filter(|register| register.is_gpr()).map(|register| register.full_register());
    let found: BTreeSet<Register> = general.filter(|register| *register != Register::RSP).collect();
    found.into_iter()
}
