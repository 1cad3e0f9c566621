//! Instruction sets that forms must need, or must not: names of CPUID features, with `!` before those to leave out.

use crate::forms::target_form::TargetForm;
use cyclescope_code::asm::nearest_words;
use cyclescope_core::machine::features;
use iced_x86::CpuidFeature;
use std::collections::BTreeSet;

/// Features that decide whether a form is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IsaFilter {
    /// A form needs at least one of these, where there are any,
    any: Vec<String>,
    /// and none of these.
    none: Vec<String>,
}

/// A feature that no form needs, and those with similar names.
pub(crate) type UnknownFeature = (String, Vec<String>);

impl IsaFilter {
    /// From names, in capitals or not, each with a `!` before it where it is to be left out.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<IsaFilter, UnknownFeature> {
        let known: BTreeSet<String> = CpuidFeature::values().map(features::feature_name).collect();
        let mut isa = IsaFilter::default();
        for written in names {
            let name = written.trim().to_lowercase();
            let (list, name) = match name.strip_prefix('!') {
                Some(name) => (&mut isa.none, name.trim().to_string()),
                None => (&mut isa.any, name),
            };
            if !known.contains(&name) {
                let near = nearest_words(&name, known.iter().map(String::as_str));
                return Err((written.to_string(), near.into_iter().map(str::to_string).collect()));
            }
            list.push(name);
        }
        Ok(isa)
    }

    /// Whether a form needs what it has to need, and nothing that it must not.
    pub(crate) fn allows_form(&self, wanted: &TargetForm) -> bool {
        let needs = list_features(wanted);
        let has = |list: &[String]| needs.iter().any(|feature| list.contains(feature));
        (self.any.is_empty() || has(&self.any)) && !has(&self.none)
    }
}

/// The CPUID features of a form, or of all instructions of a sequence, in lower case.
pub fn list_features(wanted: &TargetForm) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for feature in wanted.codes().into_iter().flat_map(|code| code.cpuid_features()) {
        let name = features::feature_name(*feature);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
