//! Resolves the command line to the requested forms.

use crate::args::InstrArgs;
use crate::output::Failure;
use cyclescope::asm::{ALL_MODES, CodeMode};
use cyclescope::input::{self, InputKind};
use cyclescope::random::mix_seeds;
use cyclescope::study::instr::form_list;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::selection::{FormCriteria, UnmatchedCriterion, full_name, list_forms};
use std::path::Path;

/// Selects the forms that the options name.
pub fn select_forms(args: &InstrArgs) -> Result<Vec<TargetForm>, Failure> {
    let mut criteria =
        FormCriteria { filters: args.filters.clone(), mnemonics: args.mnemonic.clone(), isa: args.isa.clone() };
    criteria.filters.extend(args.explain.clone());
    if is_selection_empty(args) {
        let remedy = "name some, as in cyclescope instr 'vpadd*', or use --mnemonic, --isa, --from or --all";
        return Err(Failure::usage("no instructions are named", Some(remedy)));
    }
    if args.all && !(criteria.filters.is_empty() && criteria.mnemonics.is_empty()) {
        let remedy = "leave out --all or the filter; --isa works with both";
        return Err(Failure::usage("--all already selects every form", Some(remedy)));
    }
    let forms = match &args.from {
        Some(path) => read_form_list(path, args.code_mode.mode())?,
        None => list_forms(args.code_mode.mode()),
    };
    criteria.select(forms).map_err(|unmatched| {
        let other_modes = ALL_MODES.into_iter().filter(|mode| *mode != args.code_mode.mode());
        let matches = |mode: &CodeMode| args.from.is_none() && criteria.select(list_forms(*mode)).is_ok();
        match other_modes.into_iter().find(matches) {
            Some(other) => refuse_mode(&unmatched, args.code_mode.mode(), other),
            None => refuse_selection(&unmatched),
        }
    })
}

/// Whether no option selects a form.
pub fn is_selection_empty(args: &InstrArgs) -> bool {
    let names = args.filters.is_empty() && args.mnemonic.is_empty() && args.isa.is_empty() && args.explain.is_none();
    names && !args.all && args.from.is_none()
}

fn read_form_list(path: &Path, mode: CodeMode) -> Result<Vec<TargetForm>, Failure> {
    let name = path.display().to_string();
    let content = input::read_input(path, InputKind::List)
        .map_err(|bad| Failure::from_input(&bad, "name a CSV file with a column `instruction`"))?;
    form_list::read_list(&content, mode).map_err(|error| Failure::from_file(&name, error))
}

/// The failure for criteria that match forms of another mode only.
fn refuse_mode(unmatched: &UnmatchedCriterion, mode: CodeMode, other: CodeMode) -> Failure {
    let what = match unmatched {
        UnmatchedCriterion::Filter(name, _) | UnmatchedCriterion::Mnemonic(name, _) => {
            format!("no form of {}-bit code matches `{name}`", mode.bits())
        }
        _ => format!("no form of {}-bit code matches all options", mode.bits()),
    };
    let remedy = match other.is_default() {
        true => "leave --bits 32 out: it exists in 64-bit mode".to_string(),
        false => format!("use --bits {}: it exists in {}-bit code", other.bits(), other.bits()),
    };
    Failure::usage(what, Some(&remedy))
}

/// The failure for a selection without forms.
pub fn refuse_selection(unmatched: &UnmatchedCriterion) -> Failure {
    let (text, near) = match unmatched {
        UnmatchedCriterion::Filter(filter, near) => (format!("no form matches `{filter}`"), near.as_slice()),
        UnmatchedCriterion::Mnemonic(name, near) => (format!("there is no instruction `{name}`"), near.as_slice()),
        UnmatchedCriterion::Isa(name, near) => (format!("there is no CPUID feature `{name}`"), near.as_slice()),
        UnmatchedCriterion::Together => {
            let text = "--isa excludes all forms that the filters select";
            return Failure::usage(text, Some("leave out --isa, or name other features"));
        }
    };
    let list = "`cyclescope instr --all --list` shows all forms and their features";
    let remedy = match near {
        [] => list.to_string(),
        near => format!("did you mean {}? {list}", near.join(", ")),
    };
    Failure::usage(text, Some(&remedy))
}

/// A hash that identifies a list of forms, with their questions and init code.
pub fn forms_identity(forms: &[TargetForm]) -> String {
    let mut number = 0;
    for wanted in forms {
        let questions = [u8::from(wanted.latency), u8::from(wanted.throughput)];
        let bytes = full_name(wanted).into_bytes().into_iter().chain(questions).chain(wanted.init.iter().copied());
        number = bytes.fold(mix_seeds(number, 1), |number, byte| mix_seeds(number, u64::from(byte)));
    }
    format!("{number:016x}")
}
