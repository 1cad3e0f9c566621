//! The mix that `--mix` and `--ratio` name.
//!
//! A form is named as in `instr`, or by an instruction of it: then its registers don't matter, but its
//! constant does.

use super::mix_ports::find_port_limits;
use super::slot_table::SlotTable;
use crate::args::RunArgs;
use crate::output::{Failure, print_warning};
use cyclescope::asm::{self, CodeMode, parse_assembly};
use cyclescope::executor::PrivilegeRing;
use cyclescope::machine::Machine;
use cyclescope::record::{MixBoundRecord, MixOrderRecord, MixPartRecord, MixRecord, SLOTS_RESOURCE};
use cyclescope::snippet::Snippet;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::mixes::mix_body::MixBody;
use cyclescope::study::instr::mixes::mix_form::{MixForm, describe_chains};
use cyclescope::study::instr::mixes::mix_order::MixOrder;
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::selection::{FormCriteria, UnmatchedCriterion, list_forms};
use cyclescope::study::run::VARIANTS_MOST;
use iced_x86::{Instruction, OpKind, Register};
use std::collections::BTreeSet;
use std::path::Path;

/// The orders of a mix.
#[derive(Debug)]
pub struct MixTarget {
    /// The code in each order, each distinct.
    pub snippets: Vec<Snippet>,
    /// What it is.
    pub record: MixRecord,
}

/// Programs to try: orders of the copies, and shares of the registers.
const PROGRAMS: usize = 6;
const PROGRAMS_QUICK: usize = 3;
/// A form that updates its destination may wait longer than others by this factor.
const LATENCY_FACTOR: f64 = 3.0;
/// Fewest orders for each share of the registers.
const ORDERS_LEAST: usize = 2;
/// Lower limit of instructions in a snippet, whose longest body has four copies.
const INSTRUCTIONS_LEAST: usize = 96;
/// Forms that a failure lists.
const LISTED_FORMS: usize = 6;

/// Builds the mix of this text, with the ratio of the options.
pub fn find_mix(
    text: &str,
    args: &RunArgs,
    is_quick: bool,
    ring: PrivilegeRing,
    machine: &Machine,
) -> Result<MixTarget, Failure> {
    let texts: Vec<&str> = text.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
    if texts.is_empty() {
        return Err(Failure::usage("--mix names no instruction", Some(MIX_REMEDY)));
    }
    let counts = read_ratio(args.ratio.as_deref(), texts.len())?;
    let targets = texts.iter().map(|text| find_target(text)).collect::<Result<Vec<TargetForm>, Failure>>()?;
    let forms = targets.iter().map(|target| build_form(target, ring, machine));
    let forms = forms.collect::<Result<Vec<MixForm>, Failure>>()?;
    let variants = build_variants(&forms, &counts, if is_quick { PROGRAMS_QUICK } else { PROGRAMS })?;
    let forms: Vec<&MixForm> = forms.iter().collect();
    let part = |(target, count): (&TargetForm, &usize)| MixPartRecord {
        code: target.code(),
        form: form_name(target),
        count: *count,
    };
    let parts: Vec<MixPartRecord> = targets.iter().zip(&counts).map(part).collect();
    let shown = parts.iter().map(|part| format!("{} {}", part.count, part.form)).collect::<Vec<_>>().join("; ");
    let snippet = |(_, body): &(String, MixBody)| Snippet::new(body.code.clone(), body.init.clone(), shown.clone());
    let order = |(name, body): &(String, MixBody)| MixOrderRecord {
        order: name.clone(),
        repeats: body.repeats,
        registers: body.registers.clone(),
        cost: None,
    };
    let limits = args.ports.as_deref().map(|path| find_port_limits(path, &targets, &parts, machine)).transpose()?;
    let slots = args.table.as_deref().map_or(Ok(None), |path| find_slot_bound(path, &targets, &counts))?;
    let (ports, bounds) = match limits {
        Some(limits) => (Some(limits.ports), limits.bounds),
        None => (None, slots.into_iter().collect()),
    };
    let record = MixRecord {
        chains: describe_chains(&forms),
        bounds,
        ports,
        orders: variants.iter().map(order).collect(),
        fastest: None,
        parts,
    };
    Ok(MixTarget { snippets: variants.iter().map(snippet).collect(), record })
}

/// Fails if options of a mix are given without one. A snippet excludes `--mix`, so that the grammar does
/// not require it.
pub fn require_mix(args: &RunArgs) -> Result<(), Failure> {
    let given = [
        ("--ratio", args.ratio.is_some()),
        ("--table", args.table.is_some()),
        ("--ports", args.ports.is_some()),
        ("--orders", args.orders),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given && args.source.mix.is_none()) {
        Some((option, _)) => Err(Failure::usage(format!("{option} belongs to --mix"), Some(MIX_REMEDY))),
        None => Ok(()),
    }
}

const MIX_REMEDY: &str = "name some, as in cyclescope run --mix 'imul r64, r64; add r64, r64' --ratio 1:4";

/// The limit by dispatch slots, as a result file of `instr` has them; `None` if it lacks one.
fn find_slot_bound(path: &Path, targets: &[TargetForm], counts: &[usize]) -> Result<Option<MixBoundRecord>, Failure> {
    let SlotTable { name, rows, width, .. } = SlotTable::read(path)?;
    let mut slots = 0;
    for (target, count) in targets.iter().zip(counts) {
        // The slots of a form do not depend on its constant, as far as a table knows.
        let operands = target.form.describe_operands();
        let is_row = |row: &&InstrRow| row.code == target.code() && row.operands == operands;
        let found = rows.iter().find(is_row).and_then(|row| row.slots.as_ref()?.whole);
        let Some(own) = found else {
            print_warning(&format!(
                "{name} has no dispatch slots of `{}`, so they limit nothing here",
                form_name(target)
            ));
            return Ok(None);
        };
        slots += own * count;
    }
    Ok(Some(MixBoundRecord::new(SLOTS_RESOURCE, slots as f64, width)))
}

/// The programs of a mix, each with its name. Copies of forms that update their destination wait for
/// each other, one form longer than another. With several such forms, each in turn gets more
/// registers.
fn build_variants(forms: &[MixForm], counts: &[usize], programs: usize) -> Result<Vec<(String, MixBody)>, Failure> {
    let updating: Vec<usize> = (0..forms.len()).filter(|form| forms[*form].updates_registers()).collect();
    let favoured = updating.into_iter().map(Some);
    let mut shares: Vec<Option<usize>> = std::iter::once(None).chain(favoured).collect();
    if shares.len() == 2 {
        shares.truncate(1);
    }
    shares.truncate(VARIANTS_MOST / ORDERS_LEAST);
    let orders = programs.div_ceil(shares.len()).max(ORDERS_LEAST);
    let mut variants: Vec<(String, MixBody)> = Vec::new();
    for share in shares {
        let latency = |form: usize| if share == Some(form) { LATENCY_FACTOR } else { 1.0 };
        let own: Vec<MixForm> =
            forms.iter().enumerate().map(|(at, form)| form.clone().with_latency(latency(at))).collect();
        let own: Vec<&MixForm> = own.iter().collect();
        for order in MixOrder::list(orders) {
            let body = MixBody::new(&own, counts, order, INSTRUCTIONS_LEAST).map_err(|why| {
                Failure::usage(format!("this mix can't be built: {why}"), Some("take other forms, or fewer copies"))
            })?;
            let name = match share {
                Some(form) => format!("{}, more registers for {}", order.describe(), forms[form].name()),
                None => order.describe(),
            };
            if variants.iter().all(|(_, known)| known.code != body.code) {
                variants.push((name, body));
            }
        }
    }
    Ok(variants)
}

/// Reads the number of copies of each form.
fn read_ratio(ratio: Option<&str>, forms: usize) -> Result<Vec<usize>, Failure> {
    let Some(ratio) = ratio else { return Ok(vec![1; forms]) };
    let counts: Option<Vec<usize>> =
        ratio.split(':').map(|count| count.trim().parse().ok().filter(|count| *count > 0)).collect();
    let remedy = "write one whole number above 0 for each, as in --ratio 1:4:2";
    match counts {
        Some(counts) if counts.len() == forms => Ok(counts),
        Some(counts) => {
            let text = format!("--ratio has {} numbers for {forms} instructions", counts.len());
            Err(Failure::usage(text, Some(remedy)))
        }
        None => Err(Failure::usage(format!("--ratio '{ratio}' is invalid"), Some(remedy))),
    }
}

/// The form that a text names.
fn find_target(text: &str) -> Result<TargetForm, Failure> {
    let all = list_forms(CodeMode::Bits64);
    let assembled = parse_assembly(text).ok();
    if let Some([instruction]) = assembled.as_ref().map(|parsed| parsed.instructions()) {
        return find_form_of(instruction, &all).ok_or_else(|| {
            let text = format!("`{text}` has no form in the instruction database");
            Failure::usage(text, Some("name its form, as `cyclescope instr --all --list` prints it"))
        });
    }
    let criteria = FormCriteria { filters: vec![text.to_string()], ..FormCriteria::default() };
    let found = criteria.select(all).map_err(|unmatched| refuse_text(text, &unmatched))?;
    pick_form(text, found)
}

/// The one of these forms that a text names. Fails if they are of several operands, and none has just this
/// name.
pub fn pick_form(text: &str, mut found: Vec<TargetForm>) -> Result<TargetForm, Failure> {
    let is_exact = |target: &TargetForm| form_name(target).eq_ignore_ascii_case(text);
    if found.iter().any(is_exact) {
        found.retain(is_exact);
    }
    // The shorter encoding, as an assembler takes it.
    found.sort_by_key(|target| target.encoding() == "evex");
    let first = form_name(&found[0]);
    let others: Vec<String> = found.iter().map(form_name).filter(|name| *name != first).collect();
    if others.is_empty() {
        return Ok(found.swap_remove(0));
    }
    // Several encodings have the same name.
    let names: BTreeSet<String> = [first].into_iter().chain(others).collect();
    let mut listed: Vec<String> = names.into_iter().collect();
    // The common sizes first.
    listed.sort_by_key(|name| !(name.contains("r64, ") || name.ends_with("r64") || name.contains("xmm")));
    let listed: Vec<String> = listed.into_iter().take(LISTED_FORMS).map(|name| format!("`{name}`")).collect();
    let remedy = format!("name one, such as {}", listed.join(", "));
    Err(Failure::usage(format!("`{text}` names several forms"), Some(&remedy)))
}

fn refuse_text(text: &str, unmatched: &UnmatchedCriterion) -> Failure {
    let list = "`cyclescope instr --all --list` shows all forms";
    let remedy = match unmatched {
        UnmatchedCriterion::Filter(_, near) if !near.is_empty() => {
            format!("did you mean {}? {list}", near.join(", "))
        }
        _ => list.to_string(),
    };
    Failure::usage(format!("`{text}` is neither a form nor an instruction"), Some(&remedy))
}

/// The mnemonic and the operands.
fn form_name(target: &TargetForm) -> String {
    format!("{} {}", target.mnemonic(), target.operands()).trim_end().to_string()
}

/// The form of an instruction, with its constant.
fn find_form_of(instruction: &Instruction, all: &[TargetForm]) -> Option<TargetForm> {
    let kinds = |one: &Instruction| {
        let operands: Vec<(bool, bool)> = (0..one.op_count())
            .map(|at| (one.op_kind(at) == OpKind::Memory, is_high_byte(one.op_register(at))))
            .collect();
        let prefixes = [one.has_lock_prefix(), one.has_rep_prefix(), one.has_repne_prefix()];
        let address = [one.memory_base(), one.memory_index()].map(|register| register != Register::None);
        let lea = one.code().mnemonic() == iced_x86::Mnemonic::Lea;
        let shape = lea.then_some((address, one.memory_displ_size()));
        let masking = (one.has_op_mask(), one.zeroing_masking(), one.is_broadcast(), one.rounding_control());
        (one.code(), operands, prefixes, masking, shape)
    };
    let wanted = kinds(instruction);
    let same = |target: &&TargetForm| {
        target.form.code == instruction.code()
            && target.anatomy().is_some_and(|anatomy| kinds(&anatomy.sample) == wanted)
    };
    let target = all.iter().find(same)?;
    let immediate = (0..instruction.op_count()).find_map(|at| instruction.try_immediate(at).ok());
    Some(immediate.and_then(|value| target.with_immediate(value as i64)).unwrap_or_else(|| target.clone()))
}

fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::CH | Register::DH | Register::BH)
}

/// The form as part of a mix.
fn build_form(target: &TargetForm, ring: PrivilegeRing, machine: &Machine) -> Result<MixForm, Failure> {
    if let Some(anatomy) = target.anatomy() {
        machine.features.require(asm::required_features(&anatomy.sample))?;
    }
    MixForm::new(target, &machine.features, ring).map_err(|why| {
        let remedy = "leave it out, or measure it with cyclescope instr";
        Failure::usage(format!("`{}` can't be in a mix: {why}", form_name(target)), Some(remedy))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        match find_target(text) {
            Ok(target) => form_name(&target),
            Err(failure) => failure.text().to_string(),
        }
    }

    #[test]
    fn forms_are_named_as_in_tables_or_by_an_instruction() {
        assert_eq!(name("ADD r64, r64"), "add r64, r64");
        assert_eq!(name("imul rax, rbx"), "imul r64, r64");
        assert_eq!(name("shl rax, 5"), "shl r64, 0x5");
        assert_eq!(name("mov rax, [rbx+8]"), "mov r64, m64");
        assert_eq!(name("lea rax, [rbx+rcx]"), "lea r64, [b+i]");
        assert_eq!(name("vaddps xmm, xmm, xmm"), "vaddps xmm, xmm, xmm");
        assert_eq!(name("vaddps zmm1{k1}, zmm2, zmm3"), "vaddps zmm{k}, zmm, zmm");
        assert!(name("add").contains("several forms"));
        assert!(name("nonsense r64").contains("neither"));
        assert_eq!(find_target("vaddps xmm, xmm, xmm").unwrap().encoding(), "vex");
    }

    #[test]
    fn a_ratio_has_a_number_for_each_form() {
        assert_eq!(read_ratio(Some("1: 4:2"), 3).unwrap(), [1, 4, 2]);
        assert_eq!(read_ratio(None, 2).unwrap(), [1, 1]);
        for (ratio, forms) in [("1:2", 3), ("1:0", 2), ("1:x", 2), ("", 1)] {
            assert!(read_ratio(Some(ratio), forms).is_err(), "{ratio}");
        }
    }
}
