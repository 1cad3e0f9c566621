//! Filters forms by the instruction sets that they need. A CPUID feature prefixed with `!` is
//! excluded.

use crate::forms::target_form::TargetForm;
use cyclescope_code::asm::nearest_words;
use cyclescope_core::machine::features;
use iced_x86::CpuidFeature;
use std::collections::BTreeSet;

/// CPUID features that a form must or must not need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IsaFilter {
    /// A form must need at least one of these, unless the list is empty.
    any: Vec<String>,
    /// A form must need none of these.
    none: Vec<String>,
}

/// A feature that no form needs, and features with similar names.
pub(crate) type UnknownFeature = (String, Vec<String>);

impl IsaFilter {
    /// Parses feature names in any case. A `!` prefix excludes the feature.
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

    /// Whether a form needs a required feature and no excluded one.
    pub(crate) fn allows_form(&self, target: &TargetForm) -> bool {
        let needs = list_features(target);
        let has = |list: &[String]| needs.iter().any(|feature| list.contains(feature));
        (self.any.is_empty() || has(&self.any)) && !has(&self.none)
    }
}

/// The CPUID features of a form, or of all instructions of a sequence, in lower case.
pub fn list_features(target: &TargetForm) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for feature in target.codes().into_iter().flat_map(|code| code.cpuid_features()) {
        let name = features::feature_name(*feature);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
