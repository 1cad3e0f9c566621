//! The code of a mix: a loop of independent copies of its forms.

use super::mix_form::MixForm;
use super::mix_order::MixOrder;
use super::mix_registers::{FormRegisters, SlotRotation, allocate_registers, has_one_encoding};
use crate::bodies::throughput_recipe::AddressPattern;
use crate::forms::form_anatomy::{OperandPlace, RegisterSlot, encode_instructions};
use cyclescope_code::asm::{CodeMode, format_instruction};
use iced_x86::Instruction;

/// Upper limit of instructions in a loop. They must fit into buffers of decoded instructions: Skylake
/// holds 1536.
const INSTRUCTIONS_MOST: usize = 768;
/// Upper limit of copies in a mix.
const COPIES_MOST: usize = 480;
/// Addresses that loads and stores rotate through, and lines of those that do both: a line needs time
/// until its next use.
const ADDRESSES: AddressPattern = AddressPattern::Adjacent(4);
const UPDATED_ADDRESSES: AddressPattern = AddressPattern::Lines(24);

/// The body of a loop that repeats a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct MixBody {
    /// Instructions of one iteration.
    pub instructions: Vec<Instruction>,
    /// How often an iteration repeats the mix.
    pub repeats: usize,
    /// Machine code of one iteration.
    pub code: Vec<u8>,
    /// Machine code that runs once before the loop.
    pub init: Vec<u8>,
    /// The order of the copies.
    pub order: MixOrder,
    /// Registers that the results of each form rotate through, the fewest of its operands.
    pub registers: Vec<usize>,
}

impl MixBody {
    /// The body of a mix of these forms with these numbers of copies, of at least `least` instructions.
    /// An error says why there is none.
    pub fn new(forms: &[&MixForm], counts: &[usize], order: MixOrder, least: usize) -> Result<MixBody, String> {
        let total: usize = counts.iter().sum();
        if total == 0 || counts.contains(&0) || forms.len() != counts.len() {
            return Err("a mix needs a copy of each form".to_string());
        }
        if total > COPIES_MOST {
            return Err(format!("a mix has at most {COPIES_MOST} copies in all"));
        }
        if !has_one_encoding(forms) {
            return Err("legacy and VEX vector code must not mix".to_string());
        }
        let mut registers = allocate_registers(forms, counts)
            .ok_or_else(|| "the forms need more registers than there are".to_string())?;
        let repeats = choose_repeats(&registers, counts, least);
        for (form, count) in registers.iter_mut().zip(counts) {
            form.rotations.iter_mut().for_each(|rotation| rotation.even_out(count * repeats));
        }
        let instructions = build_instructions(forms, &registers, &order.arrange(counts, repeats))
            .ok_or_else(|| "an instance can't be encoded".to_string())?;
        let code = encode_instructions(CodeMode::Bits64, &instructions)
            .ok_or_else(|| "an instance can't be encoded".to_string())?;
        let init = forms.iter().flat_map(|form| form.init.iter().copied()).collect();
        let fewest = |form: &FormRegisters| form.rotations.iter().map(|rotation| rotation.registers.len()).min();
        let registers = registers.iter().map(|form| fewest(form).unwrap_or(0)).collect();
        Ok(MixBody { instructions, repeats, code, init, order, registers })
    }

    /// The body of a chain: copies of a form in the same registers. `None` without code.
    pub(super) fn new_chain(form: &MixForm, copies: usize) -> Option<MixBody> {
        let mut registers = allocate_registers(&[form], &[copies])?;
        registers[0].rotations.iter_mut().for_each(|rotation| rotation.registers.truncate(1));
        let instructions = build_instructions(&[form], &registers, &vec![0; copies])?;
        let code = encode_instructions(CodeMode::Bits64, &instructions)?;
        let (init, order) = (form.init.clone(), MixOrder::Blocks);
        Some(MixBody { instructions, repeats: copies, code, init, order, registers: vec![1] })
    }

    /// The instructions as assembly in one line.
    pub fn to_assembly(&self) -> String {
        self.instructions.iter().map(format_instruction).collect::<Vec<_>>().join("; ")
    }
}

impl SlotRotation {
    /// Makes the distance between two uses of an updated register constant across the loop's end.
    fn even_out(&mut self, copies: usize) {
        if self.updates {
            let even = (1..=self.registers.len()).rev().find(|length| copies.is_multiple_of(*length)).unwrap_or(1);
            self.registers.truncate(even);
        }
    }

    /// The share of its registers that it can use with this number of copies.
    fn used_share(&self, copies: usize) -> f64 {
        let mut even = self.clone();
        even.even_out(copies);
        even.registers.len() as f64 / self.registers.len() as f64
    }
}

/// How often a loop repeats the mix: long enough, and so that updated registers rotate evenly.
fn choose_repeats(registers: &[FormRegisters], counts: &[usize], instructions: usize) -> usize {
    let total: usize = counts.iter().sum();
    let least = instructions.div_ceil(total);
    let most = (INSTRUCTIONS_MOST / total).max(least).min(2 * least);
    let share = |repeats: usize| {
        let rotations = registers
            .iter()
            .zip(counts)
            .flat_map(|(form, count)| form.rotations.iter().map(move |rotation| rotation.used_share(count * repeats)));
        rotations.fold(1.0, f64::min)
    };
    // The first of the best.
    (least..=most).rev().max_by(|one, other| share(*one).total_cmp(&share(*other))).unwrap_or(least)
}

/// The copies of the forms at these places.
fn build_instructions(forms: &[&MixForm], registers: &[FormRegisters], places: &[usize]) -> Option<Vec<Instruction>> {
    let mut region = 0;
    let mut regions = Vec::new();
    for form in forms {
        let (pattern, bytes) = (choose_addresses(form), form.anatomy.memory_bytes);
        regions.push((region, pattern));
        if accesses_memory(form) {
            region += pattern.displacement(pattern.count(bytes) - 1, bytes) + bytes.max(64) as i32;
        }
    }
    let mut copies = vec![0; forms.len()];
    let mut instructions = Vec::new();
    for form in places {
        let (copy, anatomy) = (copies[*form], &forms[*form].anatomy);
        copies[*form] += 1;
        let mut assignment = registers[*form].constants;
        for rotation in &registers[*form].rotations {
            assignment = assignment.with_register(rotation.slot, rotation.registers[copy % rotation.registers.len()]);
        }
        let (start, pattern) = regions[*form];
        if accesses_memory(forms[*form]) {
            assignment.displacement = start + pattern.displacement(copy, anatomy.memory_bytes);
        }
        instructions.push(anatomy.build_instance(&assignment)?);
    }
    Some(instructions)
}

/// Whether copies have a memory operand, not only an address.
fn accesses_memory(form: &MixForm) -> bool {
    form.anatomy.memory_bytes > 0 && form.anatomy.slots().contains(&RegisterSlot::Base)
}

fn choose_addresses(form: &MixForm) -> AddressPattern {
    let both = form.anatomy.reads_place(OperandPlace::Memory) && form.anatomy.writes_place(OperandPlace::Memory);
    if both { UPDATED_ADDRESSES } else { ADDRESSES }
}

#[cfg(test)]
mod tests {
    use super::super::mix_form::tests::find_form;
    use super::*;
    use iced_x86::{InstructionInfoFactory, OpAccess, Register};

    /// The registers that each form writes and reads in a body.
    fn list_registers(body: &MixBody, forms: &[&MixForm]) -> Vec<[Vec<Register>; 2]> {
        let mut factory = InstructionInfoFactory::new();
        let mut all = vec![[Vec::new(), Vec::new()]; forms.len()];
        for instruction in &body.instructions {
            let form = forms.iter().position(|form| form.code() == instruction.code()).unwrap();
            for used in factory.info(instruction).used_registers() {
                let full = used.register().full_register();
                let is_read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite);
                if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) && !all[form][0].contains(&full) {
                    all[form][0].push(full);
                }
                if is_read && !all[form][1].contains(&full) {
                    all[form][1].push(full);
                }
            }
        }
        all
    }

    fn build(names: &[&str], counts: &[usize], order: MixOrder) -> (MixBody, Vec<MixForm>) {
        let forms: Vec<MixForm> = names.iter().map(|name| find_form(name).unwrap()).collect();
        let body = MixBody::new(&forms.iter().collect::<Vec<_>>(), counts, order, 192).unwrap();
        (body, forms)
    }

    #[test]
    fn no_form_reads_what_another_writes() {
        let mixes: [&[&str]; 4] = [
            &["add r64, r64", "imul r64, r64", "popcnt r64, r64"],
            &["vpaddd xmm, xmm, xmm", "vmulps ymm, ymm, m256", "andn r64, r64, r64", "mov m64, r64"],
            &["vaddps zmm{k}, zmm, zmm", "vpshufb xmm, xmm, xmm", "vpcmpeqd k, zmm, zmm", "shlx r64, r64, r64"],
            &["mul r64", "add r64, m64", "xadd r64, r64", "setb r8", "cmovb r64, r64"],
        ];
        for names in mixes {
            let counts: Vec<usize> = (1..=names.len()).collect();
            for order in MixOrder::list(5) {
                let (body, forms) = build(names, &counts, order);
                let forms: Vec<&MixForm> = forms.iter().collect();
                let used = list_registers(&body, &forms);
                for (at, [written, _]) in used.iter().enumerate() {
                    for (other, [others_written, read]) in used.iter().enumerate().filter(|(other, _)| *other != at) {
                        let shared = written.iter().find(|one| read.contains(one) || others_written.contains(one));
                        assert_eq!(shared, None, "{} {} {order:?}", names[at], names[other]);
                    }
                }
                assert_eq!(body.instructions.len(), body.repeats * counts.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn updated_registers_come_back_at_equal_distances() {
        let (body, _) = build(&["add r64, r64", "imul r64, r64"], &[5, 2], MixOrder::Interleaved);
        let additions: Vec<Register> = body
            .instructions
            .iter()
            .filter(|one| one.mnemonic() == iced_x86::Mnemonic::Add)
            .map(|one| one.op0_register())
            .collect();
        let period = (1..).find(|period| additions[*period] == additions[0]).unwrap();
        assert!(period >= 5, "{period}");
        let around: Vec<Register> = additions.iter().chain(&additions).copied().collect();
        assert!(around.windows(period + 1).all(|window| window[0] == window[period]), "{additions:?}");
    }

    #[test]
    fn mixes_without_code_say_why() {
        let forms = ["paddd xmm, xmm", "vpaddd xmm, xmm, xmm"].map(|name| find_form(name).unwrap());
        let [legacy, vex] = &forms;
        let error =
            |forms: &[&MixForm], counts: &[usize]| MixBody::new(forms, counts, MixOrder::Blocks, 192).unwrap_err();
        assert!(error(&[legacy, vex], &[1, 1]).contains("must not mix"));
        assert!(error(&[vex], &[0]).contains("a copy of each"));
        assert!(error(&[vex], &[481]).contains("at most 480"));
        let many: Vec<MixForm> = (0..15).map(|_| find_form("xadd r64, r64").unwrap()).collect();
        assert!(error(&many.iter().collect::<Vec<_>>(), &[1; 15]).contains("registers"));
    }
}
