//! The instructions of a function in memory: all that its branches and calls reach.
//!
//! Branches and calls with an address are followed, and those through a pointer at a constant
//! address to what it points to now, as calls of other libraries are. Other targets are not known
//! from the code; a caller that finds some while the function runs gives them as further starts.
//!
//! Its limits: [`INSTRUCTIONS_MOST`]. Code beyond, and bytes that are no instructions, are not
//! followed. Nor are transactions, which abort in a copy, and calls of the next instruction, which
//! read their own address. They are refused if they are reached.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most instructions that are followed.
pub const INSTRUCTIONS_MOST: usize = 1 << 13;
/// Memory is read in parts of this many bytes, at multiples of it.
const CHUNK_BYTES: u64 = 256;
/// Bytes of the longest instruction (Intel SDM vol. 2A, 2.3.11).
const INSTRUCTION_BYTES: usize = 15;

/// Reads bytes of memory. `None` if some of them are not readable.
pub type MemoryReader<'a> = dyn FnMut(u64, usize) -> Option<Vec<u8>> + 'a;

/// The instructions of a function and of those that it calls, by address.
#[derive(Debug, Clone)]
pub struct FunctionCode {
    entry: u64,
    /// Further starts, targets of indirect branches.
    targets: Vec<u64>,
    instructions: BTreeMap<u64, Instruction>,
    /// Targets of branches through pointers at constant addresses, by the branch's address.
    pointed: BTreeMap<u64, u64>,
}

/// Memory that has been read.
struct KnownMemory<'a, 'b> {
    read: &'a mut MemoryReader<'b>,
    chunks: BTreeMap<u64, Option<Vec<u8>>>,
}

impl KnownMemory<'_, '_> {
    /// Bytes from this address on, at most this many, as far as they are readable.
    fn bytes_at(&mut self, address: u64, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let at = address + bytes.len() as u64;
            let start = at - at % CHUNK_BYTES;
            let read = &mut self.read;
            let chunk = self.chunks.entry(start).or_insert_with(|| read(start, CHUNK_BYTES as usize));
            let Some(chunk) = chunk else { break };
            bytes.extend(&chunk[(at - start) as usize..]);
        }
        bytes.truncate(most);
        bytes
    }

    fn decode_at(&mut self, address: u64) -> Option<Instruction> {
        let bytes = self.bytes_at(address, INSTRUCTION_BYTES);
        let instruction = Decoder::with_ip(64, &bytes, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn pointer_at(&mut self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes_at(address, 8).try_into().ok()?))
    }
}

impl FunctionCode {
    /// Follows the function at `entry`, and the code at `targets`. `None` if it can't be read or is
    /// refused, as is one of the targets that a copy can't have.
    pub fn discover(entry: u64, targets: &[u64], read: &mut MemoryReader) -> Option<FunctionCode> {
        let mut memory = KnownMemory { read, chunks: BTreeMap::new() };
        let (mut instructions, mut pointed) = (BTreeMap::new(), BTreeMap::new());
        let mut uncopied = BTreeSet::new();
        // A function before those that it calls.
        let mut branches = vec![entry];
        let mut calls: VecDeque<u64> = targets.iter().copied().collect();
        while let Some(mut at) = branches.pop().or_else(|| calls.pop_front()) {
            while !instructions.contains_key(&at) && instructions.len() < INSTRUCTIONS_MOST {
                let Some(instruction) = memory.decode_at(at) else { break };
                if !can_be_copied(&instruction) {
                    // Libraries can reach such code from most functions, in locks and after errors.
                    uncopied.insert(at);
                    break;
                }
                instructions.insert(at, instruction);
                let target = near_target(&instruction);
                match (instruction.flow_control(), target) {
                    (FlowControl::Call, Some(target)) => calls.push_back(target),
                    (FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch, Some(target)) => {
                        branches.push(target);
                    }
                    (FlowControl::IndirectCall | FlowControl::IndirectBranch, _) => {
                        if let Some(target) = find_pointed_target(&instruction, &mut memory) {
                            pointed.insert(at, target);
                            calls.push_back(target);
                        }
                    }
                    _ => {}
                }
                if !continues(&instruction) {
                    break;
                }
                at = instruction.next_ip();
            }
        }
        let is_refused = targets.iter().any(|target| uncopied.contains(target));
        let found = instructions.contains_key(&entry) && !is_refused;
        found.then_some(FunctionCode { entry, targets: targets.to_vec(), instructions, pointed })
    }

    /// Address of the function.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Targets that a branch or call may have whose target is only known when it runs.
    pub(super) fn possible_targets(&self, instruction: &Instruction) -> Vec<u64> {
        let pointed = self.pointed.get(&instruction.ip());
        let others = self.targets.iter().filter(|target| Some(*target) != pointed);
        pointed.into_iter().chain(others).copied().collect()
    }

    /// The instructions in the order of their addresses.
    pub(super) fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.instructions.values()
    }

    /// The target of a branch or call, as far as the code tells.
    fn find_target(&self, instruction: &Instruction) -> Option<u64> {
        near_target(instruction).or_else(|| self.pointed.get(&instruction.ip()).copied())
    }

    /// Addresses that instructions lead to and that are not followed.
    pub(super) fn left_out(&self) -> BTreeSet<u64> {
        let next = |one: &Instruction| continues(one).then(|| one.next_ip());
        let all = self.instructions().flat_map(|one| [self.find_target(one), next(one)]).flatten();
        all.chain(self.targets.iter().copied()).filter(|address| !self.instructions.contains_key(address)).collect()
    }

    /// The first instruction of each block, in order, with the number of its instructions. Control
    /// enters a block only at its start.
    pub fn blocks(&self) -> BTreeMap<u64, u64> {
        let mut starts: BTreeSet<u64> = self.targets.iter().copied().chain([self.entry]).collect();
        let mut expected = None;
        for instruction in self.instructions() {
            starts.extend(self.find_target(instruction));
            if instruction.flow_control() == FlowControl::ConditionalBranch {
                starts.insert(instruction.next_ip());
            }
            if expected != Some(instruction.ip()) {
                starts.insert(instruction.ip());
            }
            expected = continues(instruction).then(|| instruction.next_ip());
        }
        let mut blocks = BTreeMap::new();
        let mut block = self.entry;
        for address in self.instructions.keys() {
            if starts.contains(address) {
                block = *address;
            }
            *blocks.entry(block).or_insert(0) += 1;
        }
        blocks
    }
}

/// Whether an instruction does the same in a copy: it starts no transaction, and does not read its
/// own address by a call.
fn can_be_copied(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::XbeginXabortXend => false,
        FlowControl::Call => near_target(instruction) != Some(instruction.next_ip()),
        _ => true,
    }
}

/// The address that a near branch or call names.
fn near_target(instruction: &Instruction) -> Option<u64> {
    let is_near = matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    (instruction.op_count() > 0 && is_near).then(|| instruction.near_branch_target())
}

/// Whether the next instruction runs after this one, or after what it calls.
pub(super) fn continues(instruction: &Instruction) -> bool {
    !matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception
    )
}

/// The target of a branch through a pointer at a constant address.
fn find_pointed_target(instruction: &Instruction, memory: &mut KnownMemory) -> Option<u64> {
    let is_constant = instruction.op0_kind() == OpKind::Memory
        && instruction.is_ip_rel_memory_operand()
        && instruction.memory_index() == Register::None;
    if !is_constant || !matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64) {
        return None;
    }
    memory.pointer_at(instruction.ip_rel_memory_address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse_assembly;

    const AT: u64 = 0x7f12_3456_7000;

    /// Follows code at [`AT`], which no other memory surrounds.
    fn discover(text: &str, targets: &[u64]) -> Option<FunctionCode> {
        discover_bytes(parse_assembly(text).unwrap().bytes(), targets)
    }

    fn discover_bytes(code: &[u8], targets: &[u64]) -> Option<FunctionCode> {
        let mut bytes = code.to_vec();
        bytes.resize(bytes.len().next_multiple_of(CHUNK_BYTES as usize), 0);
        FunctionCode::discover(AT, targets, &mut |address, length| {
            let start = address.checked_sub(AT)? as usize;
            bytes.get(start..start + length).map(<[u8]>::to_vec)
        })
    }

    #[test]
    fn branches_and_calls_are_followed_and_blocks_begin_at_their_targets() {
        let code = discover("1: dec eax; jnz 1b; call 2f; ret; nop; 2: cmp eax, 5; ja 1b; ret", &[]).unwrap();
        let names: Vec<String> =
            code.instructions().map(|one| format!("{:?}", one.mnemonic()).to_lowercase()).collect();
        assert_eq!(names, ["dec", "jne", "call", "ret", "cmp", "ja", "ret"]);
        assert_eq!(code.blocks().values().copied().collect::<Vec<u64>>(), [2, 2, 2, 1]);
        assert!(code.left_out().is_empty());
    }

    #[test]
    fn targets_in_registers_are_found_only_if_they_are_given() {
        let text = "jmp rax; nop; nop; inc eax; ret";
        assert_eq!(discover(text, &[]).unwrap().instructions().count(), 1);
        assert_eq!(discover(text, &[AT + 4]).unwrap().instructions().count(), 3);
    }

    #[test]
    fn unreadable_code_is_left_out_and_own_addresses_are_refused() {
        // `jmp` over 0x10_0000 - 5 bytes.
        let far = discover_bytes(&[0xe9, 0xfb, 0xff, 0x0f, 0x00], &[]).unwrap();
        assert_eq!(far.left_out().into_iter().collect::<Vec<u64>>(), [AT + 0x10_0000]);
        assert!(discover("call 1f; 1: pop rax; ret", &[]).is_none());
    }

    #[test]
    fn transactions_are_left_out_and_refused_only_if_they_are_reached() {
        // test eax, eax; jz 1f; xbegin 1f; 1: ret
        let bytes = [0x85, 0xc0, 0x74, 0x06, 0xc7, 0xf8, 0, 0, 0, 0, 0xc3];
        let transaction = AT + 4;
        let code = discover_bytes(&bytes, &[]).unwrap();
        assert_eq!(code.instructions().count(), 3);
        assert_eq!(code.left_out().into_iter().collect::<Vec<u64>>(), [transaction]);
        assert!(discover_bytes(&bytes, &[transaction]).is_none());
    }

    #[test]
    fn own_addresses_are_refused_only_if_they_are_reached() {
        let text = "test eax, eax; jz 1f; call 2f; 2: pop rax; 1: ret";
        assert_eq!(discover(text, &[]).unwrap().instructions().count(), 3);
        assert!(discover(text, &[AT + 4]).is_none());
    }
}
