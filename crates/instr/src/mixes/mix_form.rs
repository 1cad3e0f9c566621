//! A form in a mix: whether it can be there, and what chains its copies.

use crate::bodies::balance::balance_instance;
use crate::bodies::dependency_hazards::DependencyHazards;
use crate::bodies::x87;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterBank, RegisterSlot, encode_instructions};
use crate::forms::gather;
use crate::forms::instruction_setting;
use crate::forms::skip::find_skip;
use crate::forms::target_form::TargetForm;
use cyclescope_code::asm::access::is_non_temporal_store;
use cyclescope_code::asm::forms::FormPrefix;
use cyclescope_code::asm::{self, CodeMode};
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_exec::PrivilegeRing;
use iced_x86::{Code, EncodingKind, FlowControl, Register};

/// A form that can be in a mix.
#[derive(Debug, Clone)]
pub struct MixForm {
    pub(super) anatomy: FormAnatomy,
    /// Code that runs once before the loop.
    pub(super) init: Vec<u8>,
    /// Core cycles that a copy waits for another one in the same registers, relative to other forms.
    pub(super) latency: f64,
    name: String,
}

/// How vector code of a form is encoded. Legacy and VEX code must not mix: some cores save and
/// restore the upper halves of registers between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VectorEncoding {
    /// Without VEX or EVEX prefix.
    Legacy,
    /// With one.
    Extended,
}

impl MixForm {
    /// The form, if it can be in a mix on this machine. An error says why not.
    pub fn new(target: &TargetForm, features: &CpuFeatures, ring: PrivilegeRing) -> Result<MixForm, String> {
        let name = format!("{} {}", target.mnemonic(), target.operands()).trim_end().to_string();
        let anatomy = target.anatomy().ok_or_else(|| "no instance can be encoded".to_string())?;
        if let Some(skip) = find_skip(&anatomy, features, ring) {
            return Err(skip.describe());
        }
        if let Some(obstacle) = find_obstacle(target, &anatomy) {
            return Err(obstacle.to_string());
        }
        let setting = instruction_setting::find_setting(anatomy.code());
        let mut init = target.init.clone();
        init.extend(asm::parse_assembly(setting.init).expect("settings are valid assembly").bytes());
        Ok(MixForm { anatomy, init, latency: 1.0, name })
    }

    /// The same form, whose copies in one register wait this many core cycles for each other. It gets
    /// registers accordingly. Without a figure, all forms wait equally long.
    pub fn with_latency(self, cycles: f64) -> MixForm {
        MixForm { latency: cycles, ..self }
    }

    /// Whether copies in one register form a chain, so that their number of registers limits them.
    pub fn updates_registers(&self) -> bool {
        self.anatomy.slots().into_iter().any(|slot| slot != RegisterSlot::Base && self.updates_slot(slot))
    }

    /// The mnemonic and the operands.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The instruction's code.
    pub fn code(&self) -> Code {
        self.anatomy.code()
    }

    /// Registers and flags through which each copy depends on the one before it, whatever registers
    /// it gets: `rax` of `mul`, `flags` of `adc`.
    pub fn list_chains(&self) -> Vec<String> {
        let hazards = DependencyHazards::from_anatomy(&self.anatomy);
        let registers = hazards.registers.iter().map(|register| format!("{register:?}").to_lowercase());
        registers.chain(hazards.flags.then(|| "flags".to_string())).collect()
    }

    /// How its vector code is encoded; `None` without vector registers.
    pub(super) fn vector_encoding(&self) -> Option<VectorEncoding> {
        let sample = &self.anatomy.sample;
        let registers = (0..sample.op_count()).map(|operand| sample.op_register(operand));
        let has_vectors = registers.chain([sample.memory_index()]).any(|register| register.is_vector_register());
        has_vectors.then(|| match sample.op_code().encoding() {
            EncodingKind::Legacy | EncodingKind::D3NOW => VectorEncoding::Legacy,
            _ => VectorEncoding::Extended,
        })
    }

    /// Whether it reads what another form writes, through a register that both imply or the flags.
    fn reads_from(&self, other: &MixForm) -> Option<String> {
        let flags = other.anatomy.flags_modified();
        self.anatomy.inputs.iter().find_map(|input| match input.place {
            OperandPlace::Fixed(register) => {
                let full = register.full_register();
                other.anatomy.writes_register(full).then(|| format!("{full:?}").to_lowercase())
            }
            OperandPlace::Flags(read) => (read & flags != 0).then(|| "flags".to_string()),
            OperandPlace::Slot(_) | OperandPlace::Memory => None,
        })
    }

    /// Whether a copy reads and writes a register, so that two copies in one register form a chain.
    pub(super) fn updates_slot(&self, slot: RegisterSlot) -> bool {
        let place = OperandPlace::Slot(slot);
        let is_part = self.anatomy.place_bank(place) == RegisterBank::HighByte
            || self.anatomy.place_bank(place) == RegisterBank::General && self.anatomy.slot_register(slot).size() < 4;
        self.anatomy.writes_place(place) && (self.anatomy.reads_place(place) || is_part)
    }
}

/// Chains of a mix: through what its own code each form's copies depend on each other, and pairs of
/// forms that wait for each other.
pub fn describe_chains(forms: &[&MixForm]) -> Vec<String> {
    let mut chains = Vec::new();
    for (at, form) in forms.iter().enumerate() {
        let own = form.list_chains();
        if !own.is_empty() {
            chains.push(format!("copies of {} depend on each other through {}", form.name(), own.join(" and ")));
        }
        for other in &forms[..at] {
            if let (Some(there), Some(back)) = (form.reads_from(other), other.reads_from(form)) {
                let through = if there == back { there } else { format!("{there} and {back}") };
                chains.push(format!("{} and {} depend on each other through {through}", other.name(), form.name()));
            }
        }
    }
    chains
}

/// Why a form can't be in a mix.
fn find_obstacle(target: &TargetForm, anatomy: &FormAnatomy) -> Option<&'static str> {
    let sample = &anatomy.sample;
    let setting = instruction_setting::find_setting(anatomy.code());
    let (before, after) = balance_instance(sample);
    let is_other = |slot: RegisterSlot| anatomy.place_bank(OperandPlace::Slot(slot)) == RegisterBank::Other;
    let fixed = anatomy.fixed_registers();
    match () {
        () if target.sequence.is_some() => Some("it is a sequence of several instructions"),
        () if sample.flow_control() != FlowControl::Next => Some("it is a branch"),
        () if x87::uses_stack(sample) => Some("it works on the x87 stack"),
        () if !before.is_empty() || !after.is_empty() => Some("each copy needs other instructions around it"),
        () if fixed.contains(&Register::RSP) => Some("it uses the stack pointer"),
        () if fixed.iter().any(|register| matches!(register, Register::R14 | Register::R15)) => {
            Some("it uses a register of the loop")
        }
        () if fixed.iter().any(|register| matches!(register, Register::RSI | Register::RDI)) => {
            Some("it advances an address")
        }
        () if fixed.iter().any(|register| register.is_vector_register()) && has_group(anatomy) => {
            Some("it uses a fixed group of registers")
        }
        () if !matches!(anatomy.form.prefix, FormPrefix::None | FormPrefix::Lock) => Some("it is repeated"),
        () if sample.is_vsib() || gather::is_gather(anatomy) => Some("it gathers or scatters"),
        () if is_non_temporal_store(sample) => Some("it stores past the caches"),
        () if setting.empties => Some("it empties caches or translation buffers"),
        () if setting.prepared || setting.pointer.is_some() => Some("its memory operand needs a value of its own"),
        () if anatomy.slots().into_iter().any(is_other) => Some("it uses a register of the system"),
        () if encode_instructions(CodeMode::Bits64, &[*sample]).is_none() => Some("no instance can be encoded"),
        () => None,
    }
}

/// Whether an operand is the first of a group of registers.
fn has_group(anatomy: &FormAnatomy) -> bool {
    let sample = &anatomy.sample;
    (0..sample.op_count()).any(|operand| {
        sample.op_register(operand).is_vector_register() && !anatomy.slots().contains(&RegisterSlot::Operand(operand))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::selection::list_forms;
    use cyclescope_core::machine::Machine;
    use cyclescope_core::machine::machine_parameters::MachineParameters;
    use cyclescope_core::machine::tsc::TscParameters;
    use cyclescope_core::unit::Hertz;
    use std::sync::LazyLock;

    /// All forms by mnemonic and operands.
    static FORMS: LazyLock<Vec<(String, TargetForm)>> = LazyLock::new(|| {
        let name = |target: &TargetForm| format!("{} {}", target.mnemonic(), target.operands()).trim_end().to_string();
        list_forms(CodeMode::Bits64).into_iter().map(|target| (name(&target), target)).collect()
    });

    /// The first target with this mnemonic, and these operands if any are given.
    pub(in crate::mixes) fn find_target(name: &str) -> TargetForm {
        let is_named = |(known, _): &&(String, TargetForm)| known == name || known.split(' ').next() == Some(name);
        FORMS.iter().find(is_named).expect("a form has this name").1.clone()
    }

    /// The first form with this name.
    pub(in crate::mixes) fn find_form(name: &str) -> Result<MixForm, String> {
        MixForm::new(&find_target(name), &every_feature(), PrivilegeRing::Three)
    }

    /// The features of a simulated machine: all.
    pub(in crate::mixes) fn every_feature() -> CpuFeatures {
        let tsc = TscParameters { rate: Hertz(2e9), step: 2.0 };
        Machine::from(MachineParameters { tsc, imul_latency: Some(3) }).features
    }

    #[test]
    fn forms_that_can_not_be_in_a_mix_say_why() {
        for (name, why) in [
            ("jmp rel8", "branch"),
            ("fadd st, st", "x87"),
            ("push r64", "stack pointer"),
            ("lodsq", "address"),
            ("vpgatherdd xmm, vm32x, xmm", "gathers"),
            ("movnti m64, r64", "past the caches"),
            ("hlt", "privileged"),
        ] {
            assert!(find_form(name).unwrap_err().contains(why), "{name}: {:?}", find_form(name).err());
        }
    }

    #[test]
    fn chains_that_registers_can_not_break_are_named() {
        let chains = |name: &str| find_form(name).unwrap().list_chains();
        assert_eq!(chains("mul r64"), ["rax"]);
        assert_eq!(chains("adc r64, r64"), ["flags"]);
        assert!(chains("shl r64, cl").contains(&"flags".to_string()));
        assert!(chains("add r64, r64").is_empty() && chains("imul r64, r64").is_empty());
        let [multiply, extend, add] = ["mul r64", "cqo", "add r64, r64"].map(|name| find_form(name).unwrap());
        let texts = describe_chains(&[&extend, &add]);
        assert!(texts.is_empty(), "{texts:?}");
        assert_eq!(describe_chains(&[&multiply, &add]).len(), 1);
    }
}
